package memory

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/journaltest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	const noFile = "there is no file and no server"
	journaltest.Run(t, journaltest.Driver{
		Open:   openForTest,
		Damage: damage,
		Cannot: map[error]string{
			persistence.ErrUnavailable: noFile,
			persistence.ErrUnknown:     "an append is stored or not when it is answered",
			persistence.ErrFailed:      noFile,
			persistence.ErrLocked:      noFile,
			persistence.ErrFormat:      noFile,
		},
	})
}

func openForTest(t *testing.T, l journaltest.Limits) persistence.Journal {
	t.Helper()
	j := New(Config{MaxRecordBytes: l.MaxRecordBytes, MaxBatchBytes: l.MaxBatchBytes, QueueLimit: l.QueueLimit})
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func damage(t *testing.T, journal persistence.Journal, d journaltest.Damage) bool {
	t.Helper()
	j := journal.(*Journal)
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sessions[d.Key]
	records, i := s.events, d.Seq-1
	if d.Stream == messages.StreamLedger {
		records, i = s.ledger, d.Seq-s.info.LedgerStart
	}
	switch d.Kind {
	case journaltest.FlipRecord:
		b := records[i]
		b[len(b)-1-d.Offset] ^= 1
	case journaltest.LoseRecord:
		records[i] = nil
	case journaltest.FlipRow, journaltest.FlipIndex, journaltest.FlipFeed:
		return false
	}
	return true
}

func TestWorksInABubbleAndLeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := New(Config{})
		key := messages.NewKey("s")
		c, err := j.Claim(t.Context(), key, persistence.Owner{})
		require.NoError(t, err)
		var stored []uint64
		expect := persistence.Expect{Epoch: c.Epoch}
		for range 3 {
			rec := messages.Record{ID: messages.NewRecordID(), Stream: messages.StreamEvents, Type: "t", Time: time.Now()}
			j.Append(key, expect, persistence.Batch{Records: []messages.Record{rec}},
				func(res persistence.Appended, err error) {
					require.NoError(t, err)
					stored = append(stored, res.EventHead)
				})
			expect.EventHead++
		}
		synctest.Wait()
		require.Equal(t, []uint64{1, 2, 3}, stored)
		// Time moves: an idle journal has no goroutine that is not durably blocked. The bubble itself fails on one that stays.
		time.Sleep(time.Hour)
	})
}
