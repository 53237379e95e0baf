package journaltest

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// firstError gives the error that a sequence ends with.
func firstError[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

func testReplay(t *testing.T, d Driver) {
	rule(t, d, "YieldsWhatLiesAfterASequence", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(events("e", 5)...))
		for after, want := range [][]string{
			{"e-1", "e-2", "e-3", "e-4", "e-5"}, {"e-2", "e-3", "e-4", "e-5"}, {"e-3", "e-4", "e-5"}, {"e-4", "e-5"}, {"e-5"}, {}, {},
		} {
			require.Equal(t, want, payloads(t, j, session, messages.StreamEvents, uint64(after)), "after %d", after)
		}
		require.Empty(t, payloads(t, j, session, messages.StreamEvents, 1<<63))
	})
	rule(t, d, "ASessionWithoutRecordsYieldsNone", func(t *testing.T, j persistence.Journal) {
		require.Empty(t, payloads(t, j, session, messages.StreamEvents, 0))
		claim(t, j, session).append(t, batchOf(event("e")))
		require.Empty(t, payloads(t, j, session, messages.StreamLedger, 0))
	})
	rule(t, d, "LongStreamsComeWholeAndInOrder", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		const appends, each = 6, 250
		for i := range appends {
			w.append(t, batchOf(append(events(strconv.Itoa(i), each), ledger("l"))...))
		}
		got := payloads(t, j, session, messages.StreamEvents, 0)
		require.Len(t, got, appends*each)
		for i, text := range got {
			require.Equal(t, fmt.Sprintf("%d-%d", i/each, i%each+1), text)
		}
		require.Len(t, payloads(t, j, session, messages.StreamLedger, 0), appends)
	})
	rule(t, d, "EndsAtTheHeadOfItsStart", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(events("e", 3)...))
		seen := 0
		for _, err := range j.Replay(t.Context(), session, messages.StreamEvents, 0) {
			require.NoError(t, err)
			seen++
			// The loop may append: no transaction is open while its body runs.
			w.append(t, batchOf(event("later")))
		}
		require.Equal(t, 3, seen)
		require.Len(t, payloads(t, j, session, messages.StreamEvents, 0), 6)
	})
	rule(t, d, "AReaderThatStaysBlocksNobody", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(events("e", 600)...))
		seen := 0
		for rec, err := range j.Replay(t.Context(), session, messages.StreamEvents, 0) {
			require.NoError(t, err)
			if seen++; rec.Seq%100 == 0 {
				other := claim(t, j, messages.NewKey(messages.SessionID(fmt.Sprintf("other-%d", rec.Seq))))
				other.append(t, batchOf(events("o", 50)...))
			}
		}
		require.Equal(t, 600, seen)
	})
	rule(t, d, "CanBeStoppedAndStartedAgain", func(t *testing.T, j persistence.Journal) {
		claim(t, j, session).append(t, batchOf(events("e", 5)...))
		replay := j.Replay(t.Context(), session, messages.StreamEvents, 0)
		for range 2 {
			for rec, err := range replay {
				require.NoError(t, err)
				if rec.Seq == 2 {
					break
				}
			}
		}
	})
	rule(t, d, "FoldsWithTheReducersErrorAndPlace", func(t *testing.T, j persistence.Journal) {
		claim(t, j, session).append(t, batchOf(events("e", 3)...))
		count := func(n int, _ messages.Record) (int, error) { return n + 1, nil }
		n, head, err := persistence.Replay(t.Context(), j, session, messages.StreamEvents, 1, 10, count)
		require.NoError(t, err)
		require.Equal(t, 12, n)
		require.Equal(t, uint64(3), head)
		bad := errors.New("bad")
		_, head, err = persistence.Replay(t.Context(), j, session, messages.StreamEvents, 0, 0,
			func(n int, rec messages.Record) (int, error) {
				if rec.Seq == 3 {
					return 0, bad
				}
				return n, nil
			})
		require.ErrorIs(t, err, bad)
		require.Equal(t, uint64(2), head)
	})
}

func testIndex(t *testing.T, d Driver) {
	put := func(index persistence.Index, name, value string) persistence.IndexPut {
		return persistence.IndexPut{Index: index, Name: name, Value: []byte(value)}
	}
	lookup := func(t *testing.T, j persistence.Journal, key messages.Key, index persistence.Index, name string) string {
		t.Helper()
		value, found, err := j.Lookup(t.Context(), key, index, name)
		require.NoError(t, err)
		if !found {
			return "none"
		}
		return string(value)
	}
	rule(t, d, "PutsReplacesAndRemoves", func(t *testing.T, j persistence.Journal) {
		const turn, idem = persistence.IndexTurn, persistence.IndexIdempotency
		require.Equal(t, "none", lookup(t, j, session, turn, "a"))
		w := claim(t, j, session)
		other := claim(t, j, messages.NewKey("other"))
		batch := batchOf(event("e"))
		batch.Index = []persistence.IndexPut{put(turn, "a", "1"), put(idem, "a", "2"), put(turn, "ab", ""), put(turn, "z", "9")}
		w.append(t, batch)
		other.append(t, batchOf(event("e")))
		require.Equal(t, "1", lookup(t, j, session, turn, "a"))
		require.Equal(t, "2", lookup(t, j, session, idem, "a"))
		require.Empty(t, lookup(t, j, session, turn, "ab"))
		require.Equal(t, "none", lookup(t, j, other.key, turn, "a"))
		batch = batchOf(ledger("l"))
		batch.Index = []persistence.IndexPut{
			put(turn, "a", "3"),
			{Index: idem, Name: "a"},
			{Index: turn, Name: "never was"},
			put(turn, "z", "10"),
			{Index: turn, Name: "z"},
			put(turn, "z", "11"),
		}
		w.append(t, batch)
		require.Equal(t, "3", lookup(t, j, session, turn, "a"))
		require.Equal(t, "none", lookup(t, j, session, idem, "a"))
		require.Equal(t, "11", lookup(t, j, session, turn, "z"))
	})
	rule(t, d, "AValueIsTheCallersToChange", func(t *testing.T, j persistence.Journal) {
		batch := batchOf(event("e"))
		batch.Index = []persistence.IndexPut{put(persistence.IndexTurn, "a", "value")}
		claim(t, j, session).append(t, batch)
		value, _, err := j.Lookup(t.Context(), session, persistence.IndexTurn, "a")
		require.NoError(t, err)
		copy(value, "XXXXX")
		require.Equal(t, "value", lookup(t, j, session, persistence.IndexTurn, "a"))
	})
}

func testPrune(t *testing.T, d Driver) {
	prune := func(records ...messages.Record) persistence.Batch {
		batch := batchOf(records...)
		batch.PruneLedger = true
		return batch
	}
	rule(t, d, "RemovesTheLedgerBeforeTheCheckpoint", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1"), ledger("l1"), ledger("l2"), ledger("l3")))
		require.Equal(t, uint64(1), info(t, j, session).LedgerStart)
		w.append(t, prune(event("e2"), ledger("check-1"), ledger("l5")))
		require.Equal(t, []string{"check-1", "l5"}, payloads(t, j, session, messages.StreamLedger, 0))
		require.Equal(t, []string{"l5"}, payloads(t, j, session, messages.StreamLedger, 4))
		require.Equal(t, []string{"check-1", "l5"}, payloads(t, j, session, messages.StreamLedger, 1))
		require.Equal(t, []string{"e1", "e2"}, payloads(t, j, session, messages.StreamEvents, 0))
		row := info(t, j, session)
		require.Equal(t, uint64(4), row.LedgerStart)
		require.Equal(t, uint64(5), row.LedgerHead)
		w.append(t, prune(ledger("check-2")))
		require.Equal(t, []string{"check-2"}, payloads(t, j, session, messages.StreamLedger, 0))
	})
	rule(t, d, "AnEmptyLedgerMayBeginWithACheckpoint", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1")))
		require.Zero(t, info(t, j, session).LedgerStart)
		w.append(t, prune(ledger("check-1")))
		require.Equal(t, []string{"check-1"}, payloads(t, j, session, messages.StreamLedger, 0))
		require.Equal(t, uint64(1), info(t, j, session).LedgerStart)
	})
	rule(t, d, "AReplayThatIsOvertakenGoesOnAtTheCheckpoint", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for range 700 {
			w.append(t, batchOf(ledger("old")))
		}
		var last messages.Record
		for rec, err := range j.Replay(t.Context(), session, messages.StreamLedger, 0) {
			require.NoError(t, err)
			if rec.Seq == 1 {
				w.append(t, prune(ledger("check")))
			}
			last = rec
			last.Payload = append([]byte{}, rec.Payload...)
		}
		require.Equal(t, "check", string(last.Payload))
		require.Equal(t, uint64(701), last.Seq)
	})
}
