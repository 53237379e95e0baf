package testkit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

// writer appends to one session and keeps its heads.
type writer struct {
	t      *testing.T
	j      *testkit.FaultyJournal
	key    messages.Key
	expect persistence.Expect
}

func newWriter(t *testing.T, j *testkit.FaultyJournal) *writer {
	t.Helper()
	w := &writer{t: t, j: j, key: messages.NewKey("s")}
	claim, err := j.Claim(t.Context(), w.key, persistence.Owner{})
	require.NoError(t, err)
	w.expect.Epoch = claim.Epoch
	return w
}

func batch(t *testing.T) persistence.Batch {
	t.Helper()
	name, version, payload, err := messages.EncodeLedger(&messages.OutputReserved{UpTo: 1})
	require.NoError(t, err)
	return persistence.Batch{Records: []messages.Record{{
		ID: messages.NewRecordID(), Stream: messages.StreamLedger, Type: name, Version: version, Payload: payload,
	}}}
}

func (w *writer) append(b persistence.Batch) (persistence.Appended, error) {
	w.t.Helper()
	type answer struct {
		res persistence.Appended
		err error
	}
	answered := make(chan answer, 1)
	w.j.Append(w.key, w.expect, b, func(res persistence.Appended, err error) { answered <- answer{res, err} })
	a := <-answered
	if a.err == nil {
		w.expect.EventHead, w.expect.LedgerHead = a.res.EventHead, a.res.LedgerHead
	}
	return a.res, a.err
}

func (w *writer) stored() int {
	w.t.Helper()
	records, err := testkit.ReadAll(w.t.Context(), w.j, w.key, messages.StreamLedger)
	require.NoError(w.t, err)
	return len(records)
}

func TestJournalFailsTheNextAppendsInTheOrderOfTheFaults(t *testing.T) {
	t.Parallel()
	j := testkit.NewFaultyJournal(nil)
	w := newWriter(t, j)
	j.FailNext(2, persistence.ErrFull)
	j.Pass(1)
	j.ConflictNext()
	for range 2 {
		_, err := w.append(batch(t))
		require.ErrorIs(t, err, persistence.ErrFull)
	}
	_, err := w.append(batch(t))
	require.NoError(t, err)
	_, err = w.append(batch(t))
	require.ErrorIs(t, err, persistence.ErrConflict)
	var conflict *persistence.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, uint64(1), conflict.LedgerHead)
	_, err = w.append(batch(t))
	require.NoError(t, err)
	require.Equal(t, 2, w.stored())
	stored, failed := j.Appends()
	require.Equal(t, 2, stored)
	require.Equal(t, 3, failed)
}

func TestJournalUnknownAppendIsAnsweredByTheSecondTry(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		j := testkit.NewFaultyJournal(nil)
		w := newWriter(t, j)
		j.UnknownNext(stored)
		b := batch(t)
		_, err := w.append(b)
		require.ErrorIs(t, err, persistence.ErrUnknown)
		res, err := w.append(b)
		require.NoError(t, err)
		require.Equal(t, stored, res.Duplicate)
		require.Equal(t, 1, w.stored())
	}
}

func TestJournalStolenEpochFencesTheWriter(t *testing.T) {
	t.Parallel()
	j := testkit.NewFaultyJournal(nil)
	w := newWriter(t, j)
	claim, err := j.StealEpoch(t.Context(), w.key)
	require.NoError(t, err)
	require.Greater(t, claim.Epoch, w.expect.Epoch)
	_, err = w.append(batch(t))
	require.ErrorIs(t, err, persistence.ErrFenced)
	require.Zero(t, w.stored())
}

func TestJournalHoldsAndDelaysWithoutBlockingTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := testkit.NewFaultyJournal(nil)
		w := newWriter(t, j)
		order := make(chan int, 3)
		j.Hold()
		for i := range 3 {
			b := batch(t)
			j.Append(w.key, w.expect, b, func(persistence.Appended, error) { order <- i })
			b.Records[0].Payload[0] = 0xff // the caller may use it again
			w.expect.LedgerHead++
		}
		time.Sleep(time.Hour)
		require.Empty(t, order)
		require.Equal(t, 3, j.Waiting())
		j.Delay(time.Second)
		begin := time.Now()
		j.Release()
		for i := range 3 {
			require.Equal(t, i, <-order)
		}
		require.Equal(t, 3*time.Second, time.Since(begin))
		synctest.Wait()
		require.Zero(t, j.Waiting())
		require.Equal(t, 3, w.stored())
	})
}

func TestJournalCloseCarriesOutWhatIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Config{})
		j := testkit.NewFaultyJournal(inner)
		w := newWriter(t, j)
		j.Hold()
		var err error
		answered := false
		j.Append(w.key, w.expect, batch(t), func(_ persistence.Appended, e error) { answered, err = true, e })
		require.NoError(t, j.Close())
		require.True(t, answered)
		require.NoError(t, err)
		require.ErrorIs(t, inner.Healthy(), persistence.ErrClosed)
		require.NoError(t, j.Close())
	})
}

func TestJournalFailsClaimsAndReads(t *testing.T) {
	t.Parallel()
	ctx, cause := t.Context(), errors.New("cause")
	j := testkit.NewFaultyJournal(nil)
	key := messages.NewKey("s")
	j.FailClaims(1, cause)
	_, err := j.Claim(ctx, key, persistence.Owner{})
	require.ErrorIs(t, err, cause)
	_, err = j.Claim(ctx, key, persistence.Owner{})
	require.NoError(t, err)
	j.FailReads(3, cause)
	_, _, err = j.Lookup(ctx, key, persistence.IndexTurn, "t")
	require.ErrorIs(t, err, cause)
	_, err = testkit.ReadAll(ctx, j, key, messages.StreamEvents)
	require.ErrorIs(t, err, cause)
	_, err = j.Session(ctx, key)
	require.ErrorIs(t, err, cause)
	_, err = j.Session(ctx, key)
	require.ErrorIs(t, err, persistence.ErrUnknownSession)
}

func TestJournalFailsReplaysInTheirMidst(t *testing.T) {
	t.Parallel()
	j := testkit.NewFaultyJournal(nil)
	w := newWriter(t, j)
	for range 3 {
		_, err := w.append(batch(t))
		require.NoError(t, err)
	}
	boom := errors.New("boom")
	j.FailReplaysAfter(2, boom)
	some, err := testkit.ReadAll(t.Context(), j, w.key, messages.StreamLedger)
	require.ErrorIs(t, err, boom)
	require.Len(t, some, 2)
	require.Equal(t, 3, w.stored(), "one replay alone is hit")
	require.Equal(t, 2, j.Replays())
}
