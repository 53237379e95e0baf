package session

import (
	"slices"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// RunOrder is all that a runner needs: a view of the session at the start of the run, which later events do not change.
type RunOrder struct {
	Key     messages.Key
	RunID   RunID
	TurnIDs []string
	Attempt uint32
	// Router is one state that includes every event recorded before the start.
	Router router.State
	// Turns is the conversation, the newest user turn last.
	Turns       []contextpack.Turn
	KeepLast    int
	TokenBudget int
	Model       string
	// Resume is the token of the conversation that the run continues; nil = none.
	Resume *messages.ResumeToken
	// Known is how many of Turns, from the oldest, are in the conversation of Resume already.
	Known int
	// Engine keeps the conversation and goes first, whatever the model; "" = the model decides.
	Engine string
}

// startRun gives the turns of the queue's first entry to a run, whose slot is in hand. Previous is the phase in which it is.
func (d *draft) startRun(turns []*messages.Turn, previous messages.Phase) {
	lead := turns[0]
	if d.s.Ledger.awaited(lead.GetRunId()) {
		previous = messages.PhaseWaitingForSlot
	}
	d.record(&messages.RunStarted{RunId: lead.GetRunId(), TurnIds: turnIDs(turns), Attempt: 1, StartedAt: d.stamp()})
	run := d.s.Ledger.Active
	d.begin(run)
	for _, part := range turns[1:] { // its end; the run's end tells the answer
		d.publish(&messages.TurnStateChanged{
			TurnId: part.GetTurnId(), State: string(messages.TurnMerged), RunId: run.ID, MergedInto: lead.GetTurnId(),
		})
	}
	if previous != messages.PhaseWaitingForSlot {
		d.publish(phase(run.ID, run.TurnIDs(), previous, messages.PhaseWaitingForSlot, 1))
	}
	d.publish(phase(run.ID, run.TurnIDs(), messages.PhaseWaitingForSlot, messages.PhaseDispatched, 1))
	d.effect(StartRun{Order: d.order()})
}

// begin notes that an attempt has its slot and starts.
func (d *draft) begin(run *Run) {
	live := &d.s.Live
	live.Asked, live.Working, live.Starts, live.Restarting, live.AfterCrash = AskSlot{}, run.ID, 0, false, false
	live.Phase, live.Text, live.Streamed, live.Actions = messages.PhaseDispatched, Text{}, false, nil
}

// order describes the active run's current attempt.
func (d *draft) order() RunOrder {
	run, set := d.s.Ledger.Active, d.s.settings(d.cfg)
	asked := run.asked()
	order := RunOrder{
		Key:         d.s.Key,
		RunID:       run.ID,
		TurnIDs:     run.TurnIDs(),
		Attempt:     run.Attempt,
		Router:      d.s.Router,
		Turns:       conversation(slices.Concat(before(d.s.Ledger.History, asked), asked)),
		KeepLast:    max(set.keepLast, len(asked)),
		TokenBudget: set.tokenBudget,
		Model:       d.model(run.Turns),
	}
	order.Resume, _ = d.resume(run.Turns)
	order.Known, order.Engine = d.known(order), d.engine(run.Turns)
	return order
}

// known counts what of an order's turns the engine of its token has been told. To the session's own token all is new that came
// after the run which reported it; with any other one a turn goes on with a conversation that is not the session's, which gets
// the turn alone.
func (d *draft) known(order RunOrder) int {
	asked := d.s.Ledger.Active.asked()
	earlier := before(d.s.Ledger.History, asked)
	stored := d.s.Ledger.Resume
	switch {
	case order.Resume == nil:
		return 0
	case stored.Token == nil || !intake.Same(order.Resume, stored.Token):
		return len(earlier)
	}
	for i, entry := range slices.Backward(earlier) {
		if entry.TurnID == stored.TurnID {
			return i + 1
		}
	}
	return 0 // it is older than the history
}

// asked is what the run answers: its question and then what steered it. That is its input and not memory, so a further attempt
// has all of it, also what the history has no more room for.
func (r *Run) asked() []Entry {
	entries := []Entry{question(r.Turns)}
	for _, turn := range r.Injected {
		entries = append(entries, question([]*messages.Turn{turn}))
	}
	return entries
}

// before is the history without what the active run was asked, which is the newest of it.
func before(history, asked []Entry) []Entry {
	return history[:max(0, len(history)-len(asked))]
}

// running says whether a report is of the attempt that is active; late ones are dropped.
func (d *draft) running(id RunID, attempt uint32) bool {
	run := d.s.Ledger.Active
	return run != nil && run.ID == id && run.Attempt == attempt && d.s.Live.Working == id
}

func (d *draft) runPhased(c RunPhased) {
	if d.running(c.RunID, c.Attempt) {
		d.advance(c.Phase)
		d.waits(c.Reason)
	}
}

func (d *draft) runStreamed(c RunStreamed) {
	if !d.running(c.RunID, c.Attempt) || c.Text == "" {
		return
	}
	d.advance(messages.PhaseStreaming)
	d.publish(&messages.StreamDelta{
		RunId:   c.RunID,
		Attempt: c.Attempt,
		Offset:  uint64(d.s.Live.Text.Len()), //nolint:gosec // a length
		Text:    c.Text,
	})
	d.s.Live.Text, d.s.Live.Streamed = d.s.Live.Text.Append(c.Text), true
	d.effect(AckRunner{RunID: c.RunID, Attempt: c.Attempt})
}

// working are the phases that a runner's reports lead through; the others are the session's own.
var working = []messages.Phase{messages.PhaseDispatched, messages.PhaseStartingEngine, messages.PhaseStreaming}

// advance publishes the active run's phases up to one that its runner reached, each once and none left out.
func (d *draft) advance(to messages.Phase) {
	run := d.s.Ledger.Active
	at := slices.Index(working, d.s.Live.Phase)
	for ; at >= 0 && at < slices.Index(working, to); at++ {
		d.publish(phase(run.ID, run.TurnIDs(), working[at], working[at+1], run.Attempt))
		d.s.Live.Phase = working[at+1]
	}
}

func (d *draft) runFinished(c RunFinished) {
	if !d.final(c) {
		return
	}
	if !c.Outcome.Valid() { // a runner of ours that errs must not leave a turn without an end (I7)
		c.Outcome = messages.OutcomeFailed
		c.Error = messages.Fail(messages.CodeInternal, "the run ended in a way that is not known")
	}
	d.checkpoint()
	if d.s.Ledger.Active.Aborted {
		d.endAborted(c)
	} else {
		d.end(ending{
			outcome: c.Outcome, content: c.Content, finishReason: c.FinishReason, usage: c.Usage, failure: c.Error,
			resume: c.Resume, resumeLost: c.ResumeLost,
		})
	}
}

// graceOver ends a canceled run that did not report in time, with the text that was seen.
func (d *draft) graceOver(c GraceOver) {
	if !d.running(c.RunID, c.Attempt) || !d.s.Ledger.Active.Aborted {
		return
	}
	d.checkpoint()
	d.endAborted(RunFinished{Content: d.s.Live.Text.String()})
}

// endAborted ends a run that was stopped, with what it had until then.
func (d *draft) endAborted(c RunFinished) {
	e := ending{
		outcome: messages.OutcomeCancelled, content: c.Content, usage: c.Usage, resume: c.Resume, resumeLost: c.ResumeLost,
		reason: d.s.Ledger.Active.AbortReason,
	}
	if d.s.Ledger.Active.Interrupted {
		e.outcome = messages.OutcomeInterrupted
	}
	d.end(e)
}

// suspend stops the active run for an orderly stop of the process: the run goes on after the next start.
func (d *draft) suspend() {
	d.s.Live.Draining = true
	if !d.s.Running() {
		return
	}
	run := d.s.Ledger.Active
	if run.Aborted {
		d.endAborted(RunFinished{Content: d.s.Live.Text.String()})
	} else {
		d.record(&messages.RunSuspended{RunId: run.ID})
		d.s.Live.Working = ""
	}
	d.effect(CancelRun{RunID: run.ID, Attempt: run.Attempt, Cause: CauseSuspended})
}

// ending is how a run ends.
type ending struct {
	outcome      messages.Outcome
	content      string
	finishReason string
	usage        *messages.Usage
	failure      *messages.Failure
	resume       *messages.ResumeToken
	resumeLost   bool
	// reason is told with the turns' end.
	reason string
}

// end ends the active run and its turns in one append: steering notes (I2), the end record, and then the closing items in
// their order, whose numbers the record carries.
func (d *draft) end(e ending) {
	run := d.s.Ledger.Active
	steered := d.emitNotes(run)
	if e.usage == nil {
		e.usage = &messages.Usage{Source: string(messages.UsageUnknown)}
	}
	if e.reason == "" && e.failure != nil {
		e.reason = e.failure.GetCode()
	}
	record := &messages.RunEnded{
		RunId:          run.ID,
		TurnIds:        run.TurnIDs(),
		Outcome:        string(e.outcome),
		Content:        e.content,
		FinishReason:   e.finishReason,
		Usage:          e.usage,
		Error:          e.failure,
		EndedAt:        d.stamp(),
		FirstSeq:       d.s.Live.NextSeq,
		Attempt:        run.Attempt,
		SteeredTurnIds: steered,
		Streamed:       d.s.Live.Streamed,
	}
	if token, lineage := d.resume(run.Turns); e.resume != nil {
		record.Resume, record.ResumeLineage = e.resume, intake.Continue(lineage, e.resume).Lineage
	} else if stored := d.s.Ledger.Resume.Token; token != nil && stored != nil {
		record.ResumeLost = e.resumeLost && intake.Same(token, stored) // the turn's own token is none that the session has
	}
	items := d.closing(run, record, e)
	record.FinalSeq = d.s.Live.NextSeq + uint64(len(items)) - 1
	d.record(record)
	for i, turn := range run.Turns {
		status := endedStatus(turn, record, e.reason)
		if i > 0 {
			status.State, status.MergedInto = string(messages.TurnMerged), run.Turns[0].GetTurnId()
		}
		d.index(status)
	}
	for _, turn := range run.Injected {
		status := endedStatus(turn, record, "")
		status.State, status.SteeredInto = string(messages.TurnSteered), run.ID
		d.index(status)
	}
	d.publish(items...)
	d.s.Live.Working, d.s.Live.Phase, d.s.Live.Text, d.s.Live.Actions = "", "", Text{}, nil
	d.returnOffers()
}

// emitNotes writes one steering note for each STEERING turn that the run took, whatever its outcome (I2).
func (d *draft) emitNotes(run *Run) []string {
	var steered []string
	for _, turn := range run.Turns {
		if messages.ChatMode(turn.GetMode()) != messages.ChatModeSteering {
			continue
		}
		d.emit(&messages.SteeringNoteAdded{Content: turn.GetText(), CreatedAt: d.stamp(), TurnId: turn.GetTurnId()})
		steered = append(steered, turn.GetTurnId())
	}
	if steered != nil {
		d.effect(AnnounceEvents{Head: d.s.Router.EventSequence})
	}
	return steered
}

// closing lists the last items of a run in their order (I9).
func (d *draft) closing(run *Run, record *messages.RunEnded, e ending) []messages.Intent {
	var items []messages.Intent
	at := d.s.Live.Phase
	for _, next := range finishing(at, endPhase(e)) {
		items = append(items, phase(run.ID, run.TurnIDs(), at, next, run.Attempt))
		at = next
	}
	if last := d.toolsClosed(run); last != nil {
		items = append(items, last)
	}
	if record.GetStreamed() {
		items = append(items, &messages.StreamFinalize{
			RunId: run.ID, Attempt: run.Attempt, Text: record.GetContent(), Outcome: record.GetOutcome(),
		})
	}
	lead := run.Turns[0] // the merged ones ended when the run started
	items = append(items, &messages.TurnStateChanged{
		TurnId: lead.GetTurnId(), State: string(e.outcome.TurnState()), Reason: e.reason, RunId: run.ID,
		SteeringEmitted: messages.ChatMode(lead.GetMode()) == messages.ChatModeSteering,
	})
	last := phase(run.ID, run.TurnIDs(), at, endPhase(e), run.Attempt)
	last.Reason = e.reason
	return append(items, last, Response(record))
}

// finishing lists the phases between the last one and the terminal one, so that the order is legal even if the engine
// reported nothing before its answer. An aborted run finalizes nothing.
func finishing(at, end messages.Phase) []messages.Phase {
	switch {
	case end == messages.PhaseAborted:
		return nil
	case at == messages.PhaseStartingEngine || at == messages.PhaseStreaming:
		return []messages.Phase{messages.PhaseFinalizing}
	case at == messages.PhaseDispatched && end == messages.PhaseCompleted:
		return []messages.Phase{messages.PhaseStartingEngine, messages.PhaseFinalizing}
	}
	return nil
}

// endPhase gives the terminal phase of a run.
func endPhase(e ending) messages.Phase {
	switch e.outcome {
	case messages.OutcomeCompleted:
		return messages.PhaseCompleted
	case messages.OutcomeIncomplete:
		if e.failure != nil {
			return messages.PhaseFailed
		}
		return messages.PhaseCompleted
	case messages.OutcomeCancelled, messages.OutcomeInterrupted:
		return messages.PhaseAborted
	case messages.OutcomeFailed:
		return messages.PhaseFailed
	}
	return messages.PhaseFailed
}

// Response is the router_response of an ended run, the same whenever it is delivered.
func Response(r *messages.RunEnded) *messages.RouterResponse {
	return &messages.RouterResponse{
		RunId:           r.GetRunId(),
		TurnId:          first(r.GetTurnIds()),
		TurnIds:         r.GetTurnIds(),
		Content:         r.GetContent(),
		SteeringEmitted: len(r.GetSteeredTurnIds()) > 0,
		Outcome:         r.GetOutcome(),
		FinishReason:    r.GetFinishReason(),
		Usage:           r.GetUsage(),
		Error:           r.GetError(),
	}
}

// first of a run's turns; a record of a run without turns is none of ours, but must not stop a replay (I13).
func first(turns []string) string {
	if len(turns) == 0 {
		return ""
	}
	return turns[0]
}

func endedStatus(turn *messages.Turn, r *messages.RunEnded, reason string) *messages.TurnStatus {
	return &messages.TurnStatus{
		TurnId:          turn.GetTurnId(),
		State:           string(messages.Outcome(r.GetOutcome()).TurnState()),
		Reason:          reason,
		RunId:           r.GetRunId(),
		Content:         r.GetContent(),
		Outcome:         r.GetOutcome(),
		IdempotencyKey:  turn.GetIdempotencyKey(),
		ContentHash:     turn.GetContentHash(),
		SteeringEmitted: messages.ChatMode(turn.GetMode()) == messages.ChatModeSteering,
	}
}

func phase(run RunID, turns []string, previous, next messages.Phase, attempt uint32) *messages.RunPhaseChanged {
	return &messages.RunPhaseChanged{
		RunId: run, TurnIds: turns, Phase: string(next), PreviousPhase: string(previous), Attempt: attempt,
	}
}

// blank says whether an answer holds nothing worth remembering: an empty assistant message would spoil every later call.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
