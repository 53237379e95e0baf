// Package journaltest is the contract of persistence.Journal as tests: every driver runs the same suite, and what a driver
// cannot do it must say, with a reason.
package journaltest

import (
	"testing"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Limits are the settings that the suite asks of a driver. Zero is the driver's own choice.
type Limits struct {
	MaxRecordBytes int
	MaxBatchBytes  int
	QueueLimit     int
}

// Damage says what to spoil in a store.
type Damage struct {
	Kind Kind
	Key  messages.Key
	// Stream and Seq name the record, for FlipRecord and LoseRecord.
	Stream messages.Stream
	Seq    uint64
	// Index and Name name the entry, for FlipIndex.
	Index persistence.Index
	Name  string
	// Offset is the byte, counted from the end of the value, in which one bit changes.
	Offset int
}

// Kind is a kind of damage.
type Kind string

// Kinds of damage.
const (
	FlipRecord Kind = "flip_record"
	LoseRecord Kind = "lose_record"
	FlipRow    Kind = "flip_row"
	FlipIndex  Kind = "flip_index"
	FlipFeed   Kind = "flip_feed"
)

// Driver is a driver under test.
type Driver struct {
	// Open makes an empty journal; it is closed when t ends, if the test has not done it.
	Open func(t *testing.T, limits Limits) persistence.Journal
	// Reopen closes j and opens its store again. Nil: the driver keeps nothing.
	Reopen func(t *testing.T, j persistence.Journal) persistence.Journal
	// Damage spoils the store behind the journal's back; false if the driver has nothing of this kind.
	Damage func(t *testing.T, j persistence.Journal, d Damage) bool
	// Provoke gives errors that the suite cannot provoke by itself.
	Provoke map[error]func(t *testing.T) error
	// Cannot says which errors the driver never gives, and why.
	Cannot map[error]string
}

// Run runs the whole contract.
func Run(t *testing.T, d Driver) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(*testing.T, Driver)
	}{
		{"Append", testAppend},
		{"Order", testOrder},
		{"Claim", testClaim},
		{"Duplicate", testDuplicate},
		{"Replay", testReplay},
		{"Index", testIndex},
		{"Trim", testTrim},
		{"Prune", testPrune},
		{"Sessions", testSessions},
		{"Feed", testFeed},
		{"Delete", testDelete},
		{"Limits", testLimits},
		{"Close", testClose},
		{"Reopen", testReopen},
		{"Corrupt", testCorrupt},
		{"Errors", testErrors},
		{"Model", testModel},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t, d)
		})
	}
}

// rule runs one rule of the contract on a journal of its own.
func rule(t *testing.T, d Driver, name string, f func(t *testing.T, j persistence.Journal)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t, d.Open(t, Limits{}))
	})
}
