package tools

import "encoding/json"

// Call is a call that a model asks for.
type Call struct {
	// ID is the model's name of the call; the answer carries it back. It need not be unique.
	ID   string
	Name string
	// Arguments are a JSON object; anything else is answered as invalid.
	Arguments json.RawMessage
}

// Reasons of calls that were not run, or were cancelled.
const (
	ReasonSteered   = "the user spoke"
	ReasonCancelled = "the run was cancelled"
	// ReasonUnrecorded: that the batch starts could not be recorded.
	ReasonUnrecorded = "the start was not recorded"
)

// stage is how far a call of a batch is.
type stage string

const (
	stageWaiting stage = "waiting"
	stageRunning stage = "running"
	stageEnded   stage = "ended"
)

// move is what a batch wants done next.
//
//sumtype:decl
type move interface{ isMove() }

// launch: record that these calls start, then say launched.
type launch struct{ calls []int }

// start the call; it is running from now on.
type start struct{ call int }

// boundary: ask whether the user spoke, then say passed.
type boundary struct{}

// wait for a running call to end.
type wait struct{}

// done: every call has its answer.
type done struct{}

func (launch) isMove()   {}
func (start) isMove()    {}
func (boundary) isMove() {}
func (wait) isMove()     {}
func (done) isMove()     {}

// batch decides which of the calls of one answer run when. It is pure: it is told what happened, and asked by next what to do.
// Whatever happens, each call ends with exactly one answer, at its own place.
type batch struct {
	calls   []Call
	stages  []stage
	answers []Answer
	// parallel bounds the calls that run at once; 1 = one after the other, with a boundary after each.
	parallel int
	// launched: the start is recorded, so calls may start.
	launched bool
	// owed: something ran since the last boundary.
	owed bool
	// steered and cancelled: nothing starts anymore.
	steered, cancelled bool
}

func newBatch(calls []Call, parallel int) *batch {
	b := &batch{calls: calls, stages: make([]stage, len(calls)), answers: make([]Answer, len(calls)), parallel: max(parallel, 1)}
	for i := range calls {
		b.stages[i] = stageWaiting
	}
	return b
}

// next is what to do now.
func (b *batch) next() move {
	waiting, running := b.in(stageWaiting), b.in(stageRunning)
	switch {
	case len(waiting) == 0 && len(running) == 0:
		if b.owed {
			return boundary{}
		}
		return done{}
	case !b.launched:
		return launch{calls: waiting}
	case b.parallel == 1 && b.owed:
		return boundary{}
	case len(waiting) > 0 && len(running) < b.parallel:
		b.stages[waiting[0]] = stageRunning
		return start{call: waiting[0]}
	}
	return wait{}
}

// refuse answers a call that is not to run at all.
func (b *batch) refuse(call int, answer Answer) { b.end(call, answer) }

// recorded says whether the start could be recorded. If not, nothing starts.
func (b *batch) recorded(ok bool) {
	if ok {
		b.launched = true
		return
	}
	b.drop(ReasonUnrecorded)
}

// finished gives the answer of a running call. What comes for any other one is late, and is dropped.
func (b *batch) finished(call int, answer Answer) bool {
	if b.stages[call] != stageRunning {
		return false
	}
	b.end(call, answer)
	b.owed = !b.cancelled
	return true
}

// passed says whether the user spoke at the boundary. If so, nothing more starts.
func (b *batch) passed(spoke bool) {
	b.owed = false
	if spoke {
		b.steered = true
		b.drop(ReasonSteered)
	}
}

// cancel ends what has not started, and every boundary. Running calls are still waited for: what they did may be known yet.
func (b *batch) cancel() {
	b.cancelled, b.owed = true, false
	b.drop(ReasonCancelled)
}

func (b *batch) drop(reason string) {
	for _, i := range b.in(stageWaiting) {
		b.end(i, failed(b.calls[i], &Failure{Type: ErrorNotRun, Tool: b.calls[i].Name, Reason: reason}))
	}
}

func (b *batch) end(call int, answer Answer) { b.stages[call], b.answers[call] = stageEnded, answer }

func (b *batch) in(s stage) []int {
	var calls []int
	for i, is := range b.stages {
		if is == s {
			calls = append(calls, i)
		}
	}
	return calls
}
