package wiring_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/wiring"
)

func replace(text, path string) string { return strings.ReplaceAll(text, path, "FILE") }

func TestShownConfigurationLoadsAgainAndHidesSecrets(t *testing.T) {
	t.Parallel()
	cfg := wiring.DefaultConfig()
	cfg.DataDir, cfg.Origins = "/d", []string{"https://a.example", "https://b.example"}
	shown, err := cfg.YAML()
	require.NoError(t, err)
	require.Contains(t, string(shown), "final_ttl: 24h\n")
	again, err := wiring.Load(wiring.Sources{File: file(t, string(shown))})
	require.NoError(t, err)
	require.Equal(t, cfg, again.Config)

	cfg.OpenAI.APIKey = "sk-secret"
	cfg.OpenAI.BaseURL = "https://ada:pw-secret@models.example/v1"
	shown, err = cfg.YAML()
	require.NoError(t, err)
	asJSON, err := json.Marshal(cfg)
	require.NoError(t, err)
	var log strings.Builder
	attrs := []slog.Attr{slog.Any(messages.AttrState, cfg), slog.Any(messages.AttrReason, cfg.OpenAI.APIKey)}
	slog.New(slog.NewJSONHandler(&log, nil)).LogAttrs(t.Context(), slog.LevelInfo, "x", attrs...)
	slog.New(slog.NewTextHandler(&log, nil)).LogAttrs(t.Context(), slog.LevelInfo, "x", attrs...)
	for _, text := range []string{
		string(shown), string(asJSON), log.String(), fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.OpenAI.APIKey),
	} {
		require.NotContains(t, text, "sk-secret")
		require.NotContains(t, text, "pw-secret")
		require.Contains(t, text, "********")
	}
}

func TestURLsHideTheirUser(t *testing.T) {
	t.Parallel()
	for given, want := range map[wiring.URL]string{
		"":                                 "",
		"https://models.example/v1":        "https://models.example/v1",
		"https://models.example/v1@2?a=@b": "https://models.example/v1@2?a=@b",
		"https://ada:p@w@models.example/1": "https://********@models.example/1",
		"http://token@127.0.0.1:8080":      "http://********@127.0.0.1:8080",
		"ada:pw@models.example/v1":         "********@models.example/v1",
	} {
		require.Equal(t, want, given.String())
	}
	_, err := wiring.Load(wiring.Sources{Environ: []string{"HOME=/h", "OPENAI_BASE_URL=ftp://ada:pw-secret@models.example"}})
	require.ErrorContains(t, err, `setting openai.base_url is "ftp://********@models.example" (from OPENAI_BASE_URL): `)
}

func TestSchemaTakesTheDefaultsAndRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	schema, err := wiring.Schema()
	require.NoError(t, err)
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)

	written, err := json.Marshal(wiring.DefaultConfig())
	require.NoError(t, err)
	var value map[string]any
	require.NoError(t, json.Unmarshal(written, &value))
	require.NoError(t, resolved.Validate(value))

	for _, bad := range []string{
		`{"bogus":1}`, `{"queue":{"limits":1}}`, `{"queue":{"limit":0}}`, `{"queue":{"limit":"3"}}`,
		`{"drain":{"timeout":"soon"}}`, `{"provider":"none"}`, `{"origins":null}`,
	} {
		var value map[string]any
		require.NoError(t, json.Unmarshal([]byte(bad), &value))
		require.Error(t, resolved.Validate(value), bad)
	}
	for _, good := range []string{`{"openai":{"api_key_file":"/x"}}`, `{"drain":{"timeout":"1m30s"}}`} {
		var value map[string]any
		require.NoError(t, json.Unmarshal([]byte(good), &value))
		require.NoError(t, resolved.Validate(value), good)
	}
}

func TestSettingsAreTheContractNames(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"listen": "127.0.0.1:7711", "origins": "", "limits.max_frame_bytes": "65536", "limits.max_input_bytes": "32768",
		"queue.mode": "collect", "queue.limit": "20", "queue.merge_window": "500ms", "queue.settle": "0s", "steer.deadline": "2s", "interrupt.grace": "2s", "idempotency.window": "24h",
		"idempotency.keys": "10000", "turns.retention": "720h",
		"conversation.keep_last": "6", "conversation.token_budget": "4096", "conversation.answer_reserve": "1024", "budget.tokens_per_day": "0", "recovery.policy": "resume", "recovery.max_age": "15m", "recovery.max_attempts": "3",
		"session.idle": "10m", "runs.max_tool_rounds": "16", "tools.demo": "false", "tools.timeout": "2m", "runs.max_concurrent": "64", "runs.slot_timeout": "5m", "runs.connect_timeout": "10s", "runs.first_token_timeout": "2m", "runs.token_timeout": "1m",
		"runs.timeout": "30m", "runs.max_answer_bytes": "4194304", "output.keep": "1000", "output.final_ttl": "24h",
		"drain.timeout": "30s", "journal.driver": "bolt",
		"data_dir": "$XDG_DATA_HOME/correx-actors, else ~/.local/share/correx-actors",
		"provider": "auto", "openai.base_url": "https://api.openai.com/v1", "openai.api": "chat", "openai.model": "gpt-4o-mini", "openai.api_key": "",
		"providers": "", "providers[].name": "", "providers[].base_url": "https://api.openai.com/v1", "providers[].api": "chat", "providers[].api_key": "",
		"providers[].models": "", "providers[].models[].name": "", "providers[].models[].aliases": "", "providers[].models[].window": "0",
		"providers[].models[].max_output": "0", "providers[].models[].bytes_per_token": "0", "providers[].bytes_per_token": "0",
		"providers[].limits.concurrent": "0", "providers[].limits.requests_per_minute": "0", "providers[].limits.tokens_per_minute": "0",
		"providers[].fallback": "", "retry.limit": "2", "retry.max_wait": "30s", "breaker.failures": "5", "breaker.pause": "30s",
		"offline.delay": "0s", "system_prompt": "the embedded one", "log.level": "info", "log.format": "text",
		"metrics.enabled": "true", "telemetry.content": "false",
		"mcp.wait": "5s", "mcp.servers": "", "mcp.servers[].name": "", "mcp.servers[].command": "", "mcp.servers[].args": "",
		"mcp.servers[].env": "", "mcp.servers[].url": "",
	}
	got := make(map[string]string)
	for _, s := range wiring.Settings() {
		got[s.Key] = s.Default
	}
	require.Equal(t, want, got)
}
