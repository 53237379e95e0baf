package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// testErrors goes through every error of the port: the suite or the driver provokes it, or the driver says why it cannot occur.
func testErrors(t *testing.T, d Driver) {
	for _, row := range errorTable(d) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if reason, cannot := d.Cannot[row.err]; cannot {
				require.Nil(t, d.Provoke[row.err], "it can")
				require.NotEmpty(t, reason)
				t.Skip("this driver cannot: " + reason)
			}
			provoke := row.provoke
			if own := d.Provoke[row.err]; own != nil {
				provoke = own
			}
			if provoke == nil {
				t.Fatalf("nothing provokes %q: give Driver.Provoke, or a reason in Driver.Cannot", row.err)
			}
			require.ErrorIs(t, provoke(t), row.err)
		})
	}
}

type errorRow struct {
	name    string
	err     error
	provoke func(*testing.T) error // nil: only the driver can
}

func errorTable(d Driver) []errorRow {
	open := func(t *testing.T) *writer {
		t.Helper()
		return claim(t, d.Open(t, Limits{MaxRecordBytes: 200, QueueLimit: 3}), session)
	}
	return []errorRow{
		{"ErrFull", persistence.ErrFull, func(t *testing.T) error { return fillQueue(t, open(t).j, 3) }},
		{"ErrTooLarge", persistence.ErrTooLarge, func(t *testing.T) error {
			rec := event("")
			rec.Payload = make([]byte, 200)
			return second(open(t).try(batchOf(rec)))
		}},
		{"ErrUnavailable", persistence.ErrUnavailable, nil},
		{"ErrConflict", persistence.ErrConflict, func(t *testing.T) error {
			w := open(t)
			w.expect.EventHead++
			return second(w.try(batchOf(event("e"))))
		}},
		{"ErrUnknown", persistence.ErrUnknown, nil},
		{"ErrFenced", persistence.ErrFenced, func(t *testing.T) error {
			w := open(t)
			claim(t, w.j, session)
			return second(w.try(batchOf(event("e"))))
		}},
		{"ErrFailed", persistence.ErrFailed, nil},
		{"ErrCorrupt", persistence.ErrCorrupt, func(t *testing.T) error {
			w := open(t)
			w.append(t, batchOf(event("e")))
			d.Damage(t, w.j, Damage{Kind: FlipRecord, Key: session, Stream: messages.StreamEvents, Seq: 1})
			return second(collect(t, w.j, session, messages.StreamEvents, 0))
		}},
		{"ErrClosed", persistence.ErrClosed, func(t *testing.T) error {
			w := open(t)
			require.NoError(t, w.j.Close())
			return second(w.try(batchOf(event("e"))))
		}},
		{"ErrDeleted", persistence.ErrDeleted, func(t *testing.T) error {
			w := open(t)
			w.append(t, batchOf(event("e")))
			require.NoError(t, w.j.Delete(t.Context(), session, w.expect))
			return second(w.try(batchOf(event("e"))))
		}},
		{"ErrUnknownSession", persistence.ErrUnknownSession, func(t *testing.T) error {
			return second(open(t).j.Session(t.Context(), session))
		}},
		{"ErrStaleCursor", persistence.ErrStaleCursor, func(t *testing.T) error {
			return firstError(open(t).j.Feed(t.Context(), persistence.Position{Incarnation: "x", N: 1}, false))
		}},
		{"ErrLocked", persistence.ErrLocked, nil},
		{"ErrFormat", persistence.ErrFormat, nil},
		{"ErrInvalid", persistence.ErrInvalid, func(t *testing.T) error { return second(open(t).try(persistence.Batch{})) }},
	}
}
