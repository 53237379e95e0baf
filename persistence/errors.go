package persistence

import (
	"fmt"

	"github.com/correx/correx-actors/messages"
)

// ConflictError is ErrConflict with the heads.
type ConflictError struct {
	Key    messages.Key
	Expect Expect
	// EventHead and LedgerHead are what the journal holds.
	EventHead  uint64
	LedgerHead uint64
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("append to %s after event %d, ledger %d: head is event %d, ledger %d",
		e.Key, e.Expect.EventHead, e.Expect.LedgerHead, e.EventHead, e.LedgerHead)
}

// Unwrap makes it ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// CorruptError is ErrCorrupt with the place, as far as it is known.
type CorruptError struct {
	// Key is zero if the damage hides the session's name.
	Key messages.Key
	// Stream is 0 if the damage is in the session's row or index, not in a record.
	Stream messages.Stream
	// Seq is the first record that cannot be trusted.
	Seq    uint64
	Reason string
	Err    error
}

// Error implements error.
func (e *CorruptError) Error() string {
	text := e.Reason
	if e.Stream != 0 {
		text = fmt.Sprintf("%s record %d: %s", e.Stream, e.Seq, text)
	}
	if e.Key != (messages.Key{}) {
		text = fmt.Sprintf("session %s, %s", e.Key, text)
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text
}

// Unwrap makes it ErrCorrupt and keeps the cause.
func (e *CorruptError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrCorrupt, e.Err}
	}
	return []error{ErrCorrupt}
}
