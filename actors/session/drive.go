package session

import (
	"context"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Bounds of the commands that share one append.
const (
	maxBatchSteps = 64
	maxBatchBytes = 2 << 20
)

// drive decides what waits, as long as nothing is in flight.
func (s *Session) drive(ctx actor.Context) {
	for s.stage == stageReady && s.inflight == nil && !s.blocked && len(s.pending) > 0 {
		if !s.next(ctx) {
			break
		}
	}
	s.settle(ctx)
}

// next decides the first commands that can share an append, each on the state that the ones before leave. It says false when
// the first one has to wait for a look-up.
func (s *Session) next(ctx actor.Context) bool {
	b := &batch{next: s.state, expect: persistence.Expect{
		Epoch: s.state.Live.Epoch, EventHead: s.state.Router.EventSequence, LedgerHead: s.state.Ledger.Head,
	}}
	for len(s.pending) > 0 && len(b.steps) < maxBatchSteps && b.bytes < maxBatchBytes {
		p := s.pending[0]
		if held := p.held; held != nil {
			if len(b.steps) > 0 {
				break
			}
			s.pop()
			p.held = nil
			if !s.readNow(ctx, p, held) {
				s.readmit(p, held)
			}
			return true
		}
		if name := s.lookUpName(b.next, p); name.wanted() {
			if len(b.steps) > 0 {
				break
			}
			s.lookUp(p, name)
			return false
		}
		st, ok := s.decide(b, p)
		if !ok {
			break
		}
		s.pop()
		b.steps = append(b.steps, st)
		b.next = st.decision.Next
		b.bytes += bytesOf(st.decision)
	}
	s.commit(ctx, b)
	return true
}

// bytesOf is about what a decision's records take.
func bytesOf(d core.Decision) int {
	n := 0
	for _, e := range d.Host {
		if m, ok := e.(proto.Message); ok {
			n += proto.Size(m)
		}
	}
	for _, r := range d.Ledger {
		n += proto.Size(r)
	}
	return n
}

// decide decides one more command of the batch; false = it must be the first of its own.
func (s *Session) decide(b *batch, p *pending) (step, bool) {
	st := step{from: p, decision: core.Decision{Next: b.next}}
	if granted, ok := p.cmd.(core.SlotGranted); ok {
		if len(b.steps) > 0 {
			return st, false // what those ask for may take the slot away
		}
		if !s.inHand(granted) {
			return st, true
		}
	}
	st.decision = core.DecideWith(b.next, s.deps.Core, p.cmd, s.now(), func(ask core.AskSlot) bool {
		st.ticket = s.trySlot(b, ask)
		return st.ticket != nil
	})
	if st.decision.Checkpoint && b.durable() { // a checkpoint is the first record of its append
		if st.ticket != nil {
			st.ticket.Cancel()
		}
		return st, false
	}
	return st, true
}

// pop takes the first pending command away, and lets go of it: an idle session must not hold its last commands in memory.
func (s *Session) pop() {
	s.pending[0] = nil
	if s.pending = s.pending[1:]; len(s.pending) == 0 {
		s.pending = nil
	}
}

// readmit puts a command that came during recovery where it was: at the front.
func (s *Session) readmit(p *pending, cmd messages.Command) {
	if f := s.prepare(p, cmd); f != nil {
		s.refuse(p, f)
		return
	}
	s.pending = slices.Insert(s.pending, 0, p)
}

// commit appends what the batch records; one that records nothing takes effect at once.
func (s *Session) commit(ctx actor.Context, b *batch) {
	if len(b.steps) == 0 {
		return
	}
	if !b.durable() {
		s.apply(ctx, b)
		return
	}
	if err := b.encode(s.state.Ledger.Open()); err != nil {
		// A message of ours does not encode: nothing was stored, so nothing may follow.
		s.log().LogAttrs(context.Background(), slog.LevelError, "batch does not encode", slog.Any(messages.AttrError, err))
		b.giveBack()
		for _, step := range b.steps {
			s.refuse(step.from, messages.Fail(messages.CodeInternal, "the command cannot be recorded"))
		}
		return
	}
	s.inflight = b
	s.send(b)
}

func (s *Session) send(b *batch) {
	sys, self, life := s.deps.Kernel, s.self, s.life
	s.deps.Journal.Append(s.key, b.expect, b.data, func(where persistence.Appended, err error) {
		sys.Tell(self, appended{life: life, batch: b, where: where, err: err})
	})
}

// apply makes the batch the truth: for each command the state that it leads to, its reply and its effects. The state goes on
// step by step, so that a subscriber is told the numbers of its own place in the batch (I11).
func (s *Session) apply(ctx actor.Context, b *batch) {
	for _, step := range b.steps {
		s.state = step.decision.Next
		s.takeUp(step.ticket)
		if step.from.applied != nil && !isFailure(step.decision.Reply) {
			step.from.applied(ctx)
		}
		s.answer(step.from, step.decision.Reply)
		s.interpret(ctx, step.decision.Effects)
	}
	s.noteLineage()
}

func isFailure(reply messages.Reply) bool {
	_, failed := reply.(*messages.Failure)
	return failed
}

func (b *batch) durable() bool {
	return slices.ContainsFunc(b.steps, func(st step) bool { return st.decision.Durable() })
}

// encode makes the journal's batch of the steps' records.
func (b *batch) encode(wasOpen bool) error {
	for _, step := range b.steps {
		if err := b.add(step.decision); err != nil {
			return err
		}
	}
	switch open := b.next.Ledger.Open(); {
	case open && !wasOpen:
		b.data.Open = persistence.OpenSet
	case !open:
		b.data.Open = persistence.OpenClear
	}
	ledger := b.next.Ledger
	b.data.Work = persistence.Work{
		Running: ledger.Active != nil,
		Waiting: uint32(ledger.Queue.Len() + len(ledger.Queue.Offered)), //nolint:gosec // bounded by the queue's limit
	}
	return nil
}

func (b *batch) add(d core.Decision) error {
	for _, e := range d.Host {
		if err := b.event(e, d); err != nil {
			return err
		}
	}
	for _, e := range d.Emit {
		if err := b.event(e, d); err != nil {
			return err
		}
	}
	for _, r := range d.Ledger {
		name, version, payload, err := messages.EncodeLedger(r)
		if err != nil {
			return err
		}
		b.record(messages.StreamLedger, name, version, payload, d)
	}
	b.data.PruneLedger = b.data.PruneLedger || d.Checkpoint
	return b.index(d.Index)
}

func (b *batch) event(e messages.Event, d core.Decision) error {
	encoded, err := messages.EncodeEvent(e)
	if err != nil {
		return err
	}
	b.record(messages.StreamEvents, encoded.GetType(), encoded.GetVersion(), encoded.GetPayload(), d)
	return nil
}

func (b *batch) record(stream messages.Stream, name string, version uint32, payload []byte, d core.Decision) {
	b.data.Records = append(b.data.Records, messages.Record{
		ID: messages.NewRecordID(), Stream: stream, Type: name, Version: version, Time: d.At, Payload: payload,
	})
}

func (b *batch) index(entries []core.IndexEntry) error {
	for _, e := range entries {
		put, m := persistence.IndexPut{Index: persistence.IndexTurn, Name: e.Turn.GetTurnId()}, proto.Message(e.Turn)
		if e.Turn == nil {
			put, m = persistence.IndexPut{Index: persistence.IndexIdempotency, Name: e.Key}, e.Idempotency
		}
		put.Expires, put.Keep = e.Expires, e.Keep
		var err error
		if put.Value, err = proto.Marshal(m); err != nil {
			return err
		}
		b.data.Index = append(b.data.Index, put)
	}
	return nil
}
