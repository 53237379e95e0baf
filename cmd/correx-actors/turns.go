package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

type turnsCmd struct {
	Show turnsShowCmd `cmd:"" help:"Show where a turn is, and its answer."`
}

type turnsShowCmd struct {
	Session string `arg:"" help:"The session's id."`
	Turn    string `arg:"" help:"The turn's id, or with --key its idempotency key."`
	Key     bool   `help:"TURN is an idempotency key."`
}

// Run implements the command.
func (t *turnsShowCmd) Run(a *app) error {
	ask := &protocol.GetTurn{SessionID: t.Session, TurnID: t.Turn}
	if t.Key {
		ask.TurnID, ask.IdempotencyKey = "", t.Turn
	}
	turn, err := question[*protocol.Turn](a, ask)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeFrame(turn)
	}
	rows := []row{
		{"turn", turn.TurnID},
		{"state", turn.State},
		{"reason", turn.Reason},
		{"run", turn.RunID},
		{"merged", turn.MergedInto},
		{"steered", turn.SteeredInto},
		{"outcome", turn.Outcome},
	}
	if turn.Position != nil {
		rows = append(rows, row{"behind", turnsBefore(*turn.Position)})
	}
	text := table(rows)
	if turn.Content != "" {
		text += "\n" + turn.Content + "\n"
	}
	return a.write("%s", text)
}

// row is a line of a table; one without a value is left out.
type row struct{ name, value string }

func table(rows []row) string {
	var text strings.Builder
	for _, r := range rows {
		if r.value != "" {
			fmt.Fprintf(&text, "%-9s%s\n", r.name, r.value)
		}
	}
	return text.String()
}

func turnsBefore(position uint32) string { return fmt.Sprintf("%d turns", position) }

type withdrawCmd struct {
	Session string `arg:"" help:"The session's id."`
	Turn    string `arg:"" help:"The turn's id, or with --key its idempotency key."`
	Key     bool   `help:"TURN is an idempotency key."`
}

// Run implements the command.
func (c *withdrawCmd) Run(a *app) error {
	id := c.Turn
	if c.Key {
		turn, err := question[*protocol.Turn](a, &protocol.GetTurn{SessionID: c.Session, IdempotencyKey: c.Turn})
		if err != nil {
			return err
		}
		id = turn.TurnID
	}
	f, err := question[*protocol.Withdrawn](a, &protocol.Withdraw{SessionID: c.Session, TurnID: id})
	if err != nil {
		return err
	}
	if a.json {
		err = a.writeFrame(f)
	} else if f.Withdrawn {
		err = a.write("withdrawn %s\n", f.TurnID)
	}
	return errors.Join(err, notWithdrawn(f))
}

// notWithdrawn is nil if the turn was taken back.
func notWithdrawn(f *protocol.Withdrawn) error {
	if f.Withdrawn {
		return nil
	}
	return fmt.Errorf("too late to withdraw %s: it is %s", f.TurnID, f.State)
}

type resumeCmd struct {
	Session string `arg:"" help:"The session's id."`
	Cancel  bool   `help:"End the turn that waits first instead; the others go on waiting."`
}

// Run implements the command.
func (c *resumeCmd) Run(a *app) error {
	s, err := question[*protocol.Session](a, &protocol.GetSession{SessionID: c.Session})
	if err != nil {
		return err
	}
	if s.State == nil || !s.State.Held {
		return fmt.Errorf("nothing in session %s waits for a word", c.Session)
	}
	frame := &protocol.KeepRunAlive{SessionID: c.Session, RunID: waitingRun(s.State), Decision: protocol.DecisionContinue}
	if c.Cancel {
		frame.Decision = protocol.DecisionCancel
	}
	f, err := question[*protocol.OK](a, frame)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeFrame(f)
	}
	if c.Cancel {
		return a.write("cancelled %s\n", frame.RunID)
	}
	return a.write("going on with %s\n", frame.RunID)
}

// waitingRun is the run that a user's word is about: the active one, or that of the first turn that waits.
func waitingRun(s *protocol.State) string {
	if s.ActiveRun != nil {
		return s.ActiveRun.RunID
	}
	if len(s.Queue) > 0 {
		return messages.RunIDOf(s.Queue[0].TurnID)
	}
	return ""
}

type abortCmd struct {
	Session string `arg:"" help:"The session's id."`
	Scope   string `enum:"run,turn,session" default:"run" help:"What to stop: the run, one turn, or all of the session's work (${enum})."`
	Turn    string `placeholder:"ID" help:"The turn, for --scope turn."`
	RunID   string `name:"run" placeholder:"ID" help:"Only if this run is the one."`
	Reason  string `placeholder:"TEXT" help:"Why, for the record."`
}

// Run implements the command.
func (c *abortCmd) Run(a *app) error {
	f, err := question[*protocol.Aborted](a, &protocol.Abort{
		SessionID: c.Session, Scope: c.Scope, TurnID: c.Turn, RunID: c.RunID, Reason: c.Reason,
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.writeFrame(f)
	}
	return a.write("%s\n", aborted(f))
}

// question asks the server and expects an answer of one type.
func question[A protocol.ServerFrame](a *app, ask protocol.ClientFrame) (A, error) {
	var none A
	c, err := a.client()
	if err != nil {
		return none, err
	}
	answer, err := c.Ask(context.Background(), ask)
	if err != nil {
		return none, err
	}
	typed, ok := answer.(A)
	if !ok {
		return none, fmt.Errorf("ask %s: unexpected answer %s", ask.FrameType(), answer.FrameType())
	}
	return typed, nil
}

func aborted(f *protocol.Aborted) string {
	if len(f.RunIDs)+len(f.TurnIDs) == 0 {
		return "nothing to abort"
	}
	return "aborted " + strings.Join(append(f.RunIDs, f.TurnIDs...), " ")
}
