package wiring_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/wiring"
)

const someServers = `
mcp:
  wait: 3s
  servers:
    - {name: files, command: mcp-files, args: [--root, /srv], env: [FILES_TOKEN]}
    - {name: tickets, url: "https://ada:pw-secret@tools.example/mcp"}
`

func TestMCPServersAreReadFromAFile(t *testing.T) {
	t.Parallel()
	got, err := loadProviders(t, someServers)
	require.NoError(t, err)
	require.Equal(t, wiring.MCP{
		Wait: 3 * time.Second,
		Servers: []wiring.MCPServer{
			{Name: "files", Command: "mcp-files", Args: []string{"--root", "/srv"}, Env: []string{"FILES_TOKEN"}},
			{Name: "tickets", URL: "https://ada:pw-secret@tools.example/mcp"},
		},
	}, got.Config.MCP)
	require.Contains(t, got.Origins, "mcp.servers")

	shown, err := got.Config.YAML()
	require.NoError(t, err)
	require.NotContains(t, string(shown), "pw-secret")
	again, err := loadProviders(t, string(shown))
	require.NoError(t, err)
	require.Equal(t, got.Config.MCP.Servers[0], again.Config.MCP.Servers[0], "what is shown is read again")

	schema, err := wiring.Schema()
	require.NoError(t, err)
	require.Contains(t, schema.Properties["mcp"].Properties["servers"].Items.Properties, "command")
}

func TestFaultsOfMCPServersNameTheirPlace(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		`[{name: a, comand: x}]`:                            "mcp.servers[0].comand: unknown setting",
		`[{name: a, command: x}, {name: b, args: x, a: 1}]`: "mcp.servers[1].a: unknown setting",
		`[{name: a}]`:                                    `mcp server "a": it needs a command or a url, and not both`,
		`[{name: a b, command: x}]`:                      "its name is not 1 to 24 letters",
		`[{name: a, url: "ftp://x"}]`:                    "its url is no http or https address",
		`[{name: a, url: "http://x", env: [KEY]}]`:       "args and env belong to a command",
		`[{name: a, command: x}, {name: a, command: y}]`: `mcp server "a" is listed twice`,
		`a`: "want a list of objects",
	} {
		_, err := loadProviders(t, "mcp:\n  servers: "+list+"\n")
		require.ErrorContains(t, err, want, list)
		require.ErrorContains(t, err, "setting mcp.servers", list)
	}
}

// TestToolsOfAnMCPServerAreOfferedAfterTheStart starts the app with a server that is there, and one that is not.
func TestToolsOfAnMCPServerAreOfferedAfterTheStart(t *testing.T) {
	t.Parallel()
	station := sdk.NewServer(&sdk.Implementation{Name: "station", Version: "1"}, nil)
	sdk.AddTool(station, &sdk.Tool{Name: "forecast"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return station }, nil))
	t.Cleanup(web.Close)

	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.Journal.Driver, cfg.Provider, cfg.Log.Level = "127.0.0.1:0", wiring.DriverMemory, wiring.ProviderOffline, "error"
	cfg.MCP.Servers = []wiring.MCPServer{{Name: "weather", URL: wiring.URL(web.URL)}}
	var box *runner.Toolbox
	app := fxtest.New(t, wiring.Options(cfg), fx.Populate(&box))
	require.Zero(t, box.Registry.Set().Len(), "nothing is connected before the start")
	app.RequireStart()
	tool, offered := box.Registry.Set().Lookup("weather__forecast")
	require.True(t, offered, "the start waits for the tools")
	require.Equal(t, "weather__forecast", tool.Spec().Name)
	app.RequireStop()

	cfg.MCP.Servers = append(cfg.MCP.Servers, wiring.MCPServer{Name: "gone", Command: "no-such-program-anywhere"})
	cfg.MCP.Wait = 10 * time.Millisecond
	again := fxtest.New(t, wiring.Options(cfg))
	again.RequireStart().RequireStop()
}
