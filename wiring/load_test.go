package wiring_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/wiring"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "correx.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestNoSourcesGiveTheDefaults(t *testing.T) {
	t.Parallel()
	got, err := wiring.Load(wiring.Sources{Environ: []string{"HOME=/home/ada"}})
	require.NoError(t, err)
	want := wiring.DefaultConfig()
	want.DataDir = "/home/ada/.local/share/correx-actors"
	require.Equal(t, want, got.Config)
	require.Empty(t, got.Warnings)
	require.Empty(t, got.Origins)
}

func TestFlagsOverEnvironmentOverFileOverDefaults(t *testing.T) {
	t.Parallel()
	path := file(t, "queue: {limit: 2}\nsession: {idle: 1m}\ndrain: {timeout: 1s}\nlisten: 127.0.0.1:1")
	got, err := wiring.Load(wiring.Sources{
		File:    path,
		Environ: []string{"HOME=/h", "CORREX_SESSION__IDLE=2m", "CORREX_DRAIN__TIMEOUT=2s", "CORREX_LISTEN=127.0.0.1:2"},
		Flags:   map[string]string{"drain.timeout": "3s", "listen": "127.0.0.1:3"},
	})
	require.NoError(t, err)
	require.Equal(t, 2, got.Config.Queue.Limit)
	require.Equal(t, 2*time.Minute, got.Config.Session.Idle)
	require.Equal(t, 3*time.Second, got.Config.Drain.Timeout)
	require.Equal(t, "127.0.0.1:3", got.Config.Listen)
	require.Equal(t, 6, got.Config.Conversation.KeepLast)
	require.Equal(t, map[string]string{
		"queue.limit": path, "session.idle": "CORREX_SESSION__IDLE", "drain.timeout": "the command line", "listen": "the command line",
	}, got.Origins)
}

func TestDataDirFollowsTheDesktopRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		environ []string
		want    string
	}{
		{"own variable", []string{"CORREX_DATA_DIR=/d", "XDG_DATA_HOME=/x", "HOME=/h"}, "/d"},
		{"xdg", []string{"XDG_DATA_HOME=/x", "HOME=/h"}, "/x/correx-actors"},
		{"relative xdg is ignored", []string{"XDG_DATA_HOME=x", "HOME=/h"}, "/h/.local/share/correx-actors"},
		{"home", []string{"HOME=/h"}, "/h/.local/share/correx-actors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := wiring.Load(wiring.Sources{Environ: c.environ})
			require.NoError(t, err)
			require.Equal(t, c.want, got.Config.DataDir)
		})
	}
}

func TestRefusalsNameKeyValueAndSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		src  wiring.Sources
		yaml string
		want []string
	}{
		{
			name: "unknown key in a file", yaml: "queue: {limits: 3}",
			want: []string{`setting queue.limits is "3" (from FILE): unknown setting`},
		},
		{
			name: "section with a value", yaml: "queue: 3",
			want: []string{`setting queue is "3" (from FILE): a section of settings, not a setting`},
		},
		{
			name: "number that is none in the environment", src: wiring.Sources{Environ: []string{"CORREX_QUEUE__LIMIT=many"}},
			want: []string{`setting queue.limit is "many" (from CORREX_QUEUE__LIMIT): want a whole number`},
		},
		{
			name: "duration without a unit", yaml: "drain: {timeout: 30}",
			want: []string{`setting drain.timeout is "30" (from FILE): want a duration such as 500ms, 30s or 15m`},
		},
		{
			name: "value out of bounds names the variable", src: wiring.Sources{Environ: []string{"CORREX_QUEUE__LIMIT=0"}},
			want: []string{`setting queue.limit is "0" (from CORREX_QUEUE__LIMIT): want at least 1`},
		},
		{
			name: "unknown flag", src: wiring.Sources{Flags: map[string]string{"que": "1"}},
			want: []string{`setting que is "1" (from the command line): unknown setting`},
		},
		{
			name: "enum", yaml: "journal: {driver: paper}",
			want: []string{`setting journal.driver is "paper" (from FILE): want bolt or memory`},
		},
		{
			name: "queue mode", yaml: "queue: {mode: jump}",
			want: []string{`setting queue.mode is "jump" (from FILE): want collect or followup or steer or steer_backlog or interrupt`},
		},
		{
			name: "merge window below zero", yaml: "queue: {merge_window: -1s}",
			want: []string{`setting queue.merge_window is "-1s" (from FILE): want at least 0s`},
		},
		{
			name: "deadline of offers", yaml: "steer: {deadline: 0s}",
			want: []string{`setting steer.deadline is "0s" (from FILE): want at least 1ms`},
		},
		{
			name: "all at once", yaml: "queue: {limit: x}\nbogus: 1\nlog: {level: loud}",
			want: []string{"queue.limit", "bogus"},
		},
		{
			name: "neither true nor false", yaml: "metrics: {enabled: 1}", want: []string{`setting metrics.enabled is "1" (from FILE): want true or false`},
		},
		{
			name: "null", yaml: "listen:", want: []string{`setting listen is "<nil>" (from FILE): want a text`},
		},
		{
			name: "listen without a port", yaml: "listen: localhost", want: []string{`setting listen is "localhost" (from FILE): `, "missing port"},
		},
		{
			name: "address that others can reach", yaml: "listen: 0.0.0.0:7711",
			want: []string{`setting listen is "0.0.0.0:7711" (from FILE): `, "not a loopback address"},
		},
		{
			name: "turns forgotten before their keys", yaml: "idempotency: {window: 1000h}",
			want: []string{`setting turns.retention is "720h": want at least idempotency.window, which is 1000h`},
		},
		{
			name: "origin with a path", yaml: "origins: [https://a.example/chat]",
			want: []string{`setting origins is "https://a.example/chat" (from FILE): `},
		},
		{
			name: "base URL that is none", src: wiring.Sources{Environ: []string{"OPENAI_BASE_URL=localhost"}},
			want: []string{`setting openai.base_url is "localhost" (from OPENAI_BASE_URL): `},
		},
		{
			name: "key with a line break", src: wiring.Sources{Environ: []string{"OPENAI_API_KEY=sk-visible\n2"}},
			want: []string{`setting openai.api_key is "********" (from OPENAI_API_KEY): API key holds a control character`},
		},
		{
			name: "openai without anything", yaml: "provider: openai", want: []string{"neither openai.api_key nor openai.base_url is set"},
		},
		{
			name: "secret on the command line", src: wiring.Sources{Flags: map[string]string{"openai.api_key": "sk-visible"}},
			want: []string{`setting openai.api_key is "********" (from the command line): others can read command lines`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.src.Environ = append(c.src.Environ, "HOME=/h")
			if c.yaml != "" {
				c.src.File = file(t, c.yaml)
			}
			_, err := wiring.Load(c.src)
			require.Error(t, err)
			text := err.Error()
			for _, want := range c.want {
				if c.src.File != "" {
					text = replace(text, c.src.File)
				}
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, "sk-visible")
			var fault *wiring.SettingError
			require.ErrorAs(t, err, &fault)
		})
	}
}

func TestFileThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	_, err := wiring.Load(wiring.Sources{File: "/no/such/file.yaml"})
	require.ErrorContains(t, err, "/no/such/file.yaml")
	_, err = wiring.Load(wiring.Sources{File: file(t, "queue: [")})
	require.ErrorContains(t, err, "correx.yaml")
}

func TestUnknownVariablesAreWarnings(t *testing.T) {
	t.Parallel()
	got, err := wiring.Load(wiring.Sources{Environ: []string{
		"HOME=/h", "CORREX_QUEUE_LIMIT=3", "CORREX_SERVER=http://x", "CORREX_TOKEN=t", "CORREX_CONFIG=c", "OTHER=1", "CORREX_QUEUE=1",
	}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"variable CORREX_QUEUE is no setting and is ignored", "variable CORREX_QUEUE_LIMIT is no setting and is ignored",
	}, got.Warnings)
}

func TestEverySettingCanComeFromEachSource(t *testing.T) {
	t.Parallel()
	for _, s := range wiring.Settings() {
		if s.Env == "" { // lists of objects, which only a file can hold: TestProvidersAreReadFromAFile, TestMCPServers…
			require.Regexp(t, `^(providers|mcp\.servers)`, s.Key)
			require.NotEmpty(t, s.Doc, s.Key)
			continue
		}
		value := map[string]string{"duration": "2s", "number": "2048", "list": "a,b", "string": "127.0.0.1:9", "secret": "k"}[s.Type]
		switch {
		case s.Values != nil:
			value = s.Values[len(s.Values)-1]
		case s.Key == "openai.base_url":
			value = "http://127.0.0.1:1/v1"
		case s.Key == "origins":
			value = "https://a.example,https://b.example:8443"
		case s.Key == "conversation.keep_last", s.Key == "retry.limit":
			value = "7"
		case s.Key == "turns.retention": // at least idempotency.window
			value = "48h"
		case s.Type == "boolean":
			value = strconv.FormatBool(s.Default != "true")
		}
		environ := []string{"HOME=/h"}
		fromEnv, err := wiring.Load(wiring.Sources{Environ: append(environ, s.Env+"="+value)})
		require.NoError(t, err, s.Key)
		require.Equal(t, s.Env, fromEnv.Origins[s.Key])
		fromFile, err := wiring.Load(wiring.Sources{Environ: environ, File: file(t, s.Key+": "+value)})
		if s.Type == "list" || s.Type == "string" || s.Type == "secret" {
			fromFile, err = wiring.Load(wiring.Sources{Environ: environ, File: file(t, s.Key+": \""+value+"\"")})
		}
		require.NoError(t, err, s.Key)
		require.Equal(t, fromEnv.Config, fromFile.Config, s.Key)
		if s.Type == "secret" {
			continue
		}
		fromFlag, err := wiring.Load(wiring.Sources{Environ: environ, Flags: map[string]string{s.Key: value}})
		require.NoError(t, err, s.Key)
		require.Equal(t, fromEnv.Config, fromFlag.Config, s.Key)
		require.NotEmpty(t, s.Doc, s.Key)
	}
}

func TestSecretComesFromAFile(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("sk-1\n"), 0o600))
	for _, src := range []wiring.Sources{
		{Environ: []string{"OPENAI_API_KEY_FILE=" + key}},
		{Environ: []string{"CORREX_OPENAI__API_KEY_FILE=" + key}},
		{File: file(t, "openai: {api_key_file: "+key+"}")},
		{Environ: []string{"OPENAI_API_KEY=other", "CORREX_OPENAI__API_KEY=sk-1"}},
	} {
		src.Environ = append(src.Environ, "HOME=/h")
		got, err := wiring.Load(src)
		require.NoError(t, err)
		require.Equal(t, wiring.Secret("sk-1"), got.Config.OpenAI.APIKey)
		require.Equal(t, wiring.ProviderOpenAI, got.Config.Answering())
	}
	_, err := wiring.Load(wiring.Sources{Environ: []string{"HOME=/h", "OPENAI_API_KEY_FILE=/no/such"}})
	require.ErrorContains(t, err, `setting openai.api_key_file is "/no/such" (from OPENAI_API_KEY_FILE)`)
	_, err = wiring.Load(wiring.Sources{Environ: []string{"HOME=/h", "CORREX_OPENAI__API_KEY_FILE=" + key, "CORREX_OPENAI__API_KEY=sk-2"}})
	require.ErrorContains(t, err, "given both itself and as a file")
}

func TestAutoProviderIsOpenAIWhenConfigured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{nil, wiring.ProviderOffline},
		{[]string{"OPENAI_API_KEY="}, wiring.ProviderOffline},
		{[]string{"OPENAI_API_KEY=k"}, wiring.ProviderOpenAI},
		{[]string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, wiring.ProviderOpenAI},
		{[]string{"OPENAI_API_KEY=k", "CORREX_PROVIDER=offline"}, wiring.ProviderOffline},
	} {
		got, err := wiring.Load(wiring.Sources{Environ: append(c.environ, "HOME=/h")})
		require.NoError(t, err)
		require.Equal(t, c.want, got.Config.Answering(), c.environ)
	}
}
