package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

// unknownModel makes a mistake and looks how it is told.
func (e *exam) unknownModel(ctx context.Context) Finding {
	s := e.callModel(ctx, e.provider, openai.Trial{Model: noModel, User: sayHello, MaxTokens: fewTokens}, nil)
	var typed *inference.Error
	switch {
	case s.err == nil:
		return Finding{
			Verdict: Warning, Detail: "a model that does not exist is answered for",
			Advice: "a wrong name of a model will not be noticed: check what the answers say that they are from",
		}
	case !errors.As(s.err, &typed) || typed.Status == 0 || typed.Kind == inference.KindProvider || typed.Kind == inference.KindTruncated:
		return Finding{Verdict: Warning, Detail: "an unknown model: " + e.told(s.err), Advice: "its errors do not tell their reason: look into its own log when a run fails"}
	}
	return Finding{Verdict: OK, Detail: "an unknown model: " + e.told(s.err)}
}

// wrongKey shows another key.
func (e *exam) wrongKey(ctx context.Context) Finding {
	provider, err := openai.New(openai.Config{Name: "provider", BaseURL: e.config.BaseURL, APIKey: noKey, HTTPClient: e.client})
	if err != nil {
		return Finding{Verdict: Failed, Detail: e.told(err)}
	}
	s := e.callModel(ctx, provider, openai.Trial{Model: e.model, User: sayHello, MaxTokens: fewTokens, NoUsage: e.bare}, nil)
	switch kind := inference.KindOf(s.err); {
	case s.err == nil && e.config.APIKey == "":
		return Finding{Verdict: OK, Detail: "no key is needed"}
	case s.err == nil:
		return Finding{Verdict: Warning, Detail: "any key is taken", Advice: "whoever reaches it can use it: is that meant?"}
	case kind == inference.KindAuth:
		return Finding{Verdict: OK, Detail: fmt.Sprintf("a wrong key is refused with status %d", s.Response.Status)}
	default:
		return Finding{Verdict: Warning, Detail: "a wrong key: " + e.told(s.err), Advice: "an expired key will not be told as one"}
	}
}

func (e *exam) rateLimits(context.Context) Finding {
	r := e.whole.Response
	told := func(of string, limit openai.RateLimit) string {
		if !limit.Known {
			return ""
		}
		text := fmt.Sprintf("%d %s left", limit.Remaining, of)
		if limit.Limit > 0 {
			text = fmt.Sprintf("%d of %d %s left", limit.Remaining, limit.Limit, of)
		}
		if limit.Reset > 0 {
			text += ", whole again in " + short(limit.Reset)
		}
		return text
	}
	requests, tokens := told("requests", r.Requests), told("tokens", r.Tokens)
	switch {
	case requests == "" && tokens == "":
		return Finding{Verdict: OK, Detail: "not told by headers"}
	case requests == "" || tokens == "":
		return Finding{Verdict: OK, Detail: requests + tokens}
	}
	return Finding{Verdict: OK, Detail: requests + "; " + tokens}
}

// adviceOn says what to do about a call that failed.
func adviceOn(err error, hasKey bool) string {
	if errors.Is(err, errSlow) {
		return "a model that is loaded at its first call may take minutes: call it again, or give --timeout"
	}
	switch inference.KindOf(err) {
	case inference.KindAuth:
		if hasKey {
			return "the key is not the one for this endpoint, or has no rights there"
		}
		return "give the key with --api-key-file"
	case inference.KindQuota:
		return "the account has no credit left"
	case inference.KindRateLimited:
		return "wait, or raise the limit of the account"
	case inference.KindConfig:
		return "is the base URL right, up to and without /chat/completions, and the model's name?"
	case inference.KindBadRequest:
		return "the endpoint does not take a plain chat request: is it OpenAI-compatible?"
	case inference.KindTruncated:
		return "the stream breaks off: look at the server's log and at what stands in between"
	case inference.KindUnavailable:
		return "check host, port and scheme of the URL, and that the server runs"
	case inference.KindProvider:
		return "the server's log tells more, unless it is no OpenAI-compatible server"
	case inference.KindTimeout, inference.KindOverloaded:
		return "try again later, or give --timeout"
	case inference.KindCanceled, inference.KindContextOverflow, inference.KindContentFiltered:
	}
	return ""
}
