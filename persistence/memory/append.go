package memory

import (
	"fmt"
	"slices"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// appendOp is an append that waits, or one that was refused at once and waits for its turn to be answered.
type appendOp struct {
	key    messages.Key
	expect persistence.Expect
	batch  persistence.Batch
	stored [][]byte
	done   func(persistence.Appended, error)
	err    error
}

// Append implements persistence.Journal.
func (j *Journal) Append(
	key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error),
) {
	op := appendOp{key: key, expect: expect, done: done}
	limits := persistence.Limits{RecordBytes: j.cfg.MaxRecordBytes, BatchBytes: j.cfg.MaxBatchBytes}
	if op.err = batch.Check(key, limits); op.err == nil {
		op.err = op.encode(batch)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if op.err == nil && j.closed {
		op.err = fmt.Errorf("append to %s: %w", key, persistence.ErrClosed)
	}
	if op.err == nil && j.cfg.QueueLimit > 0 && len(j.queue) >= j.cfg.QueueLimit {
		op.err = fmt.Errorf("append to %s: %w: %d appends wait", key, persistence.ErrFull, len(j.queue))
	}
	// A refusal goes through the queue as well: it must not overtake the answers before it.
	j.queue = append(j.queue, op)
	if !j.running {
		j.running = true
		go j.drain()
	}
}

// drain carries out the queue and ends with it, so that an idle journal has no goroutine.
func (j *Journal) drain() {
	for {
		j.mu.Lock()
		if len(j.queue) == 0 {
			j.running = false
			if j.idle != nil {
				close(j.idle)
				j.idle = nil
			}
			j.mu.Unlock()
			return
		}
		op := j.queue[0]
		j.queue = j.queue[1:]
		var res persistence.Appended
		err := op.err
		if err == nil {
			res, err = j.store(&op)
		}
		j.mu.Unlock()
		op.done(res, err)
	}
}

// encode keeps what the journal will hold: bytes and copies, nothing that the caller can still reach.
func (op *appendOp) encode(batch persistence.Batch) error {
	heads := map[messages.Stream]uint64{
		messages.StreamEvents: op.expect.EventHead,
		messages.StreamLedger: op.expect.LedgerHead,
	}
	op.batch = batch
	op.batch.Records = slices.Clone(batch.Records)
	for i := range op.batch.Records {
		rec := &op.batch.Records[i]
		heads[rec.Stream]++
		rec.Seq, rec.Epoch = heads[rec.Stream], op.expect.Epoch
		b, err := messages.AppendRecord(nil, op.key, rec)
		if err != nil {
			return fmt.Errorf("append to %s: %w: %w", op.key, persistence.ErrInvalid, err)
		}
		rec.Payload = nil
		op.stored = append(op.stored, b)
	}
	op.batch.Index = slices.Clone(batch.Index)
	for i := range op.batch.Index {
		op.batch.Index[i].Value = slices.Clone(op.batch.Index[i].Value)
	}
	return nil
}

// store decides on an append and carries it out. The caller holds mu.
func (j *Journal) store(op *appendOp) (persistence.Appended, error) {
	s := j.sessions[op.key]
	switch {
	case s == nil:
		return persistence.Appended{}, fmt.Errorf("append to %s: %w: never claimed", op.key, persistence.ErrFenced)
	case s.deleted:
		return persistence.Appended{}, fmt.Errorf("append to %s: %w", op.key, persistence.ErrDeleted)
	}
	ids := make([]messages.RecordID, len(op.batch.Records))
	for i := range ids {
		ids[i] = op.batch.Records[i].ID
	}
	if epoch := op.expect.Epoch; epoch == s.claim && s.claim == s.info.Epoch && slices.Equal(ids, s.lastIDs) {
		res := s.lastEnds
		res.Duplicate = true
		return res, nil
	}
	if err := s.expected(op.expect); err != nil {
		return persistence.Appended{}, fmt.Errorf("append to %s: %w", op.key, err)
	}
	j.appends++
	position := j.apply(s, op)
	s.info.Epoch, s.lastIDs = op.expect.Epoch, ids
	s.lastEnds = persistence.Appended{
		EventHead: s.info.EventHead, LedgerHead: s.info.LedgerHead, Position: position,
	}
	return s.lastEnds, nil
}

func (j *Journal) apply(s *session, op *appendOp) (position uint64) {
	prune := op.batch.PruneLedger
	for i := range op.batch.Records {
		rec := &op.batch.Records[i]
		s.info.LastAppend = unixNano(rec.Time)
		if rec.Stream == messages.StreamEvents {
			s.info.EventHead = rec.Seq
			s.events = append(s.events, op.stored[i])
			j.feed = append(j.feed, feedEntry{op.key, rec.Seq})
			j.events++
			position = uint64(len(j.feed))
			continue
		}
		if prune || s.info.LedgerStart == 0 {
			s.info.LedgerStart, s.ledger, prune = rec.Seq, nil, false
		}
		s.info.LedgerHead = rec.Seq
		s.ledger = append(s.ledger, op.stored[i])
	}
	for _, put := range op.batch.Index {
		s.put(put)
	}
	s.info.Work = op.batch.Work
	switch op.batch.Open {
	case persistence.OpenSet:
		s.info.Open = true
	case persistence.OpenClear:
		s.info.Open = false
	case persistence.OpenKeep:
	}
	if position > 0 && !j.closed {
		close(j.grown)
		j.grown = make(chan struct{})
	}
	return position
}
