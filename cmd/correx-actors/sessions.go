package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

type sessionsCmd struct {
	List sessionsListCmd `cmd:"" default:"1" help:"List sessions."`
	Show sessionsShowCmd `cmd:"" help:"Show a session's state, or the context pack that its next turn would get."`
}

type sessionsListCmd struct {
	State string `placeholder:"STATE" help:"Only those that are busy, idle or passivated."`
	After string `placeholder:"ID" help:"Only those after this id."`
	Limit int    `placeholder:"N" help:"At most so many; without it all are listed."`
}

// Run implements the command.
func (s *sessionsListCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if !a.json {
		fmt.Fprintln(table, "SESSION\tSTATE\tEVENTS\tUPDATED")
	}
	after, left := s.After, s.Limit
	for {
		page, err := c.Sessions(context.Background(), s.State, after, left)
		if err != nil {
			return err
		}
		for _, row := range page.Sessions {
			if a.json {
				err = a.writeJSON(row)
			} else {
				_, err = fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", row.SessionID, row.State, row.EventSequence, when(row.UpdatedAt))
			}
			if err != nil {
				return err
			}
		}
		left -= len(page.Sessions)
		if page.Next == "" || s.Limit > 0 && left <= 0 {
			return table.Flush()
		}
		after = page.Next
	}
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

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}
