package mcp_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/tools/mcp"
)

// answers are what a server says, by method; the rest it does not know.
type answers map[string]string

// ServeHTTP implements http.Handler: a server that was written by hand, of the older protocol.
func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &request) != nil || len(request.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	said, known := a[request.Method]
	if !known {
		said = `"error":{"code":-32601,"message":"unknown method"}`
	}
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(request.ID)+`,`+said+`}`)
}

const initialized = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`

func hand(t *testing.T, list, call string) *mcp.Source {
	t.Helper()
	server := httptest.NewServer(answers{"initialize": initialized, "tools/list": list, "tools/call": call})
	t.Cleanup(server.Close)
	return open(t, mcp.Server{Name: "x", URL: server.URL})
}

// TestNothingThatAServerOffersBreaksUs is I13 for lists of tools.
func TestNothingThatAServerOffersBreaksUs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for list, want := range map[string]int{
		`"result":null`: 0, `"result":{}`: 0, `"result":[]`: 0, `"result":{"tools":null}`: 0, `"result":{"tools":{}}`: 0,
		`"result":{"tools":[null]}`: 0, `"result":{"tools":[{}]}`: -1, `"result":{"tools":[{"name":"a"}]}`: -1,
		`"result":{"tools":[{"name":"a","inputSchema":null}]}`:                                                           -1,
		`"result":{"tools":[{"name":"a","inputSchema":5}]}`:                                                              0,
		`"result":{"tools":[{"name":"a","inputSchema":{"type":"array"}}]}`:                                               1,
		`"result":{"tools":[{"name":"a","inputSchema":{"$ref":"http://localhost/x"}}]}`:                                  1,
		`"result":{"tools":[{"name":"a","inputSchema":{"$schema":"http://json-schema.org/draft-04/schema#"}}]}`:          1,
		`"result":{"tools":[{"name":"` + long + `","description":"` + long + `","inputSchema":{"type":"object"}}]}`:      -1,
		`"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]}`: 1,
		`"result":{"tools":[{"name":"a","inputSchema":{"type":"object","pattern":"` + long + `"}}]}`:                     0,
		`"error":null`: -1, `"error":{}`: -1, `"result":{"tools":[],"nextCursor":"again"}`: 0,
	} {
		name := list[:min(len(list), 90)]
		source := hand(t, list, `"result":{}`)
		require.Eventually(t, func() bool {
			status := source.Status()
			return status.Connected || status.Reason != "it is being connected"
		}, 20*time.Second, time.Millisecond, name)
		if want >= 0 {
			require.Len(t, source.Tools(), want, name)
		}
		for _, tool := range source.Tools() {
			require.LessOrEqual(t, len(tool.Spec().Name), 64, name)
			require.LessOrEqual(t, len(tool.Spec().Description), 4<<10, name)
		}
	}
}

// TestNothingThatAToolSaysBreaksUs is I13 for results.
func TestNothingThatAToolSaysBreaksUs(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		`"result":null`: "", `"result":{}`: "(no output)", `"result":{"content":null}`: "(no output)", `"result":{"content":[null]}`: "",
		`"result":{"content":[{"type":"new"}]}`: "", `"result":{"content":[{"type":"resource"}]}`: "",
		`"result":{"content":[{"type":"resource","resource":{"uri":"a:b","text":"read"}}]}`: "read",
		`"result":{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}`:            "[resource n a:b]",
		`"result":{"structuredContent":{"a":1}}`:                                            `{"a":1}`,
		`"result":{"content":[{"type":"text","text":"no"}],"isError":true}`:                 "failed: no",
		`"error":{"code":-32602,"message":"bad /etc/our/path"}`:                             "failed: bad [path]",
		`"error":null`: "",
	} {
		source := hand(t, `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`, call)
		ready(t, source)
		answer := run(t.Context(), t, source, "x__a", `{}`, nil)
		if want != "" {
			require.Equal(t, want, answer.Text, call)
		}
	}
}

func TestServerThatDoesNotKnowTheNewHandshakeIsConnected(t *testing.T) {
	t.Parallel()
	known := answers{"initialize": initialized, "tools/list": `"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "server/discover") {
			<-r.Context().Done() // It does not answer what it does not know.
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		known.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	source, err := mcp.Open(mcp.Server{Name: "x", URL: server.URL}, mcp.Config{Connect: 200 * time.Millisecond, MinPause: time.Millisecond},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ready(t, source)
	require.Equal(t, []string{"x__a"}, names(source))
	closeNow(t, source)
}
