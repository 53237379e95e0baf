// Package directory finds or starts the session of a key. One actor owns the table, so that a session is never started twice
// and none ends while a message for it is on its way. It also lists sessions, without asking any of them: see Directory.List.
package directory

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Directory is the handle of the directory's actor. All methods may be called from any goroutine, but those with a context
// block and must not be called from an actor's Receive.
type Directory struct {
	sys     *kernel.System
	pid     *actor.PID
	journal persistence.Journal
	roster  *roster
}

// Start starts the directory's actor. deps describes every session that it will start.
func Start(sys *kernel.System, deps session.Deps) (*Directory, error) {
	r := new(roster)
	if deps.Slots == nil {
		deps.Slots = slots.New(sys, slots.Config{Max: slots.DefaultMax})
	}
	props := sys.Props(func() actor.Actor { return newTable(sys, &deps, r) }, kernel.PropsOptions{
		MailboxLimit: -1, // it only passes on; the sessions' own mailboxes are bounded
		Supervisor:   deps.Supervisor(),
	})
	pid, err := sys.Spawn(props)
	if err != nil {
		return nil, fmt.Errorf("start directory: %w", err)
	}
	return &Directory{sys: sys, pid: pid, journal: deps.Journal, roster: r}, nil
}

// Send passes a command to the session of a key; sender gets the answer (see session.Request). It never blocks.
func (d *Directory) Send(key messages.Key, id uint64, cmd messages.Command, sender *actor.PID) {
	d.sys.TellAs(d.pid, &session.Request{Key: key, ID: id, Command: cmd}, sender)
}

// Ask sends a command and waits for its reply. A Failure is returned as the error. Errors besides: the cause of ctx.
func (d *Directory) Ask(ctx context.Context, key messages.Key, cmd messages.Command) (messages.Reply, error) {
	answer, err := d.sys.Ask(ctx, d.pid, &session.Request{Key: key, Command: cmd})
	if err != nil {
		return nil, asFailure(ctx, err)
	}
	a, ok := answer.(*session.Answer)
	if !ok {
		return nil, messages.Fail(messages.CodeInternal, fmt.Sprintf("unexpected answer %T", answer))
	}
	if f, ok := a.Reply.(*messages.Failure); ok {
		return nil, f
	}
	return a.Reply, nil
}

// asFailure keeps the caller's own cancellation and turns all else into a Failure.
func asFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if errors.Is(err, kernel.ErrMailboxFull) {
		return messages.FailRetryable(messages.CodeUnavailable, "too many commands wait for this session; try again later")
	}
	return messages.FailRetryable(messages.CodeUnavailable, "the session ended before it could answer; try again")
}

// Active gives all sessions that are in memory, as of all that was sent before. It is for a few of them: List costs the
// directory's actor nothing.
func (d *Directory) Active(ctx context.Context) (map[messages.Key]bool, error) {
	answer, err := d.sys.Ask(ctx, d.pid, listActive{})
	if err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	keys, _ := answer.(map[messages.Key]bool)
	return keys, nil
}

// Count gives how many sessions are in memory, and how many were found quarantined. It asks no actor.
func (d *Directory) Count() (active, quarantined int) { return d.roster.count() }

// Drain stops admission everywhere, waits until no run is active or until budget ends, and then suspends what still runs.
// It returns when every session has recorded its last word, or with the cause of ctx. The actors still answer reads.
func (d *Directory) Drain(budget, ctx context.Context) error {
	if _, err := d.sys.Ask(budget, d.pid, drainAll{}); err != nil && ctx.Err() != nil {
		return err
	}
	_, err := d.sys.Ask(ctx, d.pid, suspendAll{})
	if err != nil {
		return fmt.Errorf("suspend sessions: %w", err)
	}
	return nil
}

// Activate starts the sessions of the given keys, so that their open work goes on.
func (d *Directory) Activate(keys []messages.Key) {
	d.sys.Tell(d.pid, activate{keys: keys})
}

// Stop stops all sessions and then the directory.
func (d *Directory) Stop(ctx context.Context) error { return d.sys.Stop(ctx, d.pid) }

type (
	listActive struct{}
	drainAll   struct{}
	suspendAll struct{}
	activate   struct{ keys []messages.Key }
)
