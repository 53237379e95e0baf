package wiring

import (
	"log/slog"
	"slices"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/inference/tools"
)

// ToolGroup is the fx group of []*tools.Tool that a host registers: fx.Provide(fx.Annotate(myTools, fx.ResultTags(`group:"tools,flatten"`))).
const ToolGroup = `group:"tools"`

var tooling = fx.Provide(newToolbox)

type toolParams struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Log       *slog.Logger
	Host      []*tools.Tool  `group:"tools"`
	Sources   []tools.Source `group:"tool_sources"`
}

// newToolbox gathers what models may call: the host's tools, the demo ones if they are asked for, and those of the sources: a
// host's, and MCP servers.
func newToolbox(p toolParams) (*runner.Toolbox, error) {
	fixed := slices.Clone(p.Host)
	if p.Config.Tools.Demo {
		demo, err := tools.Demo()
		if err != nil {
			return nil, &StartError{Part: "the demo tools", Err: err}
		}
		fixed = append(fixed, demo...)
	}
	sources := append(slices.Clone(p.Sources), p.Config.MCP.toolServers(p.Lifecycle, p.Log)...)
	registry, err := tools.NewRegistry(p.Log, fixed, sources...)
	if err != nil {
		return nil, &StartError{Part: "the tools", Err: err}
	}
	return &runner.Toolbox{
		Registry: registry, Executor: tools.NewExecutor(tools.Config{Timeout: p.Config.Tools.Timeout}, p.Log),
		MaxRounds: p.Config.Runs.MaxToolRounds,
	}, nil
}
