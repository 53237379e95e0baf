package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/inference/tools/mcp"
	"github.com/correx/correx-actors/messages"
)

// examineServer is how long a look at an MCP server may take.
const examineServer = 5 * time.Second

// MCP are servers of the Model Context Protocol.
type MCP struct {
	Servers []MCPServer   `koanf:"servers" doc:"servers of the Model Context Protocol whose tools models may call; only a file can list them"`
	Wait    time.Duration `koanf:"wait" min:"0s" doc:"how long the start waits for their tools; it goes on without a server that is not there by then, and without waiting at 0s"`
}

// serversWait is enough for programs that need not be fetched or built first.
const serversWait = 5 * time.Second

// MCPServer is one of them: either a command that is started, or a URL. Only a file can name them: they are a list of objects.
type MCPServer struct {
	Name    string   `koanf:"name" doc:"prefix of its tools' names, as in NAME__TOOL: 1 to 24 letters, digits, dashes and single underscores"`
	Command string   `koanf:"command" doc:"program that is started and spoken to over its standard streams"`
	Args    []string `koanf:"args" doc:"arguments of the command; no place for secrets, everybody can read them"`
	Env     []string `koanf:"env" doc:"names of variables of this process that the command gets besides PATH, HOME and the like"`
	URL     URL      `koanf:"url" doc:"http or https address of a server that runs already, instead of a command"`
}

func (s MCPServer) server() mcp.Server {
	return mcp.Server{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, URL: string(s.URL)}
}

// check says what is wrong with the list; nil = nothing.
func (m MCP) check() error {
	var faults []error
	seen := make(map[string]bool, len(m.Servers))
	for _, s := range m.Servers {
		if err := s.server().Validate(); err != nil {
			faults = append(faults, err)
		}
		if seen[s.Name] && s.Name != "" {
			faults = append(faults, fmt.Errorf("mcp server %q is listed twice", s.Name))
		}
		seen[s.Name] = true
	}
	return errors.Join(faults...)
}

// toolServer is an MCP server as a source of tools. It is connected with the start of the app, not with the making of its parts:
// what a graph that cannot be made had started, nobody would stop.
type toolServer struct {
	server mcp.Server
	log    *slog.Logger
	opened atomic.Pointer[mcp.Source]
}

// Name implements tools.Source.
func (s *toolServer) Name() string { return "mcp " + s.server.Name }

// Tools implements tools.Source.
func (s *toolServer) Tools() []*tools.Tool {
	if source := s.opened.Load(); source != nil {
		return source.Tools()
	}
	return nil
}

// open connects, and waits a while for the tools: runs that go on after the start should have those that they had before it.
func (s *toolServer) open(ctx context.Context) error {
	source, err := mcp.Open(s.server, mcp.Config{}, s.log)
	if err != nil {
		return &StartError{Part: "the tools", Err: err}
	}
	s.opened.Store(source)
	if err := source.Ready(ctx); err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "mcp server not waited for", slog.String(messages.AttrComponent, s.Name()))
	}
	return nil
}

func (s *toolServer) close(ctx context.Context) error {
	if source := s.opened.Load(); source != nil {
		return source.Close(ctx)
	}
	return nil
}

// toolServers gives the sources of the configuration's servers. They are closed after the sessions, whose stop ends their calls.
func (m MCP) toolServers(lc fx.Lifecycle, log *slog.Logger) []tools.Source {
	list, sources := make([]*toolServer, 0, len(m.Servers)), make([]tools.Source, 0, len(m.Servers))
	for _, s := range m.Servers {
		one := &toolServer{server: s.server(), log: log}
		list, sources = append(list, one), append(sources, one)
	}
	lc.Append(fx.StartStopHook(
		func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, m.Wait)
			defer cancel()
			return each(list, func(s *toolServer) error { return s.open(ctx) })
		},
		func(ctx context.Context) error {
			return each(list, func(s *toolServer) error { return s.close(ctx) })
		},
	))
	return sources
}

// each does something with all servers at once, since each of them may take its time.
func each(list []*toolServer, do func(*toolServer) error) error {
	faults := make([]error, len(list))
	var doing sync.WaitGroup
	for i, s := range list {
		doing.Go(func() { faults[i] = do(s) })
	}
	doing.Wait()
	return errors.Join(faults...)
}

// MCPState is what a look at an MCP server shows.
type MCPState struct {
	Name string
	// Tools is how many it offers.
	Tools int
	// Trouble is why it cannot be reached, safe to show; "" = it is there.
	Trouble string
}

// ExamineMCP connects to the MCP servers as a server with this configuration would, and leaves them again. Commands are started
// for that, and ended.
func (c Config) ExamineMCP(ctx context.Context, log *slog.Logger) []MCPState {
	states := make([]MCPState, len(c.MCP.Servers))
	var looking sync.WaitGroup
	for i, s := range c.MCP.Servers {
		looking.Go(func() { states[i] = s.examine(ctx, log) })
	}
	looking.Wait()
	return states
}

func (s MCPServer) examine(ctx context.Context, log *slog.Logger) MCPState {
	if _, err := exec.LookPath(s.Command); s.Command != "" && err != nil {
		return MCPState{Name: s.Name, Trouble: err.Error()} // what no second try would change is told at once
	}
	source, err := mcp.Open(s.server(), mcp.Config{}, log)
	if err != nil {
		return MCPState{Name: s.Name, Trouble: err.Error()}
	}
	limited, cancel := context.WithTimeout(ctx, examineServer)
	defer cancel()
	state := MCPState{Name: s.Name}
	if err := source.Ready(limited); err != nil {
		state.Trouble = cmp.Or(source.Status().Reason, "it did not list its tools in time")
	}
	state.Tools = source.Status().Tools
	if err := source.Close(context.WithoutCancel(ctx)); err != nil && state.Trouble == "" {
		state.Trouble = err.Error()
	}
	return state
}
