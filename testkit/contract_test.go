package testkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/journaltest"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

// Without a fault a FaultyJournal is what it wraps; and it gives the errors that no memory journal gives.
func TestJournalWithoutFaultsKeepsTheContract(t *testing.T) {
	t.Parallel()
	const noFile = "there is no file"
	journaltest.Run(t, journaltest.Driver{
		Open: func(t *testing.T, l journaltest.Limits) persistence.Journal {
			t.Helper()
			j := testkit.NewFaultyJournal(memory.New(memory.Config{MaxRecordBytes: l.MaxRecordBytes, MaxBatchBytes: l.MaxBatchBytes}))
			j.LimitQueue(l.QueueLimit)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			return j
		},
		Damage: func(_ *testing.T, journal persistence.Journal, d journaltest.Damage) bool {
			j, ok := journal.(*testkit.FaultyJournal)
			if !ok || d.Kind != journaltest.FlipRecord && d.Kind != journaltest.LoseRecord {
				return false
			}
			if !j.Repair(d.Key, d.Stream, d.Seq) {
				j.Damage(d.Key, d.Stream, d.Seq)
			}
			return true
		},
		Provoke: map[error]func(*testing.T) error{
			persistence.ErrUnavailable: injected(persistence.ErrUnavailable),
			persistence.ErrFailed:      injected(persistence.ErrFailed),
			persistence.ErrUnknown:     injected(persistence.ErrUnknown),
		},
		Cannot: map[error]string{
			persistence.ErrLocked: noFile,
			persistence.ErrFormat: noFile,
		},
	})
}

func injected(fault error) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		j := testkit.NewFaultyJournal(nil)
		w := newWriter(t, j)
		j.FailNext(1, fault)
		_, err := w.append(batch(t))
		return err
	}
}
