package main

import (
	"errors"
	"slices"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// notice shows what the conversation tells.
func (l *lineChat) notice(n client.Notice) error {
	switch n := n.(type) {
	case *client.Connected:
		return l.connected(n)
	case *client.Lost:
		l.a.say("%v; trying again", n.Err)
	case *client.Accepted:
		l.undecided--
		if n.Turn.Disposition != "started" {
			l.waiting = append(l.waiting, n.Turn.TurnID)
		}
		if l.a.json {
			return l.a.writeFrame(n.Turn)
		}
		l.a.placed(n.Turn)
	case *client.Refused:
		if _, input := n.Request.(*protocol.ChatInput); input {
			l.undecided--
		}
		l.open--
		l.failure = n.Err
		l.a.say("refused: %v", n.Err)
		l.prompt()
	case *client.Settled:
		return l.settled(n)
	case *client.Arrived:
		return l.arrived(n.Frame)
	}
	return nil
}

func (l *lineChat) connected(n *client.Connected) error {
	state := n.Start.State
	if !l.reached {
		l.a.say("session %s (go on with it later: correx-actors chat %[1]s)", l.session)
	}
	l.reached, l.running = true, ""
	if state != nil && state.ActiveRun != nil {
		l.running = state.ActiveRun.RunID
	}
	switch {
	case l.a.json:
		return l.a.writeFrame(n.Start)
	case n.Again:
		l.a.say("connected again")
		return nil
	case state != nil && len(state.ConversationHistory)+int(state.EventSequence) > 0: //nolint:gosec // only compared with 0
		l.a.say("%d earlier messages, workflow %s (/status shows more)", len(state.ConversationHistory), state.WorkflowStatus)
	}
	l.prompt()
	return nil
}

func (l *lineChat) arrived(frame protocol.ServerFrame) error {
	switch f := any(frame).(type) { // the rest is text, or nothing that a line would tell
	case *protocol.Session:
		l.open--
		if !l.a.json && f.State != nil {
			defer l.prompt()
			return l.a.write("%s", describe(f.State))
		}
	case *protocol.Aborted:
		l.open--
		if !l.a.json {
			l.a.say("%s", aborted(f))
			l.prompt()
		}
	case *protocol.Withdrawn:
		l.open--
		return l.withdrawn(f)
	case *protocol.RunPhase:
		l.phase(f)
	case *protocol.Notice:
		if !l.a.json {
			l.a.say("%s", f.Text)
		}
	case *protocol.WatchdogPrompt:
		if !l.a.json {
			l.a.say("%s", f.Text)
		}
	case *protocol.ToolStatus:
		for _, line := range l.tools.News(f) {
			if !l.a.json {
				l.a.say("%s", line)
			}
		}
	case *protocol.Error:
		l.a.say("%v", f)
	case *protocol.RouterResponse:
		return l.answered(f)
	}
	if l.a.json {
		return l.a.writeFrame(frame)
	}
	return l.show(frame)
}

func (l *lineChat) withdrawn(f *protocol.Withdrawn) error {
	if l.a.json {
		return l.a.writeFrame(f)
	}
	if err := notWithdrawn(f); err != nil {
		l.a.say("%v", err)
	}
	l.prompt()
	return nil // the end of the turn tells the rest
}

// phase notes the active run, and tells why an own turn that was to steer waits after all.
func (l *lineChat) phase(f *protocol.RunPhase) {
	switch f.Phase {
	case "accepted", "queued_in_session", "aborted": // also of runs that wait
		if f.Phase == "queued_in_session" && f.Reason != "" && !l.a.json && slices.ContainsFunc(f.TurnIDs, l.waitsFor) {
			l.a.say("queued: %s", f.Reason)
		}
	default:
		l.running = f.RunID
		l.begun(f.TurnIDs...)
	}
}

func (l *lineChat) waitsFor(turn string) bool { return slices.Contains(l.waiting, turn) }

// begun: these turns wait no more.
func (l *lineChat) begun(turns ...string) {
	l.waiting = slices.DeleteFunc(l.waiting, func(id string) bool { return slices.Contains(turns, id) })
}

// show prints the text of an answer as it grows.
func (l *lineChat) show(frame protocol.ServerFrame) error {
	run := runOf(frame)
	if run == "" {
		return nil
	}
	if _, phase := frame.(*protocol.RunPhase); !phase {
		l.turnTo(run)
	}
	add, again := l.answer.Show(frame)
	return l.add(add, again)
}

func (l *lineChat) add(text string, again bool) error {
	if again {
		l.a.say("the answer begins again")
		text = "\n" + text
	}
	return l.a.write("%s", text)
}

// turnTo begins the answer of another run.
func (l *lineChat) turnTo(run string) {
	if l.shown != run {
		l.shown, l.answer = run, client.Answer{}
	}
}

// answered closes a run's answer.
func (l *lineChat) answered(f *protocol.RouterResponse) error {
	l.running = ""
	l.talk.Ack(f.Seq)
	if l.a.json {
		return l.a.writeFrame(f)
	}
	l.turnTo(f.RunID)
	var err error
	if f.Content != "" {
		err = l.add(l.answer.Show(f))
	}
	if l.answer.Started() {
		err = errors.Join(err, l.a.write("\n"))
	}
	l.shown = ""
	switch {
	case f.Error != nil:
		l.a.say("%s: %s: %s", f.Outcome, f.Error.Code, f.Error.Message)
	case f.Outcome != "completed":
		l.a.say("%s", f.Outcome)
	}
	return err
}

// settled counts a turn's end. One that was missed while there was no connection is shown here.
func (l *lineChat) settled(s *client.Settled) error {
	l.open--
	l.begun(s.TurnID)
	defer l.prompt()
	err := outcome(s)
	if err != nil {
		l.failure = err
	}
	if s.Response != nil {
		return nil // shown already
	}
	if err != nil {
		l.a.say("%v", err)
	}
	switch {
	case s.Turn == nil:
		return nil
	case l.a.json:
		return l.a.writeFrame(s.Turn)
	case s.Turn.Content != "":
		l.turnTo(s.Turn.RunID)
		err := l.add(l.answer.Whole(s.Turn.Content))
		l.shown = ""
		return errors.Join(err, l.a.write("\n"))
	}
	return nil
}
