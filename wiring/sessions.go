package wiring

import (
	"log/slog"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/inference/tokenizer"
	"github.com/correx/correx-actors/persistence"
)

var sessions = fx.Provide(newSlots, newDirectory, actors.NewClient)

func newSlots(cfg Config, sys *kernel.System, routes *route.Router) *slots.Slots {
	return slots.New(sys, slots.Config{Max: cfg.Runs.MaxConcurrent, PerProvider: routes.PerProvider()})
}

type directoryParams struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	System    *kernel.System
	Journal   persistence.Journal
	Router    inference.Router
	Routes    *route.Router
	Slots     *slots.Slots
	Tools     *runner.Toolbox
	Log       *slog.Logger
}

func newDirectory(p directoryParams) (*directory.Directory, error) {
	rules := p.Config.rules()
	rules.ResumeEngines, rules.ServesModel = p.Config.engines(), p.Routes.Serves
	deps := session.Deps{
		Kernel:  p.System,
		Journal: p.Journal,
		Owner:   persistence.Owner{Node: node()},
		Core:    rules,
		Runner: runner.Deps{
			Kernel:        p.System,
			Router:        p.Router,
			Counter:       tokenizer.For,
			SystemPrompt:  p.Config.SystemPrompt,
			AnswerReserve: p.Config.Conversation.AnswerReserve,
			Limits:        p.Config.runLimits(),
			Tools:         p.Tools,
			Log:           p.Log,
		},
		Slots:      p.Slots,
		Output:     session.OutputConfig{Keep: p.Config.Output.Keep, KeepBytes: session.DefaultKeepBytes},
		Idle:       p.Config.Session.Idle,
		UnknownFor: session.DefaultUnknownFor,
		Log:        p.Log,
	}
	if err := deps.Validate(); err != nil {
		return nil, &StartError{Part: "the sessions", Err: err}
	}
	dir, err := directory.Start(p.System, deps)
	if err != nil {
		return nil, &StartError{Part: "the sessions", Err: err}
	}
	p.Lifecycle.Append(fx.StopHook(dir.Stop))
	return dir, nil
}
