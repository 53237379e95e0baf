package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// B25: a redelivery is recognized within the window and up to a number of keys, across restarts; beyond either it is a new turn.
func TestOnlyTheNewestKeysAreRemembered(t *testing.T) {
	const keep = 8
	inBubble(t, func(t *testing.T, h *host) {
		few := func(d *session.Deps) { d.Core.IdempotencyKeys = keep }
		h.model.Otherwise(testkit.Stream("ok"))
		h.stop()
		*h = *start(t, h.journal, h.model, few)
		name := func(i int) string { return fmt.Sprintf("k%d", i) }
		first := make(map[int]messages.TurnID)
		for i := range 3 * keep {
			if i%keep == keep/2 {
				h.stop()
				*h = *start(t, h.journal, h.model, few)
			}
			first[i] = h.submit("pay", keyed(name(i))).GetTurnId()
			h.end(first[i])
		}
		remembered := 0
		for i := range 3 * keep {
			_, found, err := h.journal.Lookup(t.Context(), key, persistence.IndexIdempotency, name(i))
			require.NoError(t, err)
			require.Equal(t, i >= 2*keep, found, i)
			if found {
				remembered++
			}
			_, found, err = h.journal.Lookup(t.Context(), key, persistence.IndexTurn, first[i])
			require.NoError(t, err)
			require.True(t, found, "turns are kept by time alone")
		}
		require.Equal(t, keep, remembered)
		for i := 2 * keep; i < 3*keep; i++ {
			again := h.submit("pay", keyed(name(i)))
			require.Equal(t, "duplicate", again.GetDisposition())
			require.Equal(t, first[i], again.GetTurnId())
			require.Equal(t, "answered", again.GetState())
		}
		old := h.submit("pay", keyed(name(0)))
		require.Equal(t, "started", old.GetDisposition())
		h.end(old.GetTurnId())
		require.Equal(t, "duplicate", h.submit("pay", keyed(name(0))).GetDisposition(), "and is remembered as the newest")
		require.Equal(t, "duplicate", h.submit("pay", keyed(name(2*keep+1))).GetDisposition())
		require.Equal(t, "started", h.submit("pay", keyed(name(2*keep))).GetDisposition(), "it was the oldest")
		synctest.Wait()
	})
}

// A turn can be asked for until its retention is over; a key that lags behind never tells of a turn that is gone.
func TestTurnIsForgottenAfterItsRetention(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		first := h.submit("pay", keyed("k")).GetTurnId()
		h.end(first)
		time.Sleep(h.deps.Core.TurnRetention - time.Second)
		h.end(h.submit("later").GetTurnId())
		status, err := h.client.Turn(t.Context(), key, first)
		require.NoError(t, err)
		require.Equal(t, "answered", status.GetState())
		status, err = h.client.TurnByKey(t.Context(), key, "k")
		require.NoError(t, err)
		require.Equal(t, first, status.GetTurnId())

		time.Sleep(2 * time.Second)
		h.end(h.submit("much later").GetTurnId())
		_, found, err := h.journal.Lookup(t.Context(), key, persistence.IndexIdempotency, "k")
		require.NoError(t, err)
		require.True(t, found, "no other key came: this one lags")
		_, err = h.client.Turn(t.Context(), key, first)
		requireCode(t, messages.CodeUnknownTurn, err)
		_, err = h.client.TurnByKey(t.Context(), key, "k")
		requireCode(t, messages.CodeUnknownTurn, err)
		again := h.submit("pay", keyed("k"))
		require.Equal(t, "started", again.GetDisposition())
		h.end(again.GetTurnId())
	})
}
