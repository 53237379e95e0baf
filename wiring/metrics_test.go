package wiring_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/wiring"
)

// scrape reads /metrics over a connection of its own.
func scrape(t *testing.T, addr net.Addr) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/metrics", http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// shows waits until the metrics have these lines: what is read may be on its way.
func shows(t *testing.T, addr net.Addr, lines ...string) {
	t.Helper()
	text := ""
	missing := func() (list []string) {
		_, text = scrape(t, addr)
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				list = append(list, line)
			}
		}
		return list
	}
	for deadline := time.Now().Add(10 * time.Second); len(missing()) > 0; {
		require.True(t, time.Now().Before(deadline), "%q are missing in\n%s", missing(), text)
		time.Sleep(5 * time.Millisecond) // real time: a real server
	}
}

func TestMetricsTellWhatGoesOn(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Runs.MaxConcurrent, cfg.Version = 1, "v9.8.7"
	release := make(chan struct{})
	provider := testkit.NewProvider(t, testkit.Script(testkit.Stream("well"), testkit.WaitFor(release), testkit.Usage(40, 2)),
		testkit.Script(testkit.Fail(inference.KindQuota))).Named("model \"x\"\n")
	var edge *gateway.Gateway
	kept := memory.New(memory.Config{})
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), keptIn(kept), answeredBy(provider), fx.Populate(&edge))
	app.RequireStart()
	defer app.RequireStop()

	shows(t, edge.Addr(), "correx_run_slots_limit 1", "correx_run_slots_used 0", "correx_sessions_active 0",
		"correx_gateway_websockets 0", "correx_gateway_http 1", "correx_journal_healthy 1", "correx_journal_appends_total 0")
	_, text := scrape(t, edge.Addr())
	require.Contains(t, text, `correx_build_info{go="go`)
	require.Contains(t, text, `version="v9.8.7"} 1`)
	require.Contains(t, text, "\ngo_goroutines ")
	require.NotContains(t, text, "otel_scope")
	require.NotContains(t, text, "gen_ai_client")

	chat := dial(t, edge.Addr())
	for _, id := range []string{"s1", "s2"} {
		chat.send(&protocol.ChatInput{SessionID: id, Text: "hi"})
	}
	provider.ExpectCalls(1)
	shows(t, edge.Addr(), "correx_run_slots_used 1", "correx_run_slots_waiting 1", "correx_sessions_active 2",
		"correx_gateway_websockets 1", "correx_gateway_http 1", "correx_journal_sessions 2", "correx_journal_sessions_open 2",
		`correx_provider_breaker{gen_ai_provider_name="offline",state="closed"} 1`,
		`correx_provider_breaker{gen_ai_provider_name="offline",state="open"} 0`)
	close(release)
	name := `gen_ai_operation_name="chat",gen_ai_provider_name="model \"x\"\n"`
	shows(t, edge.Addr(), "correx_run_slots_used 0", "correx_run_slots_waiting 0", "correx_journal_sessions_open 0",
		`gen_ai_client_operation_duration_seconds_count{`+name+`} 1`,
		`gen_ai_client_operation_duration_seconds_count{error_type="quota",`+name+`} 1`,
		`gen_ai_client_operation_time_to_first_chunk_seconds_count{`+name+`} 1`,
		`gen_ai_client_token_usage_sum{`+name+`,gen_ai_token_type="input"} 40`,
		`gen_ai_client_token_usage_sum{`+name+`,gen_ai_token_type="output"} 2`)

	require.NoError(t, kept.Close())
	shows(t, edge.Addr(), "correx_journal_healthy 0")
	_, text = scrape(t, edge.Addr())
	require.NotContains(t, text, "correx_journal_appends", "what is not known is not told")
}

// A call that one of our own limits ended has timed out; one that a client gave up was canceled.
func TestMetricsTellLimitsFromAborts(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Retry.Limit, cfg.Runs.FirstTokenTimeout = 0, 100*time.Millisecond
	provider := testkit.NewProvider(t, testkit.Script(testkit.HangUntilCancel()),
		testkit.Script(testkit.Stream("shown"), testkit.HangUntilCancel()))
	var edge *gateway.Gateway
	var client *actors.Client
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), answeredBy(provider), fx.Populate(&client, &edge))
	app.RequireStart()
	defer app.RequireStop()
	count := func(kind string) string {
		return `gen_ai_client_operation_duration_seconds_count{error_type="` + kind +
			`",gen_ai_operation_name="chat",gen_ai_provider_name="scripted"} 1`
	}
	_, err := client.Submit(t.Context(), messages.NewKey("s1"), &messages.SubmitTurn{Text: "hi"})
	require.NoError(t, err)
	shows(t, edge.Addr(), count("timeout"))
	_, err = client.Submit(t.Context(), messages.NewKey("s2"), &messages.SubmitTurn{Text: "hi"})
	require.NoError(t, err)
	provider.ExpectCalls(2)
	_, err = client.Abort(t.Context(), messages.NewKey("s2"), &messages.Abort{Scope: string(messages.AbortSession)})
	require.NoError(t, err)
	shows(t, edge.Addr(), count("timeout"), count("canceled"))
}

func TestMetricsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Metrics.Enabled = false
	var edge *gateway.Gateway
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), fx.Populate(&edge))
	app.RequireStart()
	defer app.RequireStop()
	status, _ := scrape(t, edge.Addr())
	require.Equal(t, http.StatusNotFound, status)
}

// A page of another origin reads no metrics, as it reads nothing else.
func TestMetricsAreForTheServersOwnOrigin(t *testing.T) {
	t.Parallel()
	var edge *gateway.Gateway
	app := fxtest.New(t, wiring.Module(config()), fx.NopLogger, quiet(), fx.Populate(&edge))
	app.RequireStart()
	defer app.RequireStop()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+edge.Addr().String()+"/metrics", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Origin", "https://elsewhere.example")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

func TestSessionsMakeNoSeries(t *testing.T) {
	t.Parallel()
	var client *actors.Client
	var edge *gateway.Gateway
	provider := testkit.NewProvider(t).Otherwise(testkit.Stream("ok"), testkit.Usage(1, 1))
	app := fxtest.New(t, wiring.Module(config()), fx.NopLogger, quiet(), answeredBy(provider), fx.Populate(&client, &edge))
	app.RequireStart()
	defer app.RequireStop()
	submit := func(n int) {
		_, err := client.Submit(t.Context(), messages.NewKey(messages.SessionID(fmt.Sprintf("talk-%d", n))), &messages.SubmitTurn{Text: "hi"})
		require.NoError(t, err)
	}
	answered := func(n int) string {
		return fmt.Sprintf(`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="scripted"} %d`, n)
	}
	submit(0)
	shows(t, edge.Addr(), answered(1), "correx_sessions_active 1")
	_, before := scrape(t, edge.Addr())
	for n := range 1000 {
		submit(n + 1)
	}
	shows(t, edge.Addr(), answered(1001), "correx_sessions_active 1001")
	_, after := scrape(t, edge.Addr())
	require.NotContains(t, after, "talk-")
	require.Equal(t, ours(before), ours(after))
}

// ours are the series of the runtime and the calls, without their values.
func ours(text string) (list []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "correx_") || strings.HasPrefix(line, "gen_ai_") {
			list = append(list, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return list
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// No text of a conversation is in a metric, a span or a log, at whatever level, unless a host asks for it in its spans.
func TestNoTextOfAConversationLeaves(t *testing.T) {
	t.Parallel()
	const marker = "tangerine-7731"
	for _, content := range []bool{false, true} {
		cfg := config()
		cfg.Telemetry.Content, cfg.SystemPrompt = content, "be terse "+marker
		// It quotes what it refuses, in every way.
		provider := testkit.NewProvider(t, testkit.Script(testkit.Stream("well ", marker), testkit.Usage(3, 2)),
			testkit.Script(testkit.Stream(marker), testkit.FailWith(&inference.Error{
				Kind: inference.KindContentFiltered, Message: "not: " + marker, RequestID: marker, Err: errors.New(marker),
			})))
		spans, logged := tracetest.NewSpanRecorder(), new(buffer)
		var edge *gateway.Gateway
		app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, answeredBy(provider), fx.Populate(&edge),
			fx.Decorate(func() *slog.Logger {
				return slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			}),
			fx.Decorate(func() trace.TracerProvider { return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)) }))
		app.RequireStart()
		chat := dial(t, edge.Addr())
		chat.send(&protocol.ChatInput{SessionID: "s1", Text: "hi " + marker})
		require.Equal(t, "well "+marker, expect[*protocol.RouterResponse](chat).Content)
		chat.send(&protocol.ChatInput{SessionID: "s1", Text: "and " + marker})
		expect[*protocol.RouterResponse](chat)
		_, text := scrape(t, edge.Addr())
		app.RequireStop()

		require.Contains(t, text, `error_type="content_filtered"`)
		require.NotContains(t, text, marker)
		require.Contains(t, logged.String(), "run ended")
		require.NotContains(t, logged.String(), marker)
		require.Len(t, spans.Ended(), 2)
		var list []string
		for _, span := range spans.Ended() {
			list = append(list, fmt.Sprintln(span.Name(), span.Attributes(), span.Events(), span.Status(), span.Resource()))
		}
		told := strings.Join(list, "")
		require.Contains(t, told, "s1", "a span names its session")
		require.Equal(t, content, strings.Contains(told, marker))
		require.NotContains(t, told, "not: ")
	}
}

func TestAHostMayTakeTheMetrics(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	var edge *gateway.Gateway
	app := fxtest.New(t, wiring.Module(config()), fx.NopLogger, quiet(), fx.Populate(&edge),
		fx.Decorate(func() metric.MeterProvider { return sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) }))
	app.RequireStart()
	defer app.RequireStop()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.WithoutCancel(t.Context()), &all))
	require.Equal(t, "correx.build.info", all.ScopeMetrics[0].Metrics[0].Name)
	_, text := scrape(t, edge.Addr())
	require.NotContains(t, text, "correx_")
	require.Contains(t, text, "go_goroutines")
}
