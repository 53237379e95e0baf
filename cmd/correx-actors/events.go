package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// eventsPage is how many events one question asks for.
const eventsPage = 1000

type eventsCmd struct {
	Import eventsImportCmd `cmd:"" help:"Record events from standard input: bare ones, or stored ones as export writes them."`
	Export eventsExportCmd `cmd:"" help:"Write all events with their sequence and time."`
	Tail   eventsTailCmd   `cmd:"" help:"Write new events as they are recorded."`
}

type eventsExportCmd struct {
	Session string `arg:"" help:"The session's id."`
	After   uint64 `placeholder:"SEQUENCE" help:"Only those after this one."`
}

// Run implements the command.
func (e *eventsExportCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for after := e.After; ; {
		page, err := c.Events(ctx, e.Session, after, eventsPage)
		if err != nil {
			return err
		}
		for i := range page.Events {
			if err := printEvent(a, &page.Events[i]); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 {
			return nil
		}
		after = page.Events[len(page.Events)-1].Sequence
	}
}

type eventsTailCmd struct {
	Session string  `arg:"" help:"The session's id."`
	After   *uint64 `placeholder:"SEQUENCE" help:"Begin after this one; 0 writes all first. Without it only new ones are written."`
}

// Run implements the command.
func (e *eventsTailCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	talk := c.Talk(ctx, e.Session, client.TalkOptions{Events: true, AfterEvent: e.After})
	defer talk.Close()
	for notice := range talk.Notices() {
		switch n := notice.(type) {
		case *client.Lost:
			a.say("%v; trying again", n.Err)
		case *client.Connected:
			if n.Again {
				a.say("connected again")
			}
		case *client.Arrived:
			err = tailed(a, n.Frame)
		case *client.Accepted, *client.Refused, *client.Settled:
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil // that is how a tail ends
	}
	return talk.Err()
}

func tailed(a *app, frame protocol.ServerFrame) error {
	switch f := any(frame).(type) { // a tail shows nothing else
	case *protocol.SessionEvent:
		return printEvent(a, &protocol.StoredEvent{
			SessionID: f.SessionID, Sequence: f.Sequence, RecordedAt: f.RecordedAt, Event: f.Event,
		})
	case *protocol.Error:
		return f
	}
	return nil
}

func printEvent(a *app, e *protocol.StoredEvent) error {
	b, err := protocol.EncodeBody(e)
	if err != nil {
		return errors.Join(errors.New("write event"), err)
	}
	return a.write("%s\n", b)
}
