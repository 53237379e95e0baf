package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/correx/correx-actors/inference"
)

// maxModels bounds the list of models, in bytes.
const maxModels = 4 << 20

// notForText are parts of names of models that hold no conversation.
var notForText = []string{"embed", "whisper", "tts", "dall-e", "image", "audio", "moderation", "rerank", "bge-", "realtime", "transcribe"}

// models asks for the list of models, picks one if none was given, and finds out whether there is an endpoint at all.
func (e *exam) models(ctx context.Context) Finding {
	names, status, err := e.list(ctx, e.config.BaseURL)
	switch {
	case err != nil:
		e.stop = "the server cannot be reached"
		return Finding{Verdict: Failed, Detail: e.told(err), Advice: "check host, port and scheme of the URL, and that the server runs"}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.stop = "the key is refused"
		advice := "give the key with --api-key-file"
		if e.config.APIKey != "" {
			advice = "the key is not the one for this endpoint, or has no rights there"
		}
		return Finding{Verdict: Failed, Detail: fmt.Sprintf("the list of models is refused with status %d", status), Advice: advice}
	case names == nil:
		return e.unlisted(ctx, status)
	}
	if e.model == "" {
		if len(names) == 0 {
			return e.noModel("the list of models is empty")
		}
		i := slices.IndexFunc(names, speaks)
		if i < 0 {
			return e.noModel("the list has no model for conversations")
		}
		e.model = names[i]
		return Finding{Verdict: OK, Detail: fmt.Sprintf("%s; asking %s", plural(len(names), "model"), e.model)}
	}
	if !slices.Contains(names, e.model) {
		return Finding{
			Verdict: Warning, Detail: fmt.Sprintf("%s, %s is not among them", plural(len(names), "model"), e.model),
			Advice: "is its name right? " + some(names),
		}
	}
	return Finding{Verdict: OK, Detail: fmt.Sprintf("%s, %s is among them", plural(len(names), "model"), e.model)}
}

// unlisted judges an endpoint without a list of models: it may have none, or the base URL lacks its last part.
func (e *exam) unlisted(ctx context.Context, status int) Finding {
	const version = "/v1"
	if !strings.HasSuffix(e.config.BaseURL, version) {
		if names, _, err := e.list(ctx, e.config.BaseURL+version); err == nil && names != nil {
			e.stop = "the base URL is wrong"
			return Finding{
				Verdict: Failed, Detail: "nothing is here, but there is an endpoint at " + version,
				Advice: "use the base URL " + withoutUser(e.config.BaseURL) + version,
			}
		}
	}
	if e.model == "" {
		return e.noModel(fmt.Sprintf("no list of models (status %d)", status))
	}
	return Finding{Verdict: OK, Detail: fmt.Sprintf("no list of models (status %d), which an endpoint need not have", status)}
}

func (e *exam) noModel(detail string) Finding {
	e.stop = "no model to ask"
	return Finding{Verdict: Failed, Detail: detail, Advice: "name one with --model"}
}

// list gives the names of the models; nil: the answer is no such list. The error says that there was no answer.
func (e *exam) list(ctx context.Context, base string) (names []string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	if e.config.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+e.config.APIKey)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		var outer *url.Error
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if errors.As(err, &outer) {
			err = outer.Err // without the URL, which is known
		}
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxModels))
	if resp.StatusCode != http.StatusOK || err != nil || json.Unmarshal(body, &list) != nil || list.Data == nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
			return nil, 0, cause
		}
		return nil, resp.StatusCode, nil
	}
	names = []string{}
	for _, model := range list.Data {
		names = append(names, inference.CleanMessage(inference.Bound(model.ID, 200)))
	}
	return names, resp.StatusCode, nil
}

func speaks(name string) bool {
	name = strings.ToLower(name)
	return name != "" && !slices.ContainsFunc(notForText, func(part string) bool { return strings.Contains(name, part) })
}

func some(names []string) string {
	const shown = 5
	if len(names) == 0 {
		return "the list is empty"
	}
	if len(names) > shown {
		return "such as " + strings.Join(names[:shown], ", ")
	}
	return "there are " + strings.Join(names, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
