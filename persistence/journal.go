// Package persistence is the journal port: two record streams per session, the event log and the turn ledger, written
// together or not at all. Drivers live in folders below and pass the one contract suite, persistence/journaltest.
//
// The port knows nothing of what records mean; Replay folds them with a reducer that the caller gives.
package persistence

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Journal stores the records of all sessions. Every method may be called from any goroutine.
type Journal interface {
	// Claim makes the caller the only writer of a session: appends under an older epoch get ErrFenced from now on, and the
	// heads that it gives move only by the caller's own appends. It makes no session: one that has no record yet has heads 0.
	// If ctx ends first the claim may still take effect; that only fences. Errors: ErrInvalid, ErrDeleted, ErrClosed,
	// ErrUnavailable, ErrCorrupt, ErrFailed, the cause of ctx.
	Claim(ctx context.Context, key messages.Key, owner Owner) (Claim, error)

	// Append stores all of batch or nothing, and calls done once it is durable or surely refused. It never blocks, and done
	// never runs on the caller's goroutine, so the caller may hold its own locks; done must not block: other sessions wait for
	// it. For one session the calls are carried out, and answered, in their order. The batch may be reused when Append has
	// returned. Checked in this order: ErrInvalid, ErrTooLarge, ErrFull, ErrDeleted, ErrFenced, duplicate, ErrConflict. Errors
	// given to done: these and ErrUnknown, ErrUnavailable, ErrCorrupt, ErrFailed, ErrClosed.
	//
	// A batch whose records have the ids of the last append of this session under the same epoch is answered as that one was
	// (Appended.Duplicate), so that after ErrUnknown the same batch can be tried again.
	Append(key messages.Key, expect Expect, batch Batch, done func(Appended, error))

	// Replay yields the records of one stream with a sequence greater than after, in order, up to the head when the loop
	// starts. A record is valid until the next step. No transaction is held while the caller's code runs. A session without
	// records yields none. A ledger begins at its oldest kept record; one that is pruned during the loop goes on at the
	// checkpoint. Errors: ErrCorrupt (checksum, hole, missing tail), ErrDeleted, ErrClosed, ErrFailed, ErrUnavailable, the
	// cause of ctx. An error ends the sequence.
	Replay(ctx context.Context, key messages.Key, stream messages.Stream, after uint64) iter.Seq2[messages.Record, error]

	// Feed yields the event-log records of all sessions after a position, in one order that all readers see; with follow it
	// waits for new ones until ctx ends. A record is valid until the next step. Positions rise but have holes where sessions
	// were deleted. Errors: ErrStaleCursor, ErrCorrupt, ErrClosed, ErrFailed, ErrUnavailable, the cause of ctx. An error ends
	// the sequence; one of ErrCorrupt comes with After set, so that a reader can go on behind the damaged record.
	Feed(ctx context.Context, after Position, follow bool) iter.Seq2[FeedRecord, error]

	// Session tells of one session. Errors: ErrUnknownSession if it has no record, ErrDeleted, ErrCorrupt, ErrClosed,
	// ErrFailed, ErrUnavailable.
	Session(ctx context.Context, key messages.Key) (SessionInfo, error)

	// Sessions yields a tenant's sessions in the byte order of their ids, after one id ("" = from the first), without deleted
	// ones. A session whose row is damaged is yielded as ErrCorrupt and the sequence goes on: one bad session must not hide the
	// others. Every other error ends the sequence: ErrClosed, ErrFailed, ErrUnavailable, the cause of ctx.
	Sessions(ctx context.Context, tenant messages.TenantID, after messages.SessionID) iter.Seq2[SessionInfo, error]

	// OpenSessions yields every session whose appends left it with open work (Batch.Open), of all tenants. Errors as Sessions.
	OpenSessions(ctx context.Context) iter.Seq2[SessionInfo, error]

	// Lookup reads one entry of a session's index; false if it has none. The value is the caller's.
	// Errors: ErrDeleted, ErrClosed, ErrCorrupt, ErrFailed, ErrUnavailable.
	Lookup(ctx context.Context, key messages.Key, index Index, name string) ([]byte, bool, error)

	// Delete writes a tombstone: the id is never used again. Records, index entries and feed entries are freed in bounded
	// steps; it returns when all are gone. On a session that has its tombstone it goes on freeing, whatever expect says, so an
	// interrupted Delete is called again. Errors: ErrFenced, ErrConflict, ErrUnknownSession, ErrFull, ErrCorrupt, ErrClosed,
	// ErrFailed, ErrUnavailable, the cause of ctx.
	Delete(ctx context.Context, key messages.Key, expect Expect) error

	// Stats tells the size of the store.
	Stats(ctx context.Context) (Stats, error)

	// Healthy is nil while appends can succeed; else ErrFailed or ErrClosed with the reason.
	Healthy() error

	// Close waits for the appends that were taken, then closes. Later calls get ErrClosed; a second Close does nothing.
	Close() error
}

// Owner says who claims: the node's id and the address under which others reach it. Both may be empty on one node.
type Owner struct {
	Node    string
	Address string
}

// Claim is the right to write a session.
type Claim struct {
	Epoch      uint64
	EventHead  uint64
	LedgerHead uint64
}

// Expect is what the writer believes: its epoch and the last sequence of both streams.
type Expect struct {
	Epoch      uint64
	EventHead  uint64
	LedgerHead uint64
}

// Batch is one append.
type Batch struct {
	// Records of both streams; each stream's records get the next sequences in their order.
	Records []messages.Record
	// Index entries, put one after the other in the same transaction; see IndexPut.
	Index []IndexPut
	// Open says whether the session has unfinished turns after this append.
	Open OpenMark
	// Work is the session's work after this append; the row tells it (SessionInfo.Work).
	Work Work
	// PruneLedger: remove the session's ledger records before the first ledger record of this batch, in the same transaction.
	// That record must be a checkpoint of everything before it.
	PruneLedger bool
}

// OpenMark changes a session's place in the set of sessions with open work.
type OpenMark uint8

// Open marks.
const (
	OpenKeep OpenMark = iota
	OpenSet
	OpenClear
)

// Work is how much a session has to do. It is written with every append, so that a list of sessions tells it without asking
// any of them.
type Work struct {
	// Running: a run is active, or was when the process ended.
	Running bool
	// Waiting turns: those in the queue, and those offered to the run.
	Waiting uint32
}

// Index names a session's index.
type Index uint8

// Indexes.
const (
	// IndexTurn: turn id → messages.TurnStatus.
	IndexTurn Index = 1
	// IndexIdempotency: idempotency key → turn id, content hash and expiry.
	IndexIdempotency Index = 2
)

// IndexPut puts one index entry; Name has 1 to 256 bytes. A nil Value removes the entry.
//
// The entries of one index of one session stand in the order in which they were put; one that is put again counts once and
// becomes the newest. Each put then removes the oldest entry, up to TrimPerPut times, while that one has expired or there
// are more than Keep. So an index is bounded by the appends that fill it, each at the same cost however large the index is.
// It may lag: what has expired is found until it is removed, and an oldest entry that lives on keeps those behind it.
type IndexPut struct {
	Index Index
	Name  string
	Value []byte
	// Expires is when the entry may be removed, by the writer's time: that of the last record of the batch that removes it.
	// Zero is never.
	Expires time.Time
	// Keep bounds the entries of the index; 0 is no bound.
	Keep int
}

// TrimPerPut is how many of the oldest entries one put removes at most: more than one, so that an index whose bound was
// lowered, or of which much has expired, shrinks.
const TrimPerPut = 4

// Appended tells where a batch went: the heads after it.
type Appended struct {
	EventHead  uint64
	LedgerHead uint64
	// Position of the last event record in the feed; 0 if the batch had none.
	Position uint64
	// Duplicate: the batch had been stored before, by an earlier try.
	Duplicate bool
}

// Position is a place in the feed of one incarnation of a store. The zero Position is before the first record.
type Position struct {
	Incarnation string
	N           uint64
}

// FeedRecord is an event-log record with its session.
type FeedRecord struct {
	Key    messages.Key
	Record messages.Record
	After  Position
}

// SessionInfo is a session's row.
type SessionInfo struct {
	Key        messages.Key
	EventHead  uint64
	LedgerHead uint64
	// LedgerStart is the sequence of the oldest ledger record that is kept; 0 if there is none.
	LedgerStart uint64
	Epoch       uint64
	Open        bool
	// Work as of the last append; zero if that was made by a build that did not tell it.
	Work Work
	// LastAppend is the writer's time of the last append; information only.
	LastAppend time.Time
}

// Stats is the size of a store. Unknown numbers are 0.
type Stats struct {
	Driver      string
	Incarnation string
	Sessions    uint64
	Open        uint64
	Events      uint64
	FileBytes   int64
	FreeBytes   int64
	// Appends and Commits since the store was opened: their ratio is the group-commit size.
	Appends uint64
	Commits uint64
}

// Errors of journals. What a session's actor does on each stands in docs/journal.md.
var (
	// ErrFull: surely not stored; the queue, quota or disk is full. Try again later.
	ErrFull = errors.New("journal is full")
	// ErrTooLarge: surely not stored; a record or the batch is over the limit.
	ErrTooLarge = errors.New("record too large")
	// ErrUnavailable: surely not stored; the store cannot be reached.
	ErrUnavailable = errors.New("journal is unavailable")
	// ErrConflict: surely not stored; a head is not what the writer expected. Wrapped in ConflictError.
	ErrConflict = errors.New("journal head has moved")
	// ErrUnknown: may be stored. Append the same batch again to learn.
	ErrUnknown = errors.New("outcome of the append is unknown")
	// ErrFenced: surely not stored; a newer epoch owns the session.
	ErrFenced = errors.New("a newer epoch owns the session")
	// ErrFailed: a sync failed, what the disk holds is unknown; the driver refuses everything until it is opened again.
	ErrFailed = errors.New("journal has failed")
	// ErrCorrupt: a record of this session is damaged or missing. Wrapped in CorruptError.
	ErrCorrupt = errors.New("journal record is corrupt")
	// ErrClosed: the journal is closed.
	ErrClosed = errors.New("journal is closed")
	// ErrDeleted: the session has a tombstone.
	ErrDeleted = errors.New("session is deleted")
	// ErrUnknownSession: the session has no record.
	ErrUnknownSession = errors.New("unknown session")
	// ErrStaleCursor: the position belongs to another incarnation of the store, or lies past its end.
	ErrStaleCursor = errors.New("position is of another journal")
	// ErrLocked: another process holds the store. Returned when a driver is opened.
	ErrLocked = errors.New("journal is in use by another process")
	// ErrFormat: the store's format is newer than this build, or it is no journal at all. Returned when a driver is opened.
	ErrFormat = errors.New("journal format is not readable by this build")
	// ErrInvalid: a programming error in the batch (empty type name, index name of 0 bytes, no records).
	ErrInvalid = errors.New("invalid batch")
)
