package doctor

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

func TestNamesAreMadeOfHosts(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://api.groq.com/openai/v1": "groq", "http://127.0.0.1:11434/v1": "local",
		"http://[::1]:1/v1": "local", "http://localhost/v1": "local", "http://gpu7:8000/v1": "gpu7",
	} {
		require.Equal(t, want, nameOf(base), base)
	}
}

func TestLimitsOfAMinuteAreTakenOver(t *testing.T) {
	t.Parallel()
	for want, limit := range map[int]openai.RateLimit{
		500:   {Limit: 500, Remaining: 499, Reset: 120 * time.Millisecond, Known: true},
		30000: {Limit: 30000, Remaining: 29000, Reset: 2 * time.Second, Known: true},
		0:     {Limit: 14400, Remaining: 14399, Reset: 6 * time.Second, Known: true}, // of a day
	} {
		require.Equal(t, want, perMinute(limit))
	}
	require.Zero(t, perMinute(openai.RateLimit{Remaining: 5, Known: true}))
	require.Zero(t, perMinute(openai.RateLimit{}))
}

// inBubble runs all probes against an answer whose times are virtual.
func inBubble(t *testing.T, answer llmserver.Answer, check func(findings map[string]Finding, e *exam)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, stop := llmserver.New(answer).Pipe()
		wire := &tap{next: client.Transport}
		tapped := &http.Client{Transport: wire}
		provider, err := openai.New(openai.Config{BaseURL: llmserver.PipeURL, HTTPClient: tapped})
		require.NoError(t, err)
		e := &exam{
			config: Config{BaseURL: llmserver.PipeURL, Timeout: time.Hour}, provider: provider, client: tapped, wire: wire, model: llmserver.Model,
		}
		findings := make(map[string]Finding)
		for _, p := range e.probes() {
			findings[p.name] = e.carryOut(t.Context(), p)
		}
		check(findings, e)
		stop()
	})
}

func TestTimesAreMeasured(t *testing.T) {
	t.Parallel()
	inBubble(t, llmserver.Answer{Echo: true, FirstDelay: 20 * time.Second, Delay: 10 * time.Second}, func(findings map[string]Finding, e *exam) {
		require.Equal(t, Warning, findings["first token"].Verdict)
		require.Contains(t, findings["first token"].Detail, "20s (20s to 20s, ")
		require.Equal(t, Warning, findings["keep-alives"].Verdict)
		require.Contains(t, findings["keep-alives"].Detail, "longest silence 20s")
		require.Equal(t, 20*time.Second, e.profile().FirstToken)
		require.Equal(t, 20*time.Second, e.profile().Token, "between the first chunk, which has no text, and the second")
		require.Equal(t, OK, findings["stream"].Verdict, findings["stream"])
		require.Equal(t, OK, findings["cancel"].Verdict, findings["cancel"])
		require.Equal(t, OK, findings["parallel"].Verdict, findings["parallel"])
	})
}

func TestCollectedStreamsAreFound(t *testing.T) {
	t.Parallel()
	inBubble(t, llmserver.Answer{Echo: true, FirstDelay: 3 * time.Second}, func(findings map[string]Finding, _ *exam) {
		require.Contains(t, findings["stream"].Detail, "all at once after a wait")
		require.Contains(t, findings["stream"].Advice, "buffering")
	})
}

// oneByOne serves one request after the other, and each to its end, whether its client is there or not.
type oneByOne struct {
	turn chan struct{}
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *oneByOne) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case o.turn <- struct{}{}:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	time.AfterFunc(30*time.Second, func() { <-o.turn })
	return o.next.RoundTrip(req)
}

func TestServerThatFinishesWhatWasCancelledIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, stop := llmserver.New(llmserver.Answer{Echo: true, FirstDelay: time.Second, Delay: time.Second}).Pipe()
		wire := &tap{next: &oneByOne{turn: make(chan struct{}, 1), next: client.Transport}}
		tapped := &http.Client{Transport: wire}
		provider, err := openai.New(openai.Config{BaseURL: llmserver.PipeURL, HTTPClient: tapped})
		require.NoError(t, err)
		e := &exam{
			config: Config{BaseURL: llmserver.PipeURL, Timeout: time.Hour}, provider: provider, client: tapped, wire: wire, model: llmserver.Model,
		}
		require.Equal(t, OK, e.carryOut(t.Context(), probe{"stream", e.stream}).Verdict)
		time.Sleep(time.Minute)
		finding := e.carryOut(t.Context(), probe{"cancel", e.cancel})
		require.Equal(t, Warning, finding.Verdict, finding)
		require.Contains(t, finding.Advice, "finish what was cancelled")
		time.Sleep(time.Minute)
		finding = e.carryOut(t.Context(), probe{"parallel", e.parallel})
		require.Equal(t, Warning, finding.Verdict, finding)
		require.Contains(t, finding.Advice, "one after the other")
		require.Equal(t, 1, e.profile().Concurrent)
		time.Sleep(time.Minute)
		stop()
	})
}
