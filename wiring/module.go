// Package wiring puts the parts together: the fx graph, one file for each stage, the order of start and stop, and the
// configuration with its sources. It is the only package that knows fx; the constructors of all others are plain functions,
// and examples/embed-plain does without.
//
// A host embeds the runtime with Module and takes what it needs from the graph: *actors.Client to talk to sessions,
// *gateway.Gateway for the address. It may decorate inference.Provider, persistence.Journal, *slog.Logger,
// trace.TracerProvider and metric.MeterProvider.
package wiring

import (
	"log/slog"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
)

// stopMargin is what an orderly stop may take beyond the drain: flushing outputs, closing sockets, stopping actors, closing
// the journal.
const stopMargin = 15 * time.Second

// Module is the whole runtime. Its hooks need StopTimeout to end in order; fx takes that from the app alone, so a host sets
// fx.StopTimeout(wiring.StopTimeout(cfg)), or uses Options.
func Module(cfg Config) fx.Option {
	if err := cfg.Validate(); err != nil {
		return fx.Error(err)
	}
	return fx.Module("correx",
		fx.Supply(cfg),
		logging,
		journal,
		system,
		inferring, tooling,
		sessions,
		edge,
		watching,
		fx.Invoke(serve),
	)
}

// Options is Module with what only an app can set: the timeouts, and fx's own log at debug.
func Options(cfg Config) fx.Option {
	return fx.Options(
		Module(cfg),
		fx.StartTimeout(fx.DefaultTimeout+cfg.MCP.Wait),
		fx.StopTimeout(StopTimeout(cfg)),
		fx.WithLogger(func(log *slog.Logger) fxevent.Logger {
			quiet := &fxevent.SlogLogger{Logger: log}
			quiet.UseLogLevel(slog.LevelDebug)
			quiet.UseErrorLevel(slog.LevelDebug) // who starts the app tells of its errors
			return quiet
		}),
	)
}

// StopTimeout is how long an orderly stop may take.
func StopTimeout(cfg Config) time.Duration { return cfg.Drain.Timeout + stopMargin }

// StartError is a part that could not be started. fx wraps it in the path through the graph; errors.As finds it.
type StartError struct {
	// Part that failed, as a person would name it.
	Part string
	Err  error
}

// Error implements error.
func (e *StartError) Error() string { return "start " + e.Part + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }
