package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// What nobody counted is estimated, prompt and answer: neither a provider that keeps silent about its usage nor an abort before
// the first token makes a run free.
func TestBudgetCountsWhatNobodyReported(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, h *host){
		"no usage reported": func(t *testing.T, h *host) {
			h.model.Call(testkit.Stream("ok"))
			h.end(h.submit(strings.Repeat("word ", 100)).GetTurnId())
		},
		"aborted before the first token": func(t *testing.T, h *host) {
			h.model.Call(testkit.HangUntilCancel())
			accepted := h.submit(strings.Repeat("word ", 100))
			synctest.Wait()
			_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
			require.NoError(t, err)
			h.end(accepted.GetTurnId())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.stop()
				*h = *start(t, h.journal, h.model, func(d *session.Deps) { d.Core.TokensPerDay = 100 })
				run(t, h)
				_, err := h.client.Submit(t.Context(), key, turn("more"))
				requireCode(t, messages.CodeBudgetExceeded, err)
			})
		})
	}
}
