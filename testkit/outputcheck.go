package testkit

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// legalPhases are the moves of a run's phase.
var legalPhases = map[messages.Phase][]messages.Phase{
	messages.PhaseAccepted:       {messages.PhaseQueued, messages.PhaseWaitingForSlot, messages.PhaseAborted},
	messages.PhaseQueued:         {messages.PhaseWaitingForSlot, messages.PhaseAborted},
	messages.PhaseWaitingForSlot: {messages.PhaseDispatched, messages.PhaseAborted, messages.PhaseFailed},
	messages.PhaseDispatched:     {messages.PhaseStartingEngine, messages.PhaseFailed, messages.PhaseAborted},
	messages.PhaseStartingEngine: {messages.PhaseStreaming, messages.PhaseFinalizing, messages.PhaseFailed, messages.PhaseAborted},
	messages.PhaseStreaming:      {messages.PhaseFinalizing, messages.PhaseFailed, messages.PhaseAborted},
	messages.PhaseFinalizing:     {messages.PhaseCompleted, messages.PhaseFailed},
}

// LegalPhase says whether a run may go from one phase to the next within an attempt.
func LegalPhase(from, to messages.Phase) bool { return slices.Contains(legalPhases[from], to) }

// outputCheck follows the output of a session (I9, I10, I11).
type outputCheck struct {
	last      uint64 // number of the last item
	fresh     bool   // no item since the last restart
	runs      map[string]*runLife
	running   string // the run whose final is to come
	announced map[string]bool
}

// runLife is what was published of one run.
type runLife struct {
	attempt  uint32
	phase    messages.Phase
	streamed int  // bytes of deltas in this attempt and activation
	shown    bool // there were deltas in this activation, in any attempt
	final    bool // its last item was published
	closed   bool // its stream was finalized
}

func newOutputCheck() outputCheck {
	return outputCheck{fresh: true, runs: make(map[string]*runLife), announced: make(map[string]bool)}
}

// restarted: numbers may be left out from here on, and what was streamed is gone.
func (c *outputCheck) restarted() {
	c.fresh, c.running = true, ""
	for _, run := range c.runs {
		run.streamed, run.shown = 0, false
	}
}

func (c *outputCheck) after(before session.State, r Result, turns map[string]*turnLife) error {
	for _, effect := range r.Effects {
		var err error
		switch e := effect.(type) {
		case session.Publish:
			err = c.item(e, r, turns)
		case session.StartRun:
			err = c.started(e.Order, r.State, turns)
		case session.CancelRun:
			err = c.canceled(e, before)
		case session.AckRunner:
			err = c.ofActive(e.RunID, e.Attempt, r.State)
		case session.ArmGrace:
			err = c.ofActive(e.RunID, e.Attempt, r.State)
		case session.OfferSteer:
			err = c.ofActive(e.RunID, e.Attempt, r.State)
		case session.Inject:
			err = c.ofActive(e.RunID, e.Attempt, r.State)
		case session.LaunchTools:
			err = c.launched(e, r)
		case session.ArmStart:
			err = c.ofActive(e.RunID, e.Attempt, r.State)
		case session.RefuseSteer, session.ArmOffer, session.AnnounceEvents, session.AskSlot, session.DropSlot, session.ArmSlot, session.ArmSettle:
		}
		if err != nil {
			return err
		}
	}
	if next := r.State.Live.NextSeq; !c.fresh && next != c.last+1 {
		return fmt.Errorf("I11: item %d was published, the next is to be %d", c.last, next)
	}
	return nil
}

func (c *outputCheck) started(order session.RunOrder, s session.State, turns map[string]*turnLife) error {
	if c.running != "" && c.running != order.RunID {
		return fmt.Errorf("I9: run %s starts before the final of %s", order.RunID, c.running)
	}
	c.running = order.RunID
	if n := len(order.Turns); n == 0 || order.Turns[n-1].Role != messages.RoleUser {
		return fmt.Errorf("the order of %s does not end with the user's turn: %v", order.RunID, order.Turns)
	}
	if last := order.Turns[len(order.Turns)-1].Content; order.Attempt == 1 && last != asked(order.TurnIDs, turns) {
		return fmt.Errorf("the order of %s asks %q, its turns %q", order.RunID, last, asked(order.TurnIDs, turns))
	}
	if !order.Router.Equal(s.Router) {
		return fmt.Errorf("the order of %s is of event %d, the log is at %d", order.RunID, order.Router.EventSequence, s.Router.EventSequence)
	}
	if s.Live.Working != order.RunID {
		return fmt.Errorf("run %s starts without a slot", order.RunID)
	}
	return c.ofActive(order.RunID, order.Attempt, s)
}

// launched: tools start after the record that says so, and never for a run that is being stopped.
func (c *outputCheck) launched(e session.LaunchTools, r Result) error {
	if run := r.State.Ledger.Active; run == nil || run.Aborted || !run.Launched {
		return fmt.Errorf("tools %v start for %+v", e.CallIDs, run)
	}
	for _, record := range r.Ledger {
		if l, ok := record.(*messages.ToolsLaunched); ok && slices.Equal(l.GetCallIds(), e.CallIDs) {
			return c.ofActive(e.RunID, e.Attempt, r.State)
		}
	}
	return fmt.Errorf("tools %v start without a record", e.CallIDs)
}

// asked joins the texts of a run's turns.
func asked(ids []string, turns map[string]*turnLife) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, turns[id].turn.GetText())
	}
	return strings.Join(texts, "\n")
}

func (c *outputCheck) canceled(e session.CancelRun, before session.State) error {
	run := before.Ledger.Active
	if run == nil || run.ID != e.RunID || run.Attempt != e.Attempt {
		return fmt.Errorf("attempt %d of %s is canceled, but it did not run", e.Attempt, e.RunID)
	}
	return nil
}

func (c *outputCheck) ofActive(id messages.RunID, attempt uint32, s session.State) error {
	run := s.Ledger.Active
	if run == nil || run.ID != id || run.Attempt != attempt {
		return fmt.Errorf("an effect is for attempt %d of %s, but active is %+v", attempt, id, run)
	}
	return nil
}

// item checks one numbered item.
func (c *outputCheck) item(p session.Publish, r Result, turns map[string]*turnLife) error {
	if p.Seq <= c.last || (!c.fresh && p.Seq != c.last+1) {
		return fmt.Errorf("I11: item %d comes after item %d: %v", p.Seq, c.last, p.Intent)
	}
	c.last, c.fresh = p.Seq, false
	if p.Seq > r.State.Ledger.OutputReserved {
		return fmt.Errorf("I11: item %d is published, but only %d are reserved", p.Seq, r.State.Ledger.OutputReserved)
	}
	if err := copyThroughBytes(p.Intent, p.Intent.ProtoReflect().New().Interface()); err != nil {
		return err
	}
	switch intent := p.Intent.(type) {
	case *messages.RunPhaseChanged:
		return c.phase(intent)
	case *messages.StreamDelta:
		return c.delta(intent)
	case *messages.StreamFinalize:
		return c.finalize(intent, r)
	case *messages.TurnStateChanged:
		return c.turnState(intent, turns)
	case *messages.RouterResponse:
		return c.response(p.Seq, intent, r)
	case *messages.StreamSnapshot, *messages.Notice, *messages.ToolStatus, *messages.WatchdogPrompt:
	}
	return nil
}

// run gives what is known of a run whose final is still to come.
func (c *outputCheck) run(id string) (*runLife, error) {
	run := c.runs[id]
	if run == nil {
		run = &runLife{}
		c.runs[id] = run
	}
	if run.final {
		return nil, fmt.Errorf("I9: an item of %s after its last one", id)
	}
	return run, nil
}

func (c *outputCheck) phase(p *messages.RunPhaseChanged) error {
	run, err := c.run(p.GetRunId())
	if err != nil {
		return err
	}
	to, from := messages.Phase(p.GetPhase()), run.phase
	if p.GetAttempt() != run.attempt {
		first := messages.PhaseAccepted
		if p.GetAttempt() > 1 {
			first = messages.PhaseDispatched
		}
		if p.GetAttempt() != run.attempt+1 || to != first || p.GetPreviousPhase() != "" {
			return fmt.Errorf("attempt %d of %s begins with %v", run.attempt+1, p.GetRunId(), p)
		}
		run.attempt, run.phase, run.streamed, run.closed = p.GetAttempt(), to, 0, false
		return nil
	}
	if from == to && p.GetReason() != "" { // it waits
		return nil
	}
	if !LegalPhase(from, to) {
		return fmt.Errorf("phase of %s goes from %s to %s", p.GetRunId(), from, to)
	}
	if previous := messages.Phase(p.GetPreviousPhase()); previous != from && previous != "" {
		return fmt.Errorf("phase of %s goes from %s, but says %s", p.GetRunId(), from, previous)
	}
	if to == messages.PhaseWaitingForSlot && c.running != "" && c.running != p.GetRunId() {
		return fmt.Errorf("I9: %s wants a slot before the final of %s", p.GetRunId(), c.running)
	}
	run.phase = to
	if c.running != p.GetRunId() && to == messages.PhaseAborted {
		run.final = c.announced[p.GetTurnIds()[0]] && (from == messages.PhaseQueued || from == messages.PhaseWaitingForSlot)
	}
	return nil
}

func (c *outputCheck) delta(d *messages.StreamDelta) error {
	run, err := c.run(d.GetRunId())
	if err != nil {
		return err
	}
	if run.phase != messages.PhaseStreaming || d.GetAttempt() != run.attempt || d.GetOffset() != uint64(run.streamed) || run.closed {
		return fmt.Errorf("delta %v in %+v", d, *run)
	}
	run.streamed += len(d.GetText())
	run.shown = true
	return nil
}

func (c *outputCheck) finalize(f *messages.StreamFinalize, r Result) error {
	run, err := c.run(f.GetRunId())
	if err != nil {
		return err
	}
	end := endOf(r, f.GetRunId())
	if !run.shown || run.closed || f.GetText() != end.GetContent() || f.GetOutcome() != end.GetOutcome() {
		return fmt.Errorf("finalize %v of the end %v in %+v", f, end, *run)
	}
	run.closed = true
	return nil
}

func (c *outputCheck) turnState(s *messages.TurnStateChanged, turns map[string]*turnLife) error {
	life := turns[s.GetTurnId()]
	if life == nil || life.ended != messages.TurnState(s.GetState()) || c.announced[s.GetTurnId()] {
		return fmt.Errorf("I7: turn_state %v of %+v, announced before: %t", s, life, c.announced[s.GetTurnId()])
	}
	// The note of a merged turn is written when its run ends, and the run's response tells of it.
	noted := life.steering() && (life.injected != "" || life.taken && life.ended != messages.TurnMerged)
	if s.GetSteeringEmitted() != noted {
		return fmt.Errorf("I2: turn_state %v of %+v", s, life)
	}
	c.announced[s.GetTurnId()] = true
	return nil
}

// response: the last item of its run, exactly one, at the number that the record of the end carries.
func (c *outputCheck) response(seq uint64, response *messages.RouterResponse, r Result) error {
	run, err := c.run(response.GetRunId())
	if err != nil {
		return err
	}
	switch {
	case len(legalPhases[run.phase]) > 0:
		return fmt.Errorf("I9: the response of %s comes in phase %s", response.GetRunId(), run.phase)
	case run.shown && !run.closed:
		return fmt.Errorf("the stream of %s is not finalized", response.GetRunId())
	}
	for _, id := range response.GetTurnIds() {
		if !c.announced[id] {
			return fmt.Errorf("I7: the response of %s comes before the state of %s", response.GetRunId(), id)
		}
	}
	end := endOf(r, response.GetRunId())
	if end == nil || end.GetFinalSeq() != seq || !proto.Equal(session.Response(end), response) {
		return fmt.Errorf("I9: response %d %v of the end %v", seq, response, end)
	}
	run.final = true
	if c.running == response.GetRunId() {
		c.running = ""
	}
	return nil
}

func endOf(r Result, run string) *messages.RunEnded {
	for _, record := range r.Ledger {
		if end, ok := record.(*messages.RunEnded); ok && end.GetRunId() == run {
			return end
		}
	}
	return nil
}
