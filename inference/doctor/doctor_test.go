package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/inference/doctor"
	"github.com/correx/correx-actors/testkit/llmserver"
)

const key = "sk-proj-0123456789abcdefABCDEF"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a fake endpoint.
func serve(t *testing.T, c llmserver.Config) (url string) {
	t.Helper()
	url, stop, err := llmserver.NewServer(c).Start()
	require.NoError(t, err)
	t.Cleanup(stop)
	return url
}

func examine(t *testing.T, c doctor.Config) doctor.Report {
	t.Helper()
	report, err := doctor.Examine(t.Context(), c)
	require.NoError(t, err)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	if c.APIKey != "" {
		require.NotContains(t, string(text), c.APIKey, "a key is in the report")
	}
	for _, finding := range report.Findings {
		require.True(t, finding.Verdict.Valid(), finding)
		require.NotEmpty(t, finding.Detail, finding.Probe)
	}
	return report
}

func find(t *testing.T, report doctor.Report, probe string) doctor.Finding {
	t.Helper()
	for _, finding := range report.Findings {
		if finding.Probe == probe {
			return finding
		}
	}
	require.Fail(t, "no such probe", probe)
	return doctor.Finding{}
}

func TestHealthyEndpointPassesEveryProbe(t *testing.T) {
	t.Parallel()
	url := serve(t, llmserver.Config{Key: key, Models: []string{"text-embedding-1", llmserver.Model}})
	var steps []doctor.Step
	report := examine(t, doctor.Config{BaseURL: url + "/", APIKey: key, Progress: func(s doctor.Step) { steps = append(steps, s) }})
	require.Len(t, steps, len(report.Findings))
	for i, finding := range report.Findings {
		require.Equal(t, doctor.OK, finding.Verdict, finding)
		require.Empty(t, finding.Advice, finding)
		require.Equal(t, doctor.Step{Number: i + 1, Of: len(steps), Probe: finding.Probe, Within: doctor.DefaultTimeout}, steps[i])
	}
	require.Equal(t, llmserver.Model, report.Model, "not the one for embeddings")
	require.Equal(t, url, report.BaseURL)
	require.NotNil(t, report.Profile)
	require.Positive(t, report.Profile.FirstToken)
	report.Profile.FirstToken, report.Profile.Token = 0, 0
	require.Equal(t, doctor.Profile{Name: "local", BaseURL: url, Model: llmserver.Model}, *report.Profile)
	require.Zero(t, report.Failures()+report.Warnings())
}

func TestEachFlawIsFoundByItsProbe(t *testing.T) {
	t.Parallel()
	quirk := func(name string) llmserver.Config {
		return llmserver.Config{Script: []llmserver.Answer{{Quirk: name}}}
	}
	for name, row := range map[string]struct {
		server  llmserver.Config
		probe   string
		verdict doctor.Verdict
		detail  string
		advice  string
	}{
		"login page":        {quirk("html"), "stream", doctor.Failed, "text/html", "no OpenAI-compatible server"},
		"cut":               {quirk("cut"), "stream", doctor.Failed, "truncated", "breaks off"},
		"quota":             {quirk("quota"), "stream", doctor.Failed, "quota (status 429)", "no credit"},
		"error in stream":   {quirk("error_late"), "stream", doctor.Failed, "The engine is overloaded", "try again"},
		"one document":      {quirk("document"), "stream", doctor.Warning, "in one document", "until the end"},
		"no end mark":       {quirk("no_done"), "stream", doctor.Warning, "no end mark", "nothing to do"},
		"untyped":           {quirk("stream_as_text"), "stream", doctor.Warning, `content type is "text/plain"`, "other clients"},
		"only reasoning":    {quirk("only_reasoning"), "stream", doctor.Warning, "no visible text", "reasons"},
		"no usage":          {quirk("no_usage"), "usage", doctor.Warning, "not told", "unknown"},
		"limit is ignored":  {quirk("none"), "limit", doctor.Warning, "with a limit of 8 tokens has 12 bytes and the finish reason stop", "looks whole"},
		"no tools":          {quirk("none"), "tools", doctor.Warning, "is not called", "another model"},
		"cut tool calls":    {quirk("tool_calls_length"), "tools", doctor.Failed, "not whole", "another model"},
		"other tool calls":  {quirk("tool_calls"), "tools", doctor.Warning, "does not follow", "another model"},
		"keep-alives":       {quirk("keep_alives"), "keep-alives", doctor.OK, "comments in", ""},
		"told rate limits":  {quirk("limits_told"), "rate limits", doctor.OK, "499 of 500 requests left, whole again in 120ms; 29990 of 30000 tokens left", ""},
		"any model":         {llmserver.Config{}, "errors", doctor.Warning, "is answered for", "wrong name"},
		"unknown model":     {llmserver.Config{Models: []string{"m"}}, "errors", doctor.OK, "config (status 404): model_not_found", ""},
		"no key":            {llmserver.Config{}, "key", doctor.OK, "no key is needed", ""},
		"a key is missing":  {llmserver.Config{Key: key}, "models", doctor.Failed, "status 401", "--api-key-file"},
		"nothing can speak": {llmserver.Config{Models: []string{"whisper-1"}}, "models", doctor.Failed, "no model for conversations", "--model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := examine(t, doctor.Config{BaseURL: serve(t, row.server)})
			finding := find(t, report, row.probe)
			require.Equal(t, row.verdict, finding.Verdict, finding)
			require.Contains(t, finding.Detail, row.detail)
			if row.advice == "" {
				require.Empty(t, finding.Advice)
			}
			require.Contains(t, finding.Advice, row.advice)
		})
	}
}

func TestWrongKeyIsAWrongKey(t *testing.T) {
	t.Parallel()
	report := examine(t, doctor.Config{BaseURL: serve(t, llmserver.Config{Key: key}), APIKey: "sk-another-key-0000000000"})
	finding := find(t, report, "models")
	require.Equal(t, doctor.Failed, finding.Verdict)
	require.Contains(t, finding.Advice, "not the one for this endpoint")
	report = examine(t, doctor.Config{BaseURL: serve(t, llmserver.Config{}), APIKey: key})
	require.Equal(t, "any key is taken", find(t, report, "key").Detail)
}

func TestWhatIsLeftIsSkippedOnceNothingAnswers(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	mux := http.NewServeMux()
	mux.Handle("/v1/", llmserver.New())
	open := httptest.NewServer(mux)
	t.Cleanup(open.Close)
	for name, row := range map[string]struct{ url, model, detail, advice string }{
		"nobody listens": {closed.URL, "", "refused", "that the server runs"},
		"without /v1":    {open.URL, "", "an endpoint at /v1", open.URL + "/v1"},
	} {
		report := examine(t, doctor.Config{BaseURL: row.url, Model: row.model})
		require.Equal(t, doctor.Failed, report.Findings[0].Verdict, name)
		require.Contains(t, report.Findings[0].Detail, row.detail, name)
		require.Contains(t, report.Findings[0].Advice, row.advice, name)
		for _, finding := range report.Findings[1:] {
			require.Equal(t, doctor.Skipped, finding.Verdict, name)
		}
		require.Equal(t, 1, report.Failures(), name)
		require.Nil(t, report.Profile, name)
	}
}

// TestTrialsOfOddServers are against servers that the catalogue does not have.
func TestTrialsOfOddServers(t *testing.T) {
	t.Parallel()
	fake := llmserver.New()
	for name, row := range map[string]struct {
		refuses        func(body string, path string) int
		probe, verdict string
		detail         string
	}{
		"no list of models":     {func(_, path string) int { return status(strings.HasSuffix(path, "/models"), 404) }, "models", "ok", "need not have"},
		"stream options":        {func(body, _ string) int { return status(strings.Contains(body, "stream_options"), 400) }, "usage", "failed", "is refused"},
		"tools are refused":     {func(body, _ string) int { return status(strings.Contains(body, `"tools"`), 400) }, "tools", "warning", "bad_request (status 400)"},
		"limits are refused":    {func(body, _ string) int { return status(strings.Contains(body, `"max_tokens":8`), 422) }, "limit", "failed", "status 422"},
		"errors without reason": {func(body, _ string) int { return status(strings.Contains(body, "no-such-model"), 500) }, "errors", "warning", "an unknown model: provider (status 500)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := readBody(t, r)
				if status := row.refuses(body, r.URL.Path); status != 0 {
					w.WriteHeader(status)
					return
				}
				fake.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			finding := find(t, examine(t, doctor.Config{BaseURL: server.URL + "/v1", Model: llmserver.Model}), row.probe)
			require.EqualValues(t, row.verdict, finding.Verdict, finding)
			require.Contains(t, finding.Detail, row.detail)
		})
	}
}

func TestProbesEndAtTheirDeadline(t *testing.T) {
	t.Parallel()
	url := serve(t, llmserver.Config{Script: []llmserver.Answer{{Deltas: []string{"a"}, FirstDelay: time.Hour}}})
	report := examine(t, doctor.Config{BaseURL: url, Timeout: 200 * time.Millisecond})
	finding := find(t, report, "stream")
	require.Equal(t, "no answer within 200ms", finding.Detail)
	require.Contains(t, finding.Advice, "--timeout")
}

func TestExaminationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, llmserver.Config{})
	report, err := doctor.Examine(ctx, doctor.Config{BaseURL: url, Progress: func(step doctor.Step) {
		if step.Number == 3 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, len(report.Findings), 5)
	for _, base := range []string{"localhost:1", "ftp://x", "http://a\x7f"} {
		c := doctor.Config{BaseURL: base}
		require.Error(t, c.Validate(), base)
		_, err = doctor.Examine(t.Context(), c)
		require.Error(t, err, base)
	}
}

func status(refused bool, code int) int {
	if refused {
		return code
	}
	return 0
}

// readBody reads a request's body and puts it back.
func readBody(t *testing.T, r *http.Request) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}
