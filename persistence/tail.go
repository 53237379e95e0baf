package persistence

import (
	"bytes"
	"context"
	"iter"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/messages"
)

// Tail yields the event log of one session after a sequence. At the head it waits for wake, a signal channel of capacity 1
// that the writer fills after each append, or for ctx; a closed wake, or a nil one, ends it at the head. The events are the
// caller's to keep. Errors: those of Journal.Replay, the cause of ctx. An error ends the sequence.
func Tail(
	ctx context.Context, j Journal, key messages.Key, after uint64, wake <-chan struct{},
) iter.Seq2[*messages.StoredEvent, error] {
	return func(yield func(*messages.StoredEvent, error) bool) {
		// A signal that comes while a replay runs stays in the channel, so the replay after it sees what it told of.
		for more := true; ; {
			for rec, err := range j.Replay(ctx, key, messages.StreamEvents, after) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(storedEvent(key, rec), nil) {
					return
				}
				after = rec.Seq
			}
			if !more || wake == nil {
				return
			}
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case _, more = <-wake:
			}
		}
	}
}

func storedEvent(key messages.Key, rec messages.Record) *messages.StoredEvent {
	return &messages.StoredEvent{
		SessionId:  string(key.Session),
		Sequence:   rec.Seq,
		RecordedAt: timestamppb.New(rec.Time),
		// The journal lends the payload for one step only.
		Event: &messages.EncodedEvent{Type: rec.Type, Version: rec.Version, Payload: bytes.Clone(rec.Payload)},
	}
}
