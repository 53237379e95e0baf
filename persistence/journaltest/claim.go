package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

func testClaim(t *testing.T, d Driver) {
	rule(t, d, "ANewClaimFencesTheOldWriter", func(t *testing.T, j persistence.Journal) {
		old := claim(t, j, session)
		old.append(t, batchOf(event("e1"), ledger("l1")))
		fresh := claim(t, j, session)
		require.Greater(t, fresh.expect.Epoch, old.expect.Epoch)
		require.Equal(t, uint64(1), fresh.expect.EventHead)
		require.Equal(t, uint64(1), fresh.expect.LedgerHead)
		_, err := old.try(batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrFenced)
		fresh.append(t, batchOf(event("e2")))
		_, err = old.try(batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrFenced)
		require.Equal(t, []string{"e1", "e2"}, payloads(t, j, session, messages.StreamEvents, 0))
	})
	rule(t, d, "AnEpochThatWasNeverGivenIsFenced", func(t *testing.T, j persistence.Journal) {
		_, err := appendTo(j, session, persistence.Expect{}, batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrFenced)
		w := claim(t, j, session)
		w.expect.Epoch++
		_, err = w.try(batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrFenced)
	})
	rule(t, d, "AClaimMakesNoSession", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		require.Zero(t, w.expect.EventHead+w.expect.LedgerHead)
		_, err := j.Session(t.Context(), session)
		require.ErrorIs(t, err, persistence.ErrUnknownSession)
		require.Empty(t, list(t, j, session.Tenant, ""))
	})
	rule(t, d, "TheHeadsOfAClaimCountWhatWasTakenBefore", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for range 30 {
			stored := make(chan error, 1)
			j.Append(session, w.expect, batchOf(event("e")), func(_ persistence.Appended, err error) { stored <- err })
			next := claim(t, j, session)
			err := <-stored
			if err == nil {
				require.Equal(t, w.expect.EventHead+1, next.expect.EventHead)
			} else {
				require.ErrorIs(t, err, persistence.ErrFenced)
				require.Equal(t, w.expect.EventHead, next.expect.EventHead)
			}
			w = next
		}
	})
	rule(t, d, "AClaimRefusesABadKey", func(t *testing.T, j persistence.Journal) {
		_, err := j.Claim(t.Context(), messages.NewKey("a/b"), persistence.Owner{})
		require.ErrorIs(t, err, persistence.ErrInvalid)
		require.ErrorIs(t, err, messages.ErrInvalidID)
	})
	rule(t, d, "AnEndedContextGivesItsCause", func(t *testing.T, j persistence.Journal) {
		claim(t, j, session).append(t, batchOf(event("e")))
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := j.Claim(ctx, session, persistence.Owner{})
		require.ErrorIs(t, err, cause)
		_, err = j.Session(ctx, session)
		require.ErrorIs(t, err, cause)
		_, _, err = j.Lookup(ctx, session, persistence.IndexTurn, "n")
		require.ErrorIs(t, err, cause)
		_, err = j.Stats(ctx)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, j.Delete(ctx, session, persistence.Expect{}), cause)
		require.ErrorIs(t, firstError(j.Replay(ctx, session, messages.StreamEvents, 0)), cause)
		require.ErrorIs(t, firstError(j.Feed(ctx, persistence.Position{}, true)), cause)
		require.ErrorIs(t, firstError(j.Sessions(ctx, session.Tenant, "")), cause)
	})
}

func testDuplicate(t *testing.T, d Driver) {
	rule(t, d, "TheSameIDsAreAnsweredAsTheFirstTime", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		before := w.expect
		batch := batchOf(event("e1"), ledger("l1"), event("e2"))
		first := w.append(t, batch)
		again, err := appendTo(j, session, before, batch)
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		again.Duplicate = false
		require.Equal(t, first, again)
		require.Equal(t, []string{"e1", "e2"}, payloads(t, j, session, messages.StreamEvents, 0))
		w.append(t, batchOf(event("e3")))
	})
	rule(t, d, "OnlyTheLastAppendCountsAsADuplicate", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		before := w.expect
		batch := batchOf(event("e1"))
		w.append(t, batch)
		w.append(t, batchOf(event("e2")))
		_, err := appendTo(j, session, before, batch)
		require.ErrorIs(t, err, persistence.ErrConflict)
	})
	rule(t, d, "OtherIDsAreAConflict", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		before := w.expect
		shared := event("e1")
		w.append(t, batchOf(shared, event("e2")))
		_, err := appendTo(j, session, before, batchOf(shared))
		require.ErrorIs(t, err, persistence.ErrConflict)
		_, err = appendTo(j, session, before, batchOf(shared, event("e2")))
		require.ErrorIs(t, err, persistence.ErrConflict)
	})
	rule(t, d, "ANewEpochIsNotAnsweredForTheOldOne", func(t *testing.T, j persistence.Journal) {
		old := claim(t, j, session)
		before := old.expect
		batch := batchOf(event("e1"))
		old.append(t, batch)
		fresh := claim(t, j, session)
		_, err := appendTo(j, session, before, batch)
		require.ErrorIs(t, err, persistence.ErrFenced)
		before.Epoch = fresh.expect.Epoch
		_, err = appendTo(j, session, before, batch)
		require.ErrorIs(t, err, persistence.ErrConflict)
	})
}
