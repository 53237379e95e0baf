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

// CorruptError is ErrCorrupt with the place.
type CorruptError struct {
	Key    messages.Key
	Stream messages.Stream
	// Seq is the first record that cannot be trusted.
	Seq    uint64
	Reason string
	Err    error
}

// Error implements error.
func (e *CorruptError) Error() string {
	text := fmt.Sprintf("session %s, %s record %d: %s", e.Key, e.Stream, e.Seq, e.Reason)
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
