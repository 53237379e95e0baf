package tui

import (
	"errors"
	"io"
	"strconv"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// activePhases are those of a run that holds its session.
var activePhases = map[string]bool{
	"waiting_for_slot": true, "dispatched": true, "starting_engine": true, "streaming": true, "finalizing": true,
}

// notice takes what the client tells.
func (m *model) notice(n client.Notice) []effect {
	switch n := n.(type) {
	case *client.Connected:
		m.connected(n)
	case *client.Lost:
		m.lost(n.Err)
	case *client.Accepted:
		m.accepted(n)
	case *client.Refused:
		m.refused(n)
	case *client.Settled:
		m.settled(n)
	case *client.Arrived:
		return m.arrived(n.Frame)
	}
	return nil
}

func (m *model) connected(n *client.Connected) {
	m.conn, m.trouble, m.aborting = linkConnected, "", false
	m.know(n.Start.State)
	if n.Again {
		m.stale = true
		return
	}
	// The chat begins with the history; of what is kept of the output only the active run's is not in it yet.
	m.live, m.replayed = n.Start.NextSeq, m.running
	if n.Start.State == nil {
		return
	}
	for _, h := range n.Start.State.ConversationHistory {
		m.log.add(heard(h))
		if h.Role == roleUser {
			m.recall.add(h.Content)
		}
	}
	if len(n.Start.State.ConversationHistory) == 0 {
		m.log.note("A new conversation. Write something, or /help.")
	}
	if m.running != "" {
		m.log.answer(m.running)
	}
}

func (m *model) lost(err error) {
	m.conn, m.trouble, m.aborting = linkReconnecting, "", false
	if err == nil {
		return
	}
	m.trouble = err.Error()
	var gone *client.UnreachableError
	switch {
	case errors.Is(err, io.EOF):
		m.trouble = "the connection to the server was lost"
	case errors.As(err, &gone):
		m.trouble = gone.Err.Error()
	}
}

// know takes over what a state says of the workflow, the run and the queue.
func (m *model) know(s *protocol.State) {
	if s == nil {
		return
	}
	m.status, m.stage, m.queued = s.WorkflowStatus, s.CurrentStageID, len(s.Queue)
	if s.ActiveRun == nil {
		m.run("", 0)
		return
	}
	m.run(s.ActiveRun.RunID, s.ActiveRun.Attempt)
}

// run says which run is active.
func (m *model) run(id string, attempt uint32) {
	if id != m.running {
		m.seconds, m.aborting = 0, false
	}
	m.running, m.attempt = id, attempt
	for _, e := range m.log.inputsOf(id) {
		e.stage = max(e.stage, stageBegun)
	}
}

func (m *model) accepted(n *client.Accepted) {
	m.stale = true
	if m.conn == linkReconnecting { // it took no new turns for a while
		m.conn, m.trouble = linkConnected, ""
	}
	e := m.log.input(n.Input.IdempotencyKey)
	if e == nil {
		return
	}
	e.turn, e.run, e.stage = n.Turn.TurnID, n.Turn.RunID, max(e.stage, stageQueued)
	switch n.Turn.Disposition {
	case "started":
		m.run(n.Turn.RunID, 0)
		m.log.answer(n.Turn.RunID)
	case "merged":
		e.remark = joined
	case "steering":
		e.remark = "offered to the running answer"
	}
}

func (m *model) refused(n *client.Refused) {
	switch request := n.Request.(type) {
	case *protocol.ChatInput:
		if e := m.log.input(request.IdempotencyKey); e != nil {
			e.stage, e.failure = stageEnded, n.Err.Error()+" (↑ brings the text back)"
			return
		}
	case *protocol.GetSession:
		m.answered()
	case *protocol.Abort:
		m.aborting = false
		if n.Err.Code == protocol.CodeUnknownRun || n.Err.Code == protocol.CodeUnknownSession {
			m.log.note("nothing to abort")
			return
		}
	case *protocol.StartSession, *protocol.Explain, *protocol.Subscribe, *protocol.Unsubscribe, *protocol.Withdraw, *protocol.KeepRunAlive,
		*protocol.GetTurn, *protocol.RecordEvents, *protocol.Ack, *protocol.Ping:
	}
	m.log.fail(n.Err.Error())
}

// settled takes the end of an own turn. That of a run is shown with its answer, unless it was missed.
func (m *model) settled(n *client.Settled) {
	m.stale = true
	e := m.log.input(n.Input.IdempotencyKey)
	if e == nil {
		return
	}
	e.stage = stageEnded
	switch {
	case n.Response != nil:
		return
	case n.Turn != nil && n.Turn.RunID != "" && n.Turn.Outcome != "":
		e.run = n.Turn.RunID
		m.log.answer(e.run).finish(n.Turn.Content, n.Turn.Outcome)
		if m.running == e.run {
			m.run("", 0)
		}
	case n.State == "failed", n.State == "expired":
		e.failure = because(n.State, n.Reason)
	default:
		e.remark = because(n.State, n.Reason)
	}
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// answered takes a question for the state off the list and says why it was asked.
func (m *model) answered() ask {
	if len(m.asks) == 0 {
		return askRefresh
	}
	first := m.asks[0]
	m.asks = m.asks[1:]
	return first
}

// arrived takes a frame.
func (m *model) arrived(frame protocol.ServerFrame) []effect {
	if item, ok := frame.(protocol.OutputItem); ok {
		if _, seq := item.Place(); seq < m.live && (m.replayed == "" || runOf(frame) != m.replayed) {
			return nil // its end is in the history
		}
	}
	switch f := frame.(type) {
	case *protocol.StreamDelta:
		m.log.answer(f.RunID).delta(f)
	case *protocol.StreamSnapshot:
		m.stream(f.RunID, f.Attempt, f.Text)
	case *protocol.StreamFinalize:
		m.stream(f.RunID, f.Attempt, f.Text)
	case *protocol.ToolStatus:
		for _, line := range m.tools.News(f) {
			m.log.note(line)
		}
	case *protocol.WatchdogPrompt:
		m.log.note(f.Text)
	case *protocol.RunPhase:
		m.phase(f)
	case *protocol.TurnState:
		m.turn(f)
	case *protocol.RouterResponse:
		return m.response(f)
	case *protocol.Notice:
		m.log.note(f.Text)
	case *protocol.Resync:
		m.resync(f)
	case *protocol.Session:
		m.told(f.State)
	case *protocol.SessionEvent:
		m.stale = true
	case *protocol.Aborted:
		m.aborting = len(f.RunIDs) > 0 && m.running != ""
		if len(f.RunIDs)+len(f.TurnIDs) == 0 {
			m.log.note("nothing to abort")
		}
	case *protocol.Withdrawn:
		if !f.Withdrawn {
			m.log.note("too late to withdraw it: it is " + f.State)
		}
	case *protocol.Error:
		m.log.fail(f.Error())
	case *protocol.Hello, *protocol.SessionStarted, *protocol.TurnAccepted, *protocol.Explanation, *protocol.Subscribed,
		*protocol.Unsubscribed, *protocol.OK, *protocol.Turn, *protocol.EventsRecorded, *protocol.Pong, *protocol.Gap:
	}
	return nil
}

func (m *model) stream(run string, attempt uint32, text string) {
	if e := m.log.answer(run); e.open {
		e.whole(attempt, text)
	}
}

func (m *model) phase(f *protocol.RunPhase) {
	for i, turn := range f.TurnIDs {
		e := m.log.inputOfTurn(turn)
		if e == nil {
			continue
		}
		e.run = f.RunID
		switch {
		case f.Phase == "queued_in_session" && f.Reason != "":
			e.remark = "waits: " + f.Reason
		case i == 0 && e.remark == joined:
			e.remark = "" // the one before it was taken back, so it leads
		}
	}
	if !activePhases[f.Phase] {
		return
	}
	if f.RunID != m.running {
		m.stale = true
		m.strange = m.strange || len(m.log.inputsOf(f.RunID)) == 0
	}
	m.run(f.RunID, f.Attempt)
	m.log.answer(f.RunID)
}

func (m *model) turn(f *protocol.TurnState) {
	m.stale = true
	if e := m.log.inputOfTurn(f.TurnID); e != nil {
		switch f.State {
		case "merged":
			e.run, e.remark = f.RunID, joined
		case "steered":
			e.run, e.remark, e.stage = f.RunID, "taken into the running answer", stageBegun
		}
	}
	if f.SteeringEmitted {
		m.steered(f.RunID)
	}
}

// steered acknowledges the steering notes among the inputs of a run.
func (m *model) steered(run string) {
	for _, e := range m.log.inputsOf(run) {
		if e.steer {
			e.remark = steeringRecorded
		}
	}
}

// joined is the remark of a merged input.
const joined = "joined to the one before it"

const steeringRecorded = "steering note recorded for the workflow"

// response closes the answer of a run.
func (m *model) response(f *protocol.RouterResponse) []effect {
	e := m.log.answer(f.RunID)
	e.finish(f.Content, f.Outcome)
	if f.Error != nil {
		e.failure = f.Error.Code + ": " + f.Error.Message
		if e.text == "" {
			e.remark = "" // the failure says it
		}
	}
	for _, a := range f.Attachments {
		name := a.Name
		if name == "" {
			name = a.ID
		}
		m.log.note("file " + name + ", " + strconv.FormatInt(a.Size, 10) + " bytes")
	}
	for _, input := range m.log.inputsOf(f.RunID) {
		input.stage = stageEnded
	}
	if f.SteeringEmitted {
		m.steered(f.RunID)
	}
	if m.running == f.RunID {
		m.run("", 0)
	}
	m.stale = true
	return []effect{ack{f.Seq}}
}

// resync takes the present state in place of output that is not kept any more.
func (m *model) resync(f *protocol.Resync) {
	m.live = 0
	m.know(f.State)
	if f.State != nil {
		m.log.merge(f.State.ConversationHistory, f.RunID)
	}
	if f.RunID != "" {
		m.run(f.RunID, f.Attempt)
		m.stream(f.RunID, f.Attempt, f.Text)
	}
}

// told takes the answer to a question for the state.
func (m *model) told(s *protocol.State) {
	why := m.answered()
	if s == nil {
		return
	}
	m.know(s)
	if m.strange {
		m.strange = false
		m.log.merge(s.ConversationHistory, m.running)
	}
	if why == askStatus {
		m.log.note(describe(s))
	}
}

// runOf is the run that a numbered item belongs to.
func runOf(frame protocol.ServerFrame) string {
	switch f := any(frame).(type) { // all others belong to none
	case *protocol.RunPhase:
		return f.RunID
	case *protocol.StreamDelta:
		return f.RunID
	case *protocol.StreamSnapshot:
		return f.RunID
	case *protocol.StreamFinalize:
		return f.RunID
	case *protocol.TurnState:
		return f.RunID
	case *protocol.RouterResponse:
		return f.RunID
	case *protocol.Notice:
		return f.RunID
	case *protocol.ToolStatus:
		return f.RunID
	case *protocol.WatchdogPrompt:
		return f.RunID
	}
	return ""
}
