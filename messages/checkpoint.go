package messages

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// SizeOf is the length of a message's bytes.
func SizeOf(m proto.Message) int { return proto.Size(m) }

// SplitCheckpoint gives the records that hold a checkpoint: itself, or parts of at most partBytes if it is larger. They belong into
// one append.
func SplitCheckpoint(c *LedgerCheckpoint, partBytes int) []LedgerRecord {
	if proto.Size(c) <= partBytes {
		return []LedgerRecord{c}
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil { // a text that is not UTF-8, which nothing admits: the append of the checkpoint itself will say so
		return []LedgerRecord{c}
	}
	total := (len(data) + partBytes - 1) / partBytes
	parts := make([]LedgerRecord, 0, total)
	for i := range total {
		parts = append(parts, &CheckpointPart{
			Part: uint32(i + 1), Parts: uint32(total), Data: data[i*partBytes : min(len(data), (i+1)*partBytes)], //nolint:gosec // counts
		})
	}
	return parts
}

// JoinCheckpoint puts the data of all parts together again. Errors: ErrBadRecord.
func JoinCheckpoint(data []byte) (*LedgerCheckpoint, error) {
	c := new(LedgerCheckpoint)
	if err := proto.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%w: parts of a checkpoint: %w", ErrBadRecord, err)
	}
	return c, nil
}

// WithReason gives a turn with the reason why it waits; the turn that it was made of stays as it is.
func WithReason(turn *Turn, reason string) *Turn {
	changed, ok := proto.Clone(turn).(*Turn)
	if !ok {
		return turn
	}
	changed.WaitReason = reason
	return changed
}
