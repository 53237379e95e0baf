package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

type sessionsListCmd struct {
	State string `placeholder:"STATE" help:"Only those that are busy, idle, passivated or quarantined."`
	After string `placeholder:"ID" help:"Only those after this id."`
	Limit int    `placeholder:"N" xor:"length" help:"At most so many; on a terminal 100, else all."`
	All   bool   `xor:"length" help:"List all, also on a terminal."`
}

const (
	// listLines is how many sessions a terminal gets that did not ask for more: they are to be read.
	listLines = 100
	// listPage is the most that a server gives at once.
	listPage = 1000
)

// Validate implements kong's check of a command.
func (s *sessionsListCmd) Validate() error {
	if s.Limit < 0 {
		return fmt.Errorf("--limit is %d, want at least 1", s.Limit)
	}
	return nil
}

// Run implements the command.
func (s *sessionsListCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	people := isTerminal(a.out) && !a.json
	limit := s.Limit
	if limit == 0 && people && !s.All {
		limit = listLines
	}
	list := sessionsTable{a: a, people: people, now: time.Now()}
	after := s.After
	for listed := 0; ; {
		size := listPage
		if limit > 0 {
			size = min(size, limit-listed)
		}
		page, err := c.Sessions(context.Background(), s.State, after, size)
		if err != nil {
			return err
		}
		if err := list.write(page.Sessions); err != nil {
			return err
		}
		listed += len(page.Sessions)
		if page.Next == "" {
			return nil
		}
		if after = page.Next; limit > 0 && listed >= limit {
			if people {
				a.say("there may be more: --after %s goes on, --all lists all", after)
			}
			return nil
		}
	}
}

// sessionsTable writes sessions as they come: JSON lines, or a table whose columns fit each page.
type sessionsTable struct {
	a      *app
	people bool
	now    time.Time
	begun  bool
}

func (l *sessionsTable) write(page []protocol.SessionSummary) error {
	if l.a.json {
		for _, s := range page {
			if err := l.a.writeJSON(s); err != nil {
				return err
			}
		}
		return nil
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if !l.begun {
		fmt.Fprintln(table, "SESSION\tSTATE\tEVENTS\tRUN\tWAITING\tUPDATED")
		l.begun = true
	}
	for _, s := range page {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.SessionID, s.State, l.columns(s.SessionRow))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return l.a.write("%s", text.String())
}

// columns of what a row tells; of a damaged one nothing is known.
func (l *sessionsTable) columns(row *protocol.SessionRow) string {
	if row == nil {
		return "?\t?\t?\t?"
	}
	run := "-"
	if row.Running {
		run = "running"
	}
	updated := "-"
	switch {
	case row.UpdatedAt.IsZero():
	case l.people:
		updated = ago(l.now.Sub(row.UpdatedAt))
	default:
		updated = row.UpdatedAt.Format(time.RFC3339)
	}
	return fmt.Sprintf("%d\t%s\t%d\t%s", row.EventSequence, run, row.Waiting, updated)
}

// ago tells a person how long something is past, in its largest unit. The server's clock may be ahead of this one.
func ago(past time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range [...]struct {
		unit time.Duration
		name string
	}{{day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch n := past / u.unit; {
		case n == 1:
			return "1 " + u.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, u.name)
		}
	}
	return "now"
}
