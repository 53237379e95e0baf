package journaltest

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

func testAppend(t *testing.T, d Driver) {
	rule(t, d, "StoresBothStreamsWithSequencesOfTheirOwn", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		res := w.append(t, batchOf(event("e1"), ledger("l1"), event("e2")))
		require.Equal(t, uint64(2), res.EventHead)
		require.Equal(t, uint64(1), res.LedgerHead)
		require.NotZero(t, res.Position)
		res = w.append(t, batchOf(ledger("l2")))
		require.Equal(t, persistence.Appended{EventHead: 2, LedgerHead: 2}, res)
		require.Equal(t, []string{"e1", "e2"}, payloads(t, j, session, messages.StreamEvents, 0))
		require.Equal(t, []string{"l1", "l2"}, payloads(t, j, session, messages.StreamLedger, 0))
	})
	rule(t, d, "KeepsEveryFieldOfARecord", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		rec := event("payload")
		rec.Flags, rec.Version = messages.FlagIgnorable, 1<<32-1
		w.append(t, batchOf(rec))
		got, err := collect(t, j, session, messages.StreamEvents, 0)
		require.NoError(t, err)
		rec.Seq, rec.Epoch = 1, w.expect.Epoch
		require.Equal(t, []messages.Record{rec}, got)
	})
	rule(t, d, "KeepsUnknownTypesByteForByte", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		payload := string([]byte{0, 255, 1, 128, 10, 0})
		for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
			rec := record(stream, payload)
			rec.Type, rec.Version = "type.of/the future: ünïcode", 7
			empty := record(stream, "")
			empty.Type = "empty"
			w.append(t, batchOf(rec, empty))
			got, err := collect(t, j, session, stream, 0)
			require.NoError(t, err)
			require.Equal(t, rec.Type, got[0].Type)
			require.Equal(t, uint32(7), got[0].Version)
			require.Equal(t, payload, string(got[0].Payload))
			require.Empty(t, got[1].Payload)
		}
	})
	rule(t, d, "StoresAllOrNothing", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1")))
		stale := w.expect
		stale.EventHead = 0
		batch := batchOf(event("no"), ledger("no"))
		batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "no", Value: []byte("no")}}
		batch.Open = persistence.OpenSet
		_, err := appendTo(j, session, stale, batch)
		require.ErrorIs(t, err, persistence.ErrConflict)
		require.Equal(t, []string{"e1"}, payloads(t, j, session, messages.StreamEvents, 0))
		require.Empty(t, payloads(t, j, session, messages.StreamLedger, 0))
		_, found, err := j.Lookup(t.Context(), session, persistence.IndexTurn, "no")
		require.NoError(t, err)
		require.False(t, found)
		require.False(t, info(t, j, session).Open)
	})
	rule(t, d, "RefusesAHeadThatIsNotExpectedAndTellsTheHeads", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1"), ledger("l1"), ledger("l2")))
		for _, wrong := range []persistence.Expect{
			{EventHead: 0, LedgerHead: 2}, {EventHead: 2, LedgerHead: 2}, {EventHead: 1, LedgerHead: 1}, {EventHead: 1, LedgerHead: 3},
		} {
			wrong.Epoch = w.expect.Epoch
			_, err := appendTo(j, session, wrong, batchOf(event("no")))
			require.ErrorIs(t, err, persistence.ErrConflict)
			var conflict *persistence.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, persistence.ConflictError{Key: session, Expect: wrong, EventHead: 1, LedgerHead: 2}, *conflict)
		}
		w.append(t, batchOf(event("e2")))
	})
	rule(t, d, "LeavesTheBatchToItsCaller", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		batch := batchOf(event("payload"))
		batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "n", Value: []byte("value")}}
		answered := make(chan answer, 1)
		j.Append(session, w.expect, batch, func(res persistence.Appended, err error) { answered <- answer{res, err} })
		copy(batch.Records[0].Payload, "XXXXXXX")
		copy(batch.Index[0].Value, "XXXXX")
		batch.Records[0].Type = "X"
		batch.Index[0].Name = "X"
		require.NoError(t, (<-answered).err)
		require.Equal(t, []string{"payload"}, payloads(t, j, session, messages.StreamEvents, 0))
		value, found, err := j.Lookup(t.Context(), session, persistence.IndexTurn, "n")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "value", string(value))
	})
	rule(t, d, "KeepsTenantsApart", func(t *testing.T, j persistence.Journal) {
		other := messages.Key{Tenant: "other", Session: session.Session}
		claim(t, j, session).append(t, batchOf(event("mine")))
		claim(t, j, other).append(t, batchOf(event("theirs")))
		require.Equal(t, []string{"mine"}, payloads(t, j, session, messages.StreamEvents, 0))
		require.Equal(t, []string{"theirs"}, payloads(t, j, other, messages.StreamEvents, 0))
	})
}

func testOrder(t *testing.T, d Driver) {
	rule(t, d, "AnswersNeverOnTheCallersGoroutine", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		// A done that ran inside Append would deadlock here.
		var mu sync.Mutex
		for range 20 {
			answered := make(chan struct{})
			mu.Lock()
			j.Append(session, w.expect, batchOf(event("e")), func(persistence.Appended, error) {
				mu.Lock()
				defer mu.Unlock()
				close(answered)
			})
			mu.Unlock()
			<-answered
			mu.Lock()
			refused := make(chan struct{})
			j.Append(session, w.expect, persistence.Batch{}, func(persistence.Appended, error) {
				mu.Lock()
				defer mu.Unlock()
				close(refused)
			})
			mu.Unlock()
			<-refused
		}
	})
	rule(t, d, "AnswersOneSessionInTheOrderOfItsCalls", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		const n = 300
		order := make(chan int, n)
		for i := range n {
			batch := batchOf(event(strconv.Itoa(i)))
			expect := w.expect
			switch i % 10 {
			case 3:
				batch = persistence.Batch{} // refused at once, and still not before its turn
			case 7:
				expect.EventHead += 1000
			default:
				w.expect.EventHead++
			}
			j.Append(session, expect, batch, func(persistence.Appended, error) { order <- i })
		}
		for i := range n {
			require.Equal(t, i, <-order)
		}
		require.Len(t, payloads(t, j, session, messages.StreamEvents, 0), n*8/10)
	})
	rule(t, d, "ManySessionsAtOnceMixNothing", func(t *testing.T, j persistence.Journal) {
		const sessions, each = 40, 25
		var wg sync.WaitGroup
		for s := range sessions {
			w := claim(t, j, messages.NewKey(messages.SessionID(fmt.Sprintf("s%d", s))))
			wg.Go(func() {
				for i := range each {
					res, err := w.try(batchOf(event(fmt.Sprintf("%s/%d", w.key.Session, i)), ledger("l")))
					if err != nil {
						t.Errorf("append: %v", err)
						return
					}
					w.expect.EventHead, w.expect.LedgerHead = res.EventHead, res.LedgerHead
				}
			})
		}
		wg.Wait()
		for s := range sessions {
			key := messages.NewKey(messages.SessionID(fmt.Sprintf("s%d", s)))
			got := payloads(t, j, key, messages.StreamEvents, 0)
			require.Len(t, got, each)
			for i, text := range got {
				require.Equal(t, fmt.Sprintf("%s/%d", key.Session, i), text)
			}
			require.Len(t, payloads(t, j, key, messages.StreamLedger, 0), each)
		}
		st, err := j.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(sessions), st.Sessions)
		require.Equal(t, uint64(sessions*each), st.Events)
		require.Equal(t, uint64(sessions*each), st.Appends)
		require.LessOrEqual(t, st.Commits, st.Appends)
	})
	rule(t, d, "OfWritersThatRaceWithOneExpectationOneWins", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for round := range 20 {
			const racers = 8
			errs := make(chan error, racers)
			for range racers {
				go func() {
					_, err := w.try(batchOf(event("e")))
					errs <- err
				}()
			}
			won := 0
			for range racers {
				if err := <-errs; err == nil {
					won++
				} else {
					require.ErrorIs(t, err, persistence.ErrConflict)
				}
			}
			require.Equal(t, 1, won, "round %d", round)
			w.expect.EventHead++
		}
	})
}
