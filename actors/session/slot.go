package session

import (
	"context"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/core/intake"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// holding is what this session has of the process's slots.
type holding struct {
	// ticket is what was asked for, or is in hand for a run that is to start; nil = nothing. Run is the one that it is for.
	ticket *slots.Ticket
	run    core.RunID
	// unarm stops the deadline of the wait.
	unarm func()
	// works are the attempts whose actors have not ended, the newest last.
	works []work
	// token is the resume token whose lineage is noted with the slots.
	token string
}

// work is an attempt under its ticket.
type work struct {
	pid    *actor.PID
	run    core.RunID
	ticket *slots.Ticket
}

// need translates what core asks for. A model that has no route needs no provider: its run will say so.
func (s *Session) need(n core.Needs) slots.Need {
	need := slots.Need{Lease: n.Lease, Interrupts: n.Interrupts}
	if route, err := s.deps.Runner.First(context.Background(), n.Model, n.Engine); err == nil {
		need.Provider = route.Provider.Name()
	}
	return need
}

// trySlot takes a slot for a decision that is being made, if one is free: it belongs to the batch until that is stored.
func (s *Session) trySlot(b *batch, ask core.AskSlot) *slots.Ticket {
	if s.hold.ticket != nil || b.holdsTicket() {
		return nil
	}
	return s.deps.Slots.Try(s.need(ask.Needs), s.self)
}

// freeSlot says whether a turn that came now would find a slot.
func (s *Session) freeSlot(ask core.AskSlot) bool {
	return s.hold.ticket == nil && (s.inflight == nil || !s.inflight.holdsTicket()) && s.deps.Slots.Free(s.need(ask.Needs))
}

// takeUp makes the ticket of a stored step the one in hand. What an earlier step of the batch asked for, or a runner left that
// never began, is needed no more: the step was decided with this one.
func (s *Session) takeUp(ticket *slots.Ticket) {
	if ticket != nil {
		s.dropSlot()
		s.hold.ticket = ticket
	}
}

// inHand says whether the slot of a grant is still there: it may have been given back or changed for another one since.
func (s *Session) inHand(c core.SlotGranted) bool {
	return s.hold.ticket != nil && s.hold.run == c.RunID && s.hold.ticket.Granted()
}

func (s *Session) askSlot(e core.AskSlot) {
	need := s.need(e.Needs)
	s.hold.run = e.RunID
	if s.hold.ticket == nil {
		s.hold.ticket = s.deps.Slots.Ask(need, s.self)
		return
	}
	if s.hold.ticket.Change(need) { // granted while it was asked for another run
		s.deps.Kernel.Tell(s.self, slots.Granted{Ticket: s.hold.ticket})
	}
}

// armSlot sets the deadline of a wait. It ends with the wait: after a replay in place waits are counted anew.
func (s *Session) armSlot(e core.ArmSlot) {
	s.unarmSlot()
	s.hold.unarm = s.arm(due{life: s.life, what: dueCommand, cmd: core.SlotOver{RunID: e.RunID, Ask: e.Ask}}, e.After)
}

func (s *Session) unarmSlot() {
	if s.hold.unarm != nil {
		s.hold.unarm()
		s.hold.unarm = nil
	}
}

func (s *Session) dropSlot() {
	s.unarmSlot()
	if s.hold.ticket != nil {
		s.hold.ticket.Cancel()
	}
	s.hold.ticket, s.hold.run = nil, ""
}

// slotGranted: the ticket is granted, unless it is an old one.
func (s *Session) slotGranted(ctx actor.Context, m slots.Granted) {
	if m.Ticket == s.hold.ticket && m.Ticket.Granted() {
		s.report(ctx, core.SlotGranted{RunID: s.hold.run})
	}
}

// leaseWanted: an interrupt of another session waits for the conversation that a run of ours resumes.
func (s *Session) leaseWanted(ctx actor.Context, m slots.Wanted) {
	run := core.RunID("")
	if m.Ticket == s.hold.ticket {
		run = s.hold.run
	}
	for _, w := range s.hold.works {
		if w.ticket == m.Ticket {
			run = w.run
		}
	}
	if run != "" {
		s.report(ctx, core.LeaseWanted{RunID: run})
	}
}

// startRun starts the runner of an attempt. The runner of the run before may still be on its way out: it is no longer
// listened to, and its call is canceled.
func (s *Session) startRun(ctx actor.Context, e core.StartRun) {
	if s.runner != nil {
		s.deps.Kernel.Tell(s.runner, runner.Cancel{Cause: core.CauseStopped})
	}
	ticket := s.hold.ticket
	s.unarmSlot()
	s.hold.ticket, s.hold.run = nil, ""
	if ticket == nil { // no rule of ours leads here; a run without a slot must not go on
		s.log().LogAttrs(context.Background(), slog.LevelError, "run has no slot", slog.String(messages.AttrRun, e.Order.RunID))
		s.deps.Kernel.Tell(s.self, core.StartFailed{RunID: e.Order.RunID, Attempt: e.Order.Attempt})
		return
	}
	props := s.deps.NewRunner
	if props == nil {
		props = func(order core.RunOrder, hold runner.Hold) *actor.Props {
			return runner.Props(&s.deps.Runner, order, hold)
		}
	}
	s.runner = ctx.Spawn(props(e.Order, ticket))
	s.hold.works = append(s.hold.works, work{pid: s.runner, run: e.Order.RunID, ticket: ticket})
	if ticket.Wanted() { // said when there was no run yet that could be stopped
		s.deps.Kernel.Tell(s.self, slots.Wanted{Ticket: ticket})
	}
	s.log().LogAttrs(context.Background(), slog.LevelDebug, "run started",
		slog.String(messages.AttrRun, e.Order.RunID), slog.Uint64(messages.AttrAttempt, uint64(e.Order.Attempt)))
}

// workEnded: the actor of an attempt has ended. Its ticket is given back here unless its work adopted it, which then does so
// itself. It says whether the work had never begun.
func (s *Session) workEnded(who *actor.PID) (neverBegan bool) {
	at := slices.IndexFunc(s.hold.works, func(w work) bool { return w.pid.Equal(who) })
	if at < 0 {
		return false
	}
	ticket, run := s.hold.works[at].ticket, s.hold.works[at].run
	if s.hold.works = slices.Delete(s.hold.works, at, at+1); len(s.hold.works) == 0 {
		s.hold.works = nil
	}
	if !ticket.Granted() {
		return false
	}
	if s.hold.ticket == nil && s.state.Running() && s.runner == nil {
		s.hold.ticket, s.hold.run = ticket, run // kept for another start of the attempt
	} else {
		ticket.Cancel()
	}
	return true
}

// settleSlot gives back a slot that is in hand for nothing.
func (s *Session) settleSlot() {
	waits := s.state.Live.Asked != (core.AskSlot{}) || s.state.Running() && s.runner == nil
	if s.hold.ticket != nil && s.inflight == nil && len(s.pending) == 0 && !waits {
		s.dropSlot()
	}
}

// abandonSlots gives back everything that no work has adopted: this incarnation ends, or decides anew.
func (s *Session) abandonSlots() {
	s.dropSlot()
	for _, w := range s.hold.works {
		w.ticket.Cancel()
	}
}

// noteLineage tells the slots which lineage the session's resume token continues.
func (s *Session) noteLineage() {
	stored := s.state.Ledger.Resume
	if stored.Token == nil {
		s.forgetLineage()
		return
	}
	token := intake.ConversationOf(stored.Token, "").String()
	if token == s.hold.token {
		return
	}
	s.forgetLineage()
	s.hold.token = token
	s.deps.Slots.Continue(token, stored.Lineage)
}

func (s *Session) forgetLineage() {
	if s.hold.token != "" {
		s.deps.Slots.Forget(s.hold.token)
		s.hold.token = ""
	}
}
