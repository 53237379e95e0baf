package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Replay implements persistence.Journal. Every record lies in one buffer that the next step overwrites, so a caller that
// keeps a payload beyond its step is found out.
func (j *Journal) Replay(
	ctx context.Context, key messages.Key, stream messages.Stream, after uint64,
) iter.Seq2[messages.Record, error] {
	return func(yield func(messages.Record, error) bool) {
		var head uint64
		var buf []byte
		for {
			stored, seq, last, err := j.next(ctx, key, stream, after, head, buf)
			if err != nil {
				yield(messages.Record{}, fmt.Errorf("replay %s: %w", key, err))
				return
			}
			if stored == nil {
				return
			}
			if head == 0 {
				head = last
			}
			head, buf, after = max(head, seq), stored, seq
			rec, err := messages.ParseRecord(key, stream, seq, stored)
			if err != nil {
				yield(messages.Record{}, &persistence.CorruptError{
					Key: key, Stream: stream, Seq: seq, Reason: "damaged", Err: err,
				})
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// next copies the record behind after into buf; nil past head, or past the end of the stream when head is 0 (the first step).
// It also gives the stream's head.
func (j *Journal) next(
	ctx context.Context, key messages.Key, stream messages.Stream, after, head uint64, buf []byte,
) (stored []byte, seq, last uint64, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, 0, 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.find(key)
	if err != nil || s == nil {
		return nil, 0, 0, err
	}
	records, start, last := s.events, uint64(1), s.info.EventHead
	if stream == messages.StreamLedger {
		records, start, last = s.ledger, max(1, s.info.LedgerStart), s.info.LedgerHead
	}
	if head == 0 {
		head = last
	}
	// A ledger that was pruned meanwhile goes on at its checkpoint, which may lie behind the head of the start.
	seq = max(after+1, start)
	if seq > last || (seq > head && seq == after+1) {
		return nil, 0, last, nil
	}
	if seq-start >= uint64(len(records)) || records[seq-start] == nil {
		return nil, 0, last, &persistence.CorruptError{Key: key, Stream: stream, Seq: seq, Reason: "missing"}
	}
	return append(buf[:0], records[seq-start]...), seq, last, nil
}

// Feed implements persistence.Journal.
func (j *Journal) Feed(
	ctx context.Context, after persistence.Position, follow bool,
) iter.Seq2[persistence.FeedRecord, error] {
	return func(yield func(persistence.FeedRecord, error) bool) {
		if err := j.ours(after); err != nil {
			yield(persistence.FeedRecord{}, fmt.Errorf("feed after %d: %w", after.N, err))
			return
		}
		var buf []byte
		for pos := after.N; ; {
			rec, grown, err := j.nextInFeed(ctx, &pos, &buf)
			rec.After = persistence.Position{Incarnation: j.incarnation, N: pos}
			if err != nil {
				yield(rec, fmt.Errorf("feed after %d: %w", pos, err))
				return
			}
			if rec.Record.Seq > 0 {
				if !yield(rec, nil) {
					return
				}
				continue
			}
			if !follow {
				return
			}
			select {
			case <-ctx.Done():
			case <-grown:
			}
		}
	}
}

func (j *Journal) ours(p persistence.Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return persistence.ErrClosed
	}
	if p == (persistence.Position{}) || (p.Incarnation == j.incarnation && p.N <= uint64(len(j.feed))) {
		return nil
	}
	return persistence.ErrStaleCursor
}

// nextInFeed gives the event behind pos and moves pos there; at the end the record is zero and grown tells of more.
func (j *Journal) nextInFeed(
	ctx context.Context, pos *uint64, buf *[]byte,
) (rec persistence.FeedRecord, grown <-chan struct{}, err error) {
	if err := context.Cause(ctx); err != nil {
		return rec, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return rec, nil, persistence.ErrClosed
	}
	for *pos < uint64(len(j.feed)) {
		e := j.feed[*pos]
		*pos++
		if e.seq == 0 {
			continue
		}
		rec.Key = e.key
		events := j.sessions[e.key].events
		if e.seq > uint64(len(events)) || events[e.seq-1] == nil {
			return rec, nil, &persistence.CorruptError{
				Key: e.key, Stream: messages.StreamEvents, Seq: e.seq, Reason: "missing",
			}
		}
		*buf = append((*buf)[:0], events[e.seq-1]...)
		rec.Record, err = messages.ParseRecord(e.key, messages.StreamEvents, e.seq, *buf)
		if err != nil {
			return persistence.FeedRecord{Key: e.key}, nil, &persistence.CorruptError{
				Key: e.key, Stream: messages.StreamEvents, Seq: e.seq, Reason: "damaged", Err: err,
			}
		}
		rec.Record.Position = *pos
		return rec, nil, nil
	}
	return rec, j.grown, nil
}

// Sessions implements persistence.Journal.
func (j *Journal) Sessions(
	ctx context.Context, tenant messages.TenantID, after messages.SessionID,
) iter.Seq2[persistence.SessionInfo, error] {
	return j.rows(ctx, "sessions", func(s *session) bool {
		return s.info.Key.Tenant == tenant && s.info.Key.Session > after
	})
}

// OpenSessions implements persistence.Journal.
func (j *Journal) OpenSessions(ctx context.Context) iter.Seq2[persistence.SessionInfo, error] {
	return j.rows(ctx, "open sessions", func(s *session) bool { return s.info.Open })
}

func (j *Journal) rows(
	ctx context.Context, what string, keep func(*session) bool,
) iter.Seq2[persistence.SessionInfo, error] {
	return func(yield func(persistence.SessionInfo, error) bool) {
		infos, err := j.list(keep)
		if err != nil {
			yield(persistence.SessionInfo{}, fmt.Errorf("%s: %w", what, err))
			return
		}
		for _, info := range infos {
			if err := context.Cause(ctx); err != nil {
				yield(persistence.SessionInfo{}, fmt.Errorf("%s: %w", what, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}
