package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// waitForServer is how long a command waits for a server that it has reached before: long enough for a restart.
const waitForServer = time.Minute

type sendCmd struct {
	Session        string   `arg:"" help:"The session's id; it is made if it does not exist."`
	Text           []string `arg:"" help:"The text; - reads it from standard input."`
	Steer          bool     `help:"Also leave the text as a steering note for the workflow."`
	QueueMode      string   `placeholder:"MODE" help:"What to do when the session is busy: collect, followup, steer, steer_backlog or interrupt."`
	IdempotencyKey string   `placeholder:"KEY" help:"Sending again with the same key never makes a second turn."`
	Model          string   `placeholder:"NAME" help:"Model that answers this turn."`
	NoWait         bool     `help:"Print the turn's id once it is accepted, and do not wait for the answer."`
	Explain        bool     `help:"Say what would become of the turn now, and do nothing."`
}

// Run implements the command.
func (s *sendCmd) Run(a *app) error {
	input, err := s.input(a)
	if err != nil {
		return err
	}
	if s.Explain {
		return s.explain(a, input)
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	talk := c.Talk(ctx, s.Session, client.TalkOptions{GiveUp: waitForServer})
	defer talk.Close()
	talk.Submit(input)
	w := waiter{a: a, talk: talk, noWait: s.NoWait}
	for notice := range talk.Notices() {
		done, err := w.notice(notice)
		if done || err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return w.left()
	}
	return talk.Err()
}

func (s *sendCmd) explain(a *app, input *protocol.ChatInput) error {
	input.SessionID = s.Session
	f, err := question[*protocol.Explanation](a, &protocol.Explain{ChatInput: *input})
	if err != nil {
		return err
	}
	if a.json {
		return a.writeFrame(f)
	}
	rows := []row{{"turn", f.Disposition}, {"mode", f.QueueMode}, {"merged", f.MergedInto}, {"reason", f.Reason}}
	if f.Disposition == "queued" || f.Disposition == "merged" {
		rows = append(rows, row{"behind", turnsBefore(f.Position)})
	}
	return a.write("%s", table(rows))
}

func (s *sendCmd) input(a *app) (*protocol.ChatInput, error) {
	text := strings.Join(s.Text, " ")
	if text == "-" {
		b, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("read text: %w", err)
		}
		text = strings.TrimRight(string(b), "\n")
	}
	input := &protocol.ChatInput{
		Text: text, Mode: protocol.ModeChat, QueueMode: s.QueueMode, IdempotencyKey: s.IdempotencyKey, Model: s.Model,
	}
	if s.Steer {
		input.Mode = protocol.ModeSteering
	}
	return input, nil
}

// waiter prints the answer of one turn.
type waiter struct {
	// tools of the run, as shown.
	tools  client.Tools
	a      *app
	talk   *client.Talk
	noWait bool
	turn   *protocol.TurnAccepted
	// run that answers the turn, as far as is known: a turn may join another one's run.
	run    string
	answer client.Answer
}

func (w *waiter) notice(n client.Notice) (done bool, err error) {
	switch n := n.(type) {
	case *client.Connected:
		if n.Again {
			w.a.say("connected again")
		}
	case *client.Lost:
		w.a.say("%v; trying again", n.Err)
	case *client.Accepted:
		return w.noWait, w.accepted(n.Turn)
	case *client.Refused:
		return true, n.Err
	case *client.Arrived:
		return false, w.arrived(n.Frame)
	case *client.Settled:
		return true, w.settled(n)
	}
	return false, nil
}

func (w *waiter) accepted(turn *protocol.TurnAccepted) error {
	w.turn, w.run = turn, turn.RunID
	switch {
	case w.noWait && w.a.json:
		return w.a.writeFrame(turn)
	case w.noWait:
		return w.a.write("%s\n", turn.TurnID)
	}
	w.a.placed(turn)
	return nil
}

// placed tells a person where an accepted turn went; one that starts needs no words.
func (a *app) placed(turn *protocol.TurnAccepted) {
	switch turn.Disposition {
	case "queued":
		a.say("queued, %d before it", turn.Position)
	case "merged":
		a.say("joined to %s: both get one answer", turn.MergedInto)
	case "steering":
		a.say("offered to the running answer")
	}
}

// moved follows the turn to the run that answers it.
func (w *waiter) moved(frame protocol.ServerFrame) {
	switch f := any(frame).(type) { // no other tells of it
	case *protocol.TurnState:
		if f.TurnID == w.turn.TurnID && (f.State == "merged" || f.State == "steered") {
			w.run = f.RunID
		}
	case *protocol.RunPhase:
		if !slices.Contains(f.TurnIDs, w.turn.TurnID) {
			return
		}
		w.run = f.RunID
		if f.Phase == "queued_in_session" && f.Reason != "" {
			w.a.say("queued: %s", f.Reason)
		}
	}
}

// arrived prints what belongs to the turn's own run.
func (w *waiter) arrived(frame protocol.ServerFrame) error {
	if w.turn == nil || w.a.json {
		return nil
	}
	if w.moved(frame); runOf(frame) != w.run {
		return nil
	}
	switch f := any(frame).(type) { // the others carry text, or nothing to show
	case *protocol.RouterResponse:
		if f.Content == "" {
			return nil
		}
	case *protocol.ToolStatus:
		for _, line := range w.tools.News(f) {
			w.a.say("%s", line)
		}
		return nil
	case *protocol.WatchdogPrompt:
		w.a.say("%s", f.Text)
		return nil
	}
	return w.show(w.answer.Show(frame))
}

func (w *waiter) show(add string, again bool) error {
	if again {
		w.a.say("the answer begins again")
		add = "\n" + add
	}
	return w.a.write("%s", add)
}

func (w *waiter) settled(s *client.Settled) error {
	if w.a.json {
		return w.settledJSON(s)
	}
	if s.Turn != nil && s.Turn.Content != "" {
		if err := w.show(w.answer.Whole(s.Turn.Content)); err != nil {
			return err
		}
	}
	if w.answer.Started() {
		if err := w.a.write("\n"); err != nil {
			return err
		}
	}
	return w.outcome(s)
}

func (w *waiter) settledJSON(s *client.Settled) error {
	var err error
	switch {
	case s.Response != nil:
		err = w.a.writeFrame(s.Response)
	case s.Turn != nil:
		err = w.a.writeFrame(s.Turn)
	default:
		err = w.a.writeFrame(&protocol.Turn{TurnID: s.TurnID, State: s.State, Reason: s.Reason})
	}
	return errors.Join(err, w.outcome(s))
}

func (w *waiter) outcome(s *client.Settled) error {
	if s.Response != nil {
		w.talk.Ack(s.Response.Seq)
	}
	return outcome(s)
}

// outcome is nil if the turn was answered.
func outcome(s *client.Settled) error {
	switch {
	case s.State == "answered":
		return nil
	case s.Response != nil && s.Response.Error != nil:
		return fmt.Errorf("%s: %s: %s", s.State, s.Response.Error.Code, s.Response.Error.Message)
	case s.Reason != "":
		return fmt.Errorf("%s: %s", s.State, s.Reason)
	}
	return errors.New(s.State)
}

// left tells how to find the answer after the command was interrupted.
func (w *waiter) left() error {
	if w.turn == nil {
		return errors.New("interrupted before the turn was accepted")
	}
	return fmt.Errorf("interrupted; the answer goes on, see: correx-actors turns show %s %s", w.turn.SessionID, w.turn.TurnID)
}

// runOf is the run that an item belongs to; "" for other frames.
func runOf(frame protocol.ServerFrame) string {
	switch f := frame.(type) {
	case *protocol.StreamDelta:
		return f.RunID
	case *protocol.StreamSnapshot:
		return f.RunID
	case *protocol.StreamFinalize:
		return f.RunID
	case *protocol.RouterResponse:
		return f.RunID
	case *protocol.RunPhase:
		return f.RunID
	case *protocol.Resync:
		return f.RunID
	case *protocol.Notice:
		return f.RunID
	case *protocol.ToolStatus:
		return f.RunID
	case *protocol.WatchdogPrompt:
		return f.RunID
	case *protocol.Hello, *protocol.SessionStarted, *protocol.TurnAccepted, *protocol.Explanation, *protocol.Subscribed,
		*protocol.Unsubscribed, *protocol.Aborted, *protocol.Withdrawn, *protocol.OK, *protocol.Turn, *protocol.Session, *protocol.EventsRecorded,
		*protocol.Pong, *protocol.Error,
		*protocol.TurnState, *protocol.SessionEvent, *protocol.Gap:
		return ""
	}
	return ""
}
