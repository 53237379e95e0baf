package main

import (
	"context"
	"fmt"
	"strings"

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
	var text strings.Builder
	fmt.Fprintf(&text, "turn     %s\nstate    %s\n", turn.TurnID, turn.State)
	for _, row := range []struct{ name, value string }{
		{"reason", turn.Reason}, {"run", turn.RunID}, {"merged", turn.MergedInto}, {"steered", turn.SteeredInto}, {"outcome", turn.Outcome},
	} {
		if row.value != "" {
			fmt.Fprintf(&text, "%-9s%s\n", row.name, row.value)
		}
	}
	if turn.Position != nil {
		fmt.Fprintf(&text, "%-9s%d turns\n", "behind", *turn.Position)
	}
	if turn.Content != "" {
		fmt.Fprintf(&text, "\n%s\n", turn.Content)
	}
	return a.write("%s", text.String())
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
