package gateway

import (
	"net/http"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// turnFeed is what a feed of one turn knows of it.
type turnFeed struct {
	pursuit

	submit *messages.SubmitTurn
	// id is the client's own.
	id       string
	accepted *messages.TurnAccepted
	// attached: its items are followed; before, it is a duplicate of which nothing is known yet.
	attached bool
	// told: the client has its turn_state.
	told bool
}

// askAgainForTurn is the pause after a question that the journal could not answer.
type askAgainForTurn struct{}

// streamTurn submits a turn and sends what becomes of it as server-sent events. A client that goes away cancels nothing.
func (g *Gateway) streamTurn(w http.ResponseWriter, r *http.Request, in *protocol.ChatInput, cursor *uint64, wait time.Duration) {
	f := g.newFeed(sessionKey(in.SessionID), cursor)
	f.turn = &turnFeed{submit: turnOf(in), id: in.ID}
	f.turn.submit.Subscribe = true
	g.stream(w, r, f, wait)
}

// submitted: a new turn's items come from now on. Of a duplicate it must be asked which run has it.
func (f *feed) submitted(reply messages.Reply) {
	accepted, ok := reply.(*messages.TurnAccepted)
	if !ok {
		f.over = true
		f.begin(reply)
		return
	}
	t := f.turn
	t.accepted, t.turn, t.run = accepted, accepted.GetTurnId(), accepted.GetRunId()
	f.put("", answerFrame(t.id, f.key, accepted))
	f.begin(accepted)
	if t.attached = accepted.GetDisposition() != string(messages.DispositionDuplicate); t.attached {
		f.placed = false // the numbers begin with its first item, whatever the client had before
		return
	}
	f.muted = true
	f.askTurn()
}

func (f *feed) askTurn() { f.ask(askTurn, &messages.GetTurn{TurnId: f.turn.turn}) }

// found takes the answer about the turn. The session sends in order: what it had told before is here.
func (f *feed) found(reply messages.Reply) {
	t := f.turn
	if f.muted && t.attached {
		return // it is asked again behind what comes again
	}
	if failure, failed := reply.(*messages.Failure); failed {
		if passing(failure) {
			f.gateway.deps.Kernel.After(askAgain, f.self, askAgainForTurn{})
		} else {
			f.fail(failure)
		}
		return
	}
	answer, ok := reply.(*messages.TurnFound)
	if !ok {
		return
	}
	status := answer.GetTurn()
	switch {
	case settled(status) && (t.attached || f.cursor == nil):
		f.ended(status)
	case t.attached:
		t.run = status.GetRunId() // a run took it in a gap, and its final is to come
	default:
		t.attached, t.run = true, status.GetRunId()
		f.subscribe()
	}
}

// ended: the turn has its end, and its run's final is not among the items.
func (f *feed) ended(status *messages.TurnStatus) {
	if !f.turn.told || messages.Outcome(status.GetOutcome()).Valid() {
		f.put("", endedFrame(f.key, f.turn.accepted, status))
	}
	f.finish(whole)
}
