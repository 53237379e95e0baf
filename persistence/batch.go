package persistence

import (
	"fmt"

	"github.com/correx/correx-actors/messages"
)

// MaxIndexName is the longest name of an index entry, in bytes.
const MaxIndexName = 256

// Limits bound what one append may hold, in bytes of the stored form. Zero is no limit.
type Limits struct {
	// RecordBytes bounds each record and each index value.
	RecordBytes int
	// BatchBytes bounds all of a batch together.
	BatchBytes int
}

// Check says whether a driver may take the batch for key. It is the first step of every driver's Append, so that all refuse
// the same. Errors: ErrInvalid, ErrTooLarge.
func (b *Batch) Check(key messages.Key, limits Limits) error {
	if err := key.Validate(); err != nil {
		return fmt.Errorf("append to %s: %w: %w", key, ErrInvalid, err)
	}
	if len(b.Records) == 0 {
		return fmt.Errorf("append to %s: %w: no records", key, ErrInvalid)
	}
	if b.Open > OpenClear {
		return fmt.Errorf("append to %s: %w: open mark %d", key, ErrInvalid, b.Open)
	}
	total, ledger := 0, 0
	for i := range b.Records {
		rec := &b.Records[i]
		if err := checkRecord(rec, limits); err != nil {
			return fmt.Errorf("append to %s, record %d: %w", key, i, err)
		}
		if rec.Stream == messages.StreamLedger {
			ledger++
		}
		total += rec.StoredSize()
	}
	if b.PruneLedger && ledger == 0 {
		return fmt.Errorf("append to %s: %w: prunes the ledger without a ledger record", key, ErrInvalid)
	}
	for i := range b.Index {
		put := &b.Index[i]
		if err := checkPut(put, limits); err != nil {
			return fmt.Errorf("append to %s, index entry %d: %w", key, i, err)
		}
		total += len(put.Name) + len(put.Value)
	}
	if limits.BatchBytes > 0 && total > limits.BatchBytes {
		return fmt.Errorf("append to %s: %w: batch of %d bytes, limit %d", key, ErrTooLarge, total, limits.BatchBytes)
	}
	return nil
}

func checkRecord(rec *messages.Record, limits Limits) error {
	switch {
	case rec.Stream != messages.StreamEvents && rec.Stream != messages.StreamLedger:
		return fmt.Errorf("%w: %s", ErrInvalid, rec.Stream)
	case rec.ID == messages.RecordID{}:
		// Ids tell a second try from a new append: two batches with zero ids would look the same.
		return fmt.Errorf("%w: no record id", ErrInvalid)
	case rec.Type == "" || len(rec.Type) > messages.MaxTypeName:
		return fmt.Errorf("%w: type name of %d bytes", ErrInvalid, len(rec.Type))
	case rec.Flags&^messages.FlagIgnorable != 0:
		return fmt.Errorf("%w: flags %#x", ErrInvalid, uint8(rec.Flags))
	case limits.RecordBytes > 0 && rec.StoredSize() > limits.RecordBytes:
		return fmt.Errorf("%w: %q has %d bytes, limit %d", ErrTooLarge, rec.Type, rec.StoredSize(), limits.RecordBytes)
	}
	return nil
}

func checkPut(put *IndexPut, limits Limits) error {
	switch {
	case put.Index == 0:
		return fmt.Errorf("%w: index 0", ErrInvalid)
	case put.Name == "" || len(put.Name) > MaxIndexName:
		return fmt.Errorf("%w: name of %d bytes", ErrInvalid, len(put.Name))
	case put.Keep < 0:
		return fmt.Errorf("%w: keeps %d entries", ErrInvalid, put.Keep)
	case limits.RecordBytes > 0 && len(put.Value) > limits.RecordBytes:
		return fmt.Errorf("%w: value of %d bytes, limit %d", ErrTooLarge, len(put.Value), limits.RecordBytes)
	}
	return nil
}
