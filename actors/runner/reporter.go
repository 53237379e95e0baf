package runner

import (
	"strings"
	"sync"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// reporter tells the session of the run. At most one text is on its way; what comes meanwhile gathers, so that a slow session
// slows nothing and is flooded by nothing.
type reporter struct {
	order core.RunOrder
	tell  func(any)

	mu      sync.Mutex
	waiting strings.Builder
	// unacked: a text was told and the session has not asked for the next.
	unacked bool
	done    bool

	// answer is the attempt's whole text; only the run's goroutine touches it.
	answer strings.Builder
}

func (r *reporter) phase(p messages.Phase) {
	r.tell(core.RunPhased{RunID: r.order.RunID, Attempt: r.order.Attempt, Phase: p})
}

// text adds to the answer.
func (r *reporter) text(s string) {
	r.answer.WriteString(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unacked {
		r.waiting.WriteString(s)
		return
	}
	r.unacked = true
	r.tell(r.streamed(s))
}

// ack comes from the session through the runner's actor.
func (r *reporter) ack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unacked = false
	r.flush()
}

// flush tells what has gathered. Callers hold mu.
func (r *reporter) flush() {
	if r.done || r.waiting.Len() == 0 {
		return
	}
	r.unacked = true
	r.tell(r.streamed(r.waiting.String()))
	r.waiting.Reset()
}

// restart tells that a new attempt begins: what follows is of that one, and its text replaces that of the old. A text of the
// old one that is still on its way stays the one that is.
func (r *reporter) restart(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.Reset()
	r.answer.Reset()
	r.tell(core.RunRetried{RunID: r.order.RunID, Attempt: r.order.Attempt, Reason: reason})
	r.order.Attempt++
}

// attempt is the one that is told of now.
func (r *reporter) attempt() uint32 { return r.place().Attempt }

// place says which run and attempt are told of now.
func (r *reporter) place() core.RunOrder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return core.RunOrder{RunID: r.order.RunID, Attempt: r.order.Attempt}
}

// finish tells the rest of the text and then the end, as the last report of the run.
func (r *reporter) finish(end core.RunFinished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	r.done = true
	r.tell(end)
}

func (r *reporter) streamed(s string) core.RunStreamed {
	return core.RunStreamed{RunID: r.order.RunID, Attempt: r.order.Attempt, Text: s}
}
