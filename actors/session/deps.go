package session

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Deps is what every session of a process is made with.
type Deps struct {
	Kernel  *kernel.System
	Journal persistence.Journal
	// Owner is told to the journal with each claim.
	Owner persistence.Owner
	Core  core.Config
	// Runner says how a run's actor is made.
	Runner runner.Deps
	// Slots bound what goes on at once in the process; nil = slots.DefaultMax of them.
	Slots *slots.Slots
	// NewRunner describes the actor of an attempt, a child of its session that keeps the contract of runner.Runner; nil =
	// runner.Props. An engine with a loop of its own brings one. It must adopt its hold before its work
	// begins: one that does not is taken to have done nothing until it ends.
	NewRunner func(core.RunOrder, runner.Hold) *actor.Props
	// Output bounds what is kept for subscribers that come back.
	Output OutputConfig
	// Idle is how long a session without work and subscribers stays in memory. Default 10 min.
	Idle time.Duration
	// UnknownFor is how long an append whose outcome is unknown is tried again before its senders are told. Default 10 s.
	UnknownFor time.Duration
	// Log takes one line for each step at debug and lifecycle at info; never a prompt or an answer.
	Log *slog.Logger
}

// OutputConfig bounds the kept output of one session.
type OutputConfig struct {
	// Keep is the number of items. Default 1000.
	Keep int
	// KeepBytes bounds their size. Default 256 KiB.
	KeepBytes int
}

// Default limits of Deps.
const (
	DefaultIdle       = 10 * time.Minute
	DefaultKeep       = 1000
	DefaultKeepBytes  = 256 << 10
	DefaultUnknownFor = 10 * time.Second

	restartMin    = 50 * time.Millisecond
	restartMax    = 5 * time.Second
	restartLimit  = 5
	restartWindow = time.Minute
)

// Validate reports what is missing or cannot be.
func (d Deps) Validate() error {
	var errs []error
	if d.Kernel == nil || d.Journal == nil || d.Log == nil {
		errs = append(errs, errors.New("kernel, journal and log are required"))
	}
	if d.Idle <= 0 {
		errs = append(errs, fmt.Errorf("session.idle is %s, want more than 0", d.Idle))
	}
	if d.Output.Keep <= 0 || d.Output.KeepBytes <= 0 {
		errs = append(errs, fmt.Errorf("output.keep is %d items and %d bytes, want more than 0", d.Output.Keep, d.Output.KeepBytes))
	}
	return errors.Join(append(errs, d.Core.Validate(), d.Runner.Validate())...)
}

// Supervisor restarts a session that panicked with growing delays and stops it at the limit; the next command starts it again.
func (d Deps) Supervisor() actor.SupervisorStrategy {
	return kernel.Backoff{
		Min: restartMin, Max: restartMax, Limit: restartLimit, Window: restartWindow,
		OnFailure: func(child *actor.PID, reason any, restarts int) {
			d.Log.Error("session panicked", slog.String(messages.AttrActor, child.GetId()), slog.Any(messages.AttrReason, reason), slog.Int(messages.AttrCount, restarts))
		},
	}
}
