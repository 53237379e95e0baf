package wiring

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// errStopping is the cause with which an orderly stop ends what waits.
var errStopping = errors.New("the server is shutting down")

var edge = fx.Provide(newGateway)

type gatewayParams struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	System    *kernel.System
	Directory *directory.Directory
	Journal   persistence.Journal
	Metrics   exposed
	Log       *slog.Logger
}

func newGateway(p gatewayParams) (*gateway.Gateway, error) {
	g, err := gateway.New(p.Config.gateway(), gateway.Deps{
		Kernel: p.System, Directory: p.Directory, Journal: p.Journal, Log: p.Log, Metrics: p.Metrics,
	})
	if err != nil {
		return nil, &StartError{Part: "the gateway", Err: err}
	}
	p.Lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if err := g.Start(ctx); err != nil {
				return &StartError{Part: "the gateway", Err: err}
			}
			return nil
		},
		OnStop: g.Stop,
	})
	return g, nil
}

func (c Config) gateway() gateway.Config {
	g := gateway.DefaultConfig()
	g.Listen, g.Origins, g.MaxFrameBytes, g.Version = c.Listen, c.Origins, c.Limits.MaxFrameBytes, c.Version
	g.Node = node()
	// The end of a run tells its answer twice, and JSON may double it: that much must find room, or no reader ever gets it.
	g.OutboxBytes = max(g.OutboxBytes, 5*c.Runs.MaxAnswerBytes)
	return g
}

// node names this process's machine to clients and in the journal's claims; information only, so "" will do.
func node() string {
	name, _ := os.Hostname()
	return name
}

// serve ties the ends together. Its hook is the last to start and the first to stop: open work goes on once clients can
// connect, and at the end no new turn is admitted, running answers get their time, and only then are the sockets closed.
func serve(lc fx.Lifecycle, cfg Config, g *gateway.Gateway, dir *directory.Directory, j persistence.Journal, log *slog.Logger) {
	open := &activation{dir: dir, journal: j, log: log}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			open.start()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			started := time.Now()
			log.LogAttrs(ctx, slog.LevelInfo, "draining")
			g.Drain()
			open.stop(ctx)
			budget, cancel := context.WithTimeoutCause(ctx, cfg.Drain.Timeout, errStopping)
			defer cancel()
			err := dir.Drain(budget, ctx)
			log.LogAttrs(ctx, slog.LevelInfo, "drained", slog.Int64(messages.AttrDuration, time.Since(started).Milliseconds()))
			return err
		},
	})
}
