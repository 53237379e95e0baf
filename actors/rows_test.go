package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// The list of sessions tells what each has to do without asking any actor, also when no process runs.
func TestARowTellsTheWorkOfItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Delay(time.Second), testkit.Stream("slow")).Otherwise(testkit.Stream("ok"))
		mode := func(m messages.QueueMode) func(*messages.SubmitTurn) {
			return func(t *messages.SubmitTurn) { t.QueueMode = string(m) }
		}
		work := func() persistence.Work {
			t.Helper()
			synctest.Wait()
			rows, _, err := h.client.Sessions(t.Context(), messages.DefaultTenant, "", "", 10)
			require.NoError(t, err)
			require.Len(t, rows, 1)
			return rows[0].Work
		}
		h.submit("runs")
		require.Equal(t, persistence.Work{Running: true}, work())
		h.submit("waits")
		h.submit("waits, merged", mode(messages.QueueFollowup))
		last := h.submit("is merged", mode(messages.QueueFollowup)).GetTurnId()
		require.Equal(t, persistence.Work{Running: true, Waiting: 3}, work())
		h.stop()
		require.Equal(t, persistence.Work{Running: true, Waiting: 3}, rowOf(t, h).Work, "no process runs")
		*h = *start(t, h.journal, h.model, nil)
		h.activate()
		h.end(last)
		require.Zero(t, work())
	})
}

func rowOf(t *testing.T, h *host) persistence.SessionInfo {
	t.Helper()
	info, err := h.journal.Session(t.Context(), key)
	require.NoError(t, err)
	return info
}
