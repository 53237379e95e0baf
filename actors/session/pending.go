package session

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// pending is a command that waits for its decision.
type pending struct {
	cmd core.Command
	// held came while the session recovered; cmd is made of it afterwards.
	held messages.Command
	// sender and id say who gets the reply; a nil sender gets none.
	sender *actor.PID
	id     uint64
	// internal commands are reports of our own: they are tried again after a failed append and never dropped.
	internal bool
	// looked: the index was asked, cmd holds what it said.
	looked bool
	// applied runs when the command has taken effect, before its reply.
	applied func(actor.Context)
	// turnID is told when the outcome of an admission is unknown, so that its sender can ask for it.
	turnID messages.TurnID
}

// step is a decided command of a batch.
type step struct {
	from     *pending
	decision core.Decision
	// ticket of the run that the step starts, if it was free at once; nil = none.
	ticket *slots.Ticket
}

// batch is one append with the commands that it carries.
type batch struct {
	steps  []step
	expect persistence.Expect
	data   persistence.Batch
	// bytes that the steps' records take, about.
	bytes int
	// next is the state once the batch is stored.
	next core.State
	// firstTry is when the outcome was first unknown; zero = it was not.
	firstTry time.Time
	tries    int
}

// giveBack lets go of the slots of runs that will not start by this batch.
func (b *batch) giveBack() {
	for _, step := range b.steps {
		if step.ticket != nil {
			step.ticket.Cancel()
		}
	}
}

// holdsTicket says whether one of the steps has taken a slot.
func (b *batch) holdsTicket() bool {
	return slices.ContainsFunc(b.steps, func(st step) bool { return st.ticket != nil })
}

func (s *Session) answer(p *pending, reply messages.Reply) {
	if reply == nil || p.sender == nil {
		return
	}
	s.deps.Kernel.TellAs(p.sender, &Answer{Key: s.key, ID: p.id, Reply: reply}, s.self)
}

// refuse answers a command that is given up.
func (s *Session) refuse(p *pending, f *messages.Failure) {
	if !p.internal {
		s.answer(p, f)
	}
}
