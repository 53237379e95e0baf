package persistence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
)

var session = messages.NewKey("sess_1")

// log is a session's event log and its writer.
type log struct {
	j      *memory.Journal
	expect persistence.Expect
}

func newLog(t *testing.T) *log {
	t.Helper()
	j := memory.New(memory.Config{})
	c, err := j.Claim(t.Context(), session, persistence.Owner{})
	require.NoError(t, err)
	return &log{j, persistence.Expect{Epoch: c.Epoch}}
}

func (l *log) append(t *testing.T, events ...messages.Event) {
	t.Helper()
	batch := persistence.Batch{}
	for i, e := range events {
		enc, err := messages.EncodeEvent(e)
		require.NoError(t, err)
		batch.Records = append(batch.Records, messages.Record{
			ID: messages.NewRecordID(), Stream: messages.StreamEvents, Type: enc.GetType(), Version: enc.GetVersion(),
			Payload: enc.GetPayload(), Time: time.Date(2026, 1, 2, 3, 4, i, 5, time.UTC),
		})
	}
	done := make(chan error, 1)
	l.j.Append(session, l.expect, batch, func(_ persistence.Appended, err error) { done <- err })
	require.NoError(t, <-done)
	l.expect.EventHead += uint64(len(events))
}

func started(stage string) messages.Event { return &messages.StageStarted{StageId: stage} }

// stages decodes what a tail gave, checking that the sequence rises by one.
func stages(t *testing.T, first uint64, events []*messages.StoredEvent) []string {
	t.Helper()
	names := make([]string, len(events))
	for i, e := range events {
		require.Equal(t, first+uint64(i), e.GetSequence())
		require.Equal(t, string(session.Session), e.GetSessionId())
		ev, err := messages.DecodeEvent(e.GetEvent().GetType(), e.GetEvent().GetVersion(), e.GetEvent().GetPayload())
		require.NoError(t, err)
		names[i] = ev.(*messages.StageStarted).GetStageId()
	}
	return names
}

func TestTailWithoutWakeEndsAtTheHead(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.append(t, started("a"), started("b"), started("c"))
	var kept []*messages.StoredEvent
	for e, err := range persistence.Tail(t.Context(), l.j, session, 1, nil) {
		require.NoError(t, err)
		kept = append(kept, e)
	}
	// Kept beyond their step: the journal's buffer has been overwritten meanwhile.
	require.Equal(t, []string{"b", "c"}, stages(t, 2, kept))
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 1, 5, time.UTC), kept[0].GetRecordedAt().AsTime())
}

func TestTailWaitsForWakeAndEndsWithTheCauseOfItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t)
		l.append(t, started("a"))
		cause := errors.New("reader left")
		ctx, cancel := context.WithCancelCause(t.Context())
		wake := make(chan struct{}, 1)
		var seen []*messages.StoredEvent
		var last error
		go func() {
			for e, err := range persistence.Tail(ctx, l.j, session, 0, wake) {
				if last = err; err == nil {
					seen = append(seen, e)
				}
			}
		}()
		synctest.Wait()
		require.Equal(t, []string{"a"}, stages(t, 1, seen))
		l.append(t, started("b"), started("c"))
		synctest.Wait()
		require.Len(t, seen, 1, "nobody woke it")
		wake <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, stages(t, 1, seen))
		wake <- struct{}{} // for nothing
		synctest.Wait()
		require.NoError(t, last)
		cancel(cause)
		synctest.Wait()
		require.ErrorIs(t, last, cause)
	})
}

func TestTailEndsAtTheHeadWhenWakeIsClosed(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.append(t, started("a"))
	wake := make(chan struct{}, 1)
	var seen []*messages.StoredEvent
	for e, err := range persistence.Tail(t.Context(), l.j, session, 0, wake) {
		require.NoError(t, err)
		if seen = append(seen, e); len(seen) == 1 {
			l.append(t, started("b")) // its signal is lost, and the close tells of it
			close(wake)
		}
	}
	require.Equal(t, []string{"a", "b"}, stages(t, 1, seen))
}

func TestTailGivesTheJournalsError(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	require.NoError(t, l.j.Close())
	for _, err := range persistence.Tail(t.Context(), l.j, session, 0, nil) {
		require.ErrorIs(t, err, persistence.ErrClosed)
	}
}

func TestRepositoryFoldsTheWholeEventLog(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	repo := persistence.NewRepository(l.j)
	state, err := repo.RouterState(t.Context(), session)
	require.NoError(t, err)
	require.True(t, state.Equal(router.State{}), "a session without events has the initial state")
	l.append(t, &messages.WorkflowStarted{}, started("a"), &messages.UnknownEvent{Type: "of the future", Version: 9})
	state, err = repo.RouterState(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, router.StatusRunning, state.WorkflowStatus())
	require.Equal(t, "a", state.CurrentStageID)
	require.Equal(t, uint64(3), state.EventSequence, "an unknown event passes through (I1)")
	again, err := repo.RouterState(t.Context(), session)
	require.NoError(t, err)
	require.True(t, state.Equal(again), "replay twice gives the same state (I1)")
}
