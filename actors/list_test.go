package actors_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/bolt"
	"github.com/correx/correx-actors/testkit"
)

// list gives all sessions in a state, by id.
func (h *host) list(state directory.State) map[messages.SessionID]actors.SessionSummary {
	h.t.Helper()
	synctest.Wait()
	all := make(map[messages.SessionID]actors.SessionSummary)
	rows, more, err := h.client.Sessions(h.t.Context(), messages.DefaultTenant, state, "", directory.MaxPage)
	require.NoError(h.t, err)
	require.False(h.t, more)
	for _, row := range rows {
		require.NotContains(h.t, all, row.Key.Session)
		require.True(h.t, state == "" || row.State == state)
		all[row.Key.Session] = row
	}
	return all
}

// states lists all sessions, and checks that each is in the list of its state, and in no other.
func (h *host) states() map[messages.SessionID]directory.State {
	h.t.Helper()
	states := make(map[messages.SessionID]directory.State)
	for id, row := range h.list("") {
		states[id] = row.State
	}
	listed := 0
	for _, state := range []directory.State{
		actors.SessionBusy, actors.SessionIdle, actors.SessionPassivated, actors.SessionQuarantined,
	} {
		for id := range h.list(state) {
			require.Equal(h.t, state, states[id], id)
			listed++
		}
	}
	require.Len(h.t, states, listed)
	return states
}

func (h *host) submitTo(id messages.SessionID, text string) {
	h.t.Helper()
	_, err := h.client.Submit(h.t.Context(), messages.NewKey(id), turn(text))
	require.NoError(h.t, err)
}

func TestAListTellsWhereEachSessionIs(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.Stream("c")).Call(testkit.Stream("b")).Call(testkit.WaitFor(gate)).Otherwise(testkit.Stream("ok"))
		require.Empty(t, h.states())
		h.submitTo("c", "hi")
		synctest.Wait()
		last := time.Now()
		time.Sleep(2 * h.deps.Idle)
		h.submitTo("b", "hi")
		synctest.Wait()
		h.submitTo("a", "runs")
		h.submitTo("a", "waits")
		_, err := h.client.State(t.Context(), messages.NewKey("nobody"))
		requireCode(t, messages.CodeUnknownSession, err)
		want := map[messages.SessionID]directory.State{
			"a": actors.SessionBusy, "b": actors.SessionIdle, "c": actors.SessionPassivated,
		}
		require.Equal(t, want, h.states())

		time.Sleep(time.Minute)
		_, err = h.client.State(t.Context(), messages.NewKey("c"))
		require.NoError(t, err)
		require.Equal(t, actors.SessionIdle, h.states()["c"])
		require.WithinDuration(t, last, h.list("")["c"].LastAppend, time.Second, "reading is no activity")

		// Killed: what is left is known before anything is activated, and no list activates anything.
		h.stop()
		*h = *start(t, h.journal, h.model, nil)
		require.Equal(t, map[messages.SessionID]directory.State{
			"a": actors.SessionPassivated, "b": actors.SessionPassivated, "c": actors.SessionPassivated,
		}, h.states())
		require.Equal(t, persistence.Work{Running: true, Waiting: 1}, h.list("")["a"].Work)
		active, err := h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active)

		h.activate()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Equal(t, actors.SessionIdle, h.states()["a"])
		require.Zero(t, h.list("")["a"].Work)
		time.Sleep(2 * h.deps.Idle)
		require.Equal(t, actors.SessionPassivated, h.states()["a"])
	})
}

func TestAListTellsTheDepthOfAQueueInEachMode(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.HangUntilCancel())
		check := func(running bool, waiting uint32) {
			t.Helper()
			row := h.list("")[key.Session]
			require.Equal(t, persistence.Work{Running: running, Waiting: waiting}, row.Work)
			require.Equal(t, row.Open, running || waiting > 0)
			want := len(h.state().GetPendingSteers())
			for _, waits := range h.state().GetQueue() {
				want += 1 + len(waits.GetMergedTurnIds())
			}
			require.EqualValues(t, want, waiting, "as the session itself tells")
		}
		h.submit("runs")
		check(true, 0)
		collected := h.submit("waits", mode(messages.QueueCollect))
		check(true, 1)
		h.submit("waits", mode(messages.QueueFollowup))
		check(true, 2)
		h.submit("joins", mode(messages.QueueFollowup))
		check(true, 3)
		h.submit("is refused and waits", mode(messages.QueueSteer))
		check(true, 4)
		h.submit("is refused and waits", mode(messages.QueueSteerBacklog))
		check(true, 5)
		h.submit("runs instead", mode(messages.QueueInterrupt))
		check(true, 5)
		_, _, err := h.client.Withdraw(t.Context(), key, collected.GetTurnId())
		require.NoError(t, err)
		check(true, 4)
		_, err = h.client.Abort(t.Context(), key, &messages.Abort{Scope: string(messages.AbortSession)})
		require.NoError(t, err)
		check(false, 0)
		require.Equal(t, actors.SessionIdle, h.states()[key.Session])
	})
}

func TestAListTellsWhichSessionsAreQuarantined(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		for _, id := range []messages.SessionID{"a", "b", "c"} {
			h.submitTo(id, "hi")
		}
		synctest.Wait()
		time.Sleep(2 * h.deps.Idle)
		b := messages.NewKey("b")
		h.journal.Damage(b, messages.StreamLedger, 1)
		require.Equal(t, actors.SessionPassivated, h.states()["b"], "nobody has tried")
		_, err := h.client.State(t.Context(), b)
		requireCode(t, messages.CodeQuarantined, err)
		for range 2 { // also when it has left memory again
			require.Equal(t, map[messages.SessionID]directory.State{
				"a": actors.SessionPassivated, "b": actors.SessionQuarantined, "c": actors.SessionPassivated,
			}, h.states())
			time.Sleep(2 * h.deps.Idle)
		}
		row := h.list("")["b"]
		require.False(t, row.Damaged)
		require.NotZero(t, row.LastAppend, "its row is good")

		require.True(t, h.journal.Repair(b, messages.StreamLedger, 1))
		_, err = h.client.State(t.Context(), b)
		require.NoError(t, err)
		time.Sleep(2 * h.deps.Idle)
		require.Equal(t, actors.SessionPassivated, h.states()["b"])
	})
}

func TestADamagedRowHidesNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := bolt.Config{Path: filepath.Join(t.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler)}
		open := func() *host {
			journal, err := bolt.Open(cfg)
			require.NoError(t, err)
			return start(t, testkit.NewFaultyJournal(journal), testkit.NewProvider(t).Otherwise(testkit.Stream("ok")), nil)
		}
		h := open()
		for _, id := range []messages.SessionID{"a", "b", "c"} {
			h.submitTo(id, "hi")
		}
		synctest.Wait()
		h.stop()
		require.NoError(t, h.journal.Close())
		damageRow(t, cfg.Path, 2)

		h = open()
		defer func() {
			h.stop()
			require.NoError(t, h.journal.Close())
		}()
		require.Equal(t, map[messages.SessionID]directory.State{
			"a": actors.SessionPassivated, "b": actors.SessionQuarantined, "c": actors.SessionPassivated,
		}, h.states())
		require.Equal(t, actors.SessionSummary{
			SessionInfo: persistence.SessionInfo{Key: messages.NewKey("b")}, State: actors.SessionQuarantined, Damaged: true,
		}, h.list("")["b"])
		_, err := h.client.State(t.Context(), messages.NewKey("b"))
		requireCode(t, messages.CodeQuarantined, err)
		require.Equal(t, actors.SessionQuarantined, h.states()["b"])
	})
}

// damageRow flips a bit in the row of the nth session of a closed journal.
func damageRow(t *testing.T, path string, n byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		rows, number := tx.Bucket([]byte("sessions")), []byte{0, 0, 0, 0, 0, 0, 0, n}
		row := append([]byte(nil), rows.Get(number)...)
		row[10] ^= 1
		return rows.Put(number, row)
	}))
	require.NoError(t, db.Close())
}
