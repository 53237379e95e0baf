package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

type sessionsCmd struct {
	List sessionsListCmd `cmd:"" default:"withargs" help:"List sessions."`
	Show sessionsShowCmd `cmd:"" help:"Show a session's state, or the context pack that its next turn would get."`
}

type sessionsShowCmd struct {
	Session string `arg:"" help:"The session's id."`
	Context bool   `help:"Show every entry of the context pack: its layer, its tokens, and what was dropped and why."`
}

// Run implements the command.
func (s *sessionsShowCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	if s.Context {
		return s.pack(a, c)
	}
	state, err := c.Session(context.Background(), s.Session)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(state)
	}
	return a.write("%s", describe(state))
}

func (s *sessionsShowCmd) pack(a *app, c *client.Client) error {
	pack, err := c.Context(context.Background(), s.Session)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(pack)
	}
	over := ""
	if pack.OverBudget {
		over = ", over budget: what is never dropped alone exceeds it"
	}
	if err := a.write("%d of %d tokens (%s)%s\n", pack.Tokens, pack.Budget, pack.Tokenizer, over); err != nil {
		return err
	}
	for _, e := range pack.Entries {
		mark := "kept   "
		if !e.Kept {
			mark = "dropped"
		}
		if err := a.write("\n%s  %s  %-9s  %d tokens  %s\n%s\n", e.Layer, mark, e.Role, e.Tokens, e.Reason, indent(e.Content)); err != nil {
			return err
		}
	}
	return nil
}

// describe tells a state to a person.
func describe(state *protocol.State) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("session   %s", state.SessionID)
	workflow := state.WorkflowStatus
	if state.CurrentStageID != "" {
		workflow += ", stage " + state.CurrentStageID
	}
	line("workflow  %s", workflow)
	line("events    %d", state.EventSequence)
	if run := state.ActiveRun; run != nil {
		line("running   %s, %s", run.RunID, run.Phase)
	}
	if len(state.Queue) > 0 {
		line("waiting   %d turns", len(state.Queue))
	}
	if state.Held {
		line("held      they wait for a word: correx-actors resume %s", state.SessionID)
	}
	if len(state.L2Memory) > 0 {
		line("\nended stages (%d)", state.L2Total)
		for _, stage := range state.L2Memory {
			line("  %-9s  %s: %s", stage.Outcome, stage.StageID, strings.ReplaceAll(stage.Summary, "\n", " "))
		}
	}
	if len(state.ConversationHistory) > 0 {
		line("\nconversation")
		for _, entry := range state.ConversationHistory {
			partial := ""
			if entry.Partial {
				partial = " (incomplete)"
			}
			line("  %s%s\n%s", entry.Role, partial, indent(entry.Content))
		}
	}
	return b.String()
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
