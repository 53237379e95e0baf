package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/doctor"
	"github.com/correx/correx-actors/wiring"
)

func TestVerdictsAreBrokenToTheTerminal(t *testing.T) {
	t.Parallel()
	rows := []finding{
		{"stream", doctor.OK, "as it should be", ""},
		{"first token", doctor.Failed, "quite a long text that\nhas to be broken\x1b[31m", "and so has what is to be done about it"},
	}
	for _, test := range []struct {
		width  int
		colors bool
		want   string
	}{
		{0, false, "" +
			"ok      stream       as it should be\n" +
			"FAILED  first token  quite a long text that has to be broken[31m\n" +
			"                     → and so has what is to be done about it\n"},
		{50, false, "" +
			"ok      stream       as it should be\n" +
			"FAILED  first token  quite a long text that has to\n" +
			"                     be broken[31m\n" +
			"                     → and so has what is to be\n" +
			"                       done about it\n"},
		{30, true, "" +
			"\x1b[32mok    \x1b[0m  stream       as it should be\n" +
			"\x1b[1;31mFAILED\x1b[0m  first token  quite a long text that has to be broken[31m\n" +
			"                     → and so has what is to be done about it\n"},
	} {
		var out strings.Builder
		table := verdicts{out: &out, width: test.width, colors: test.colors, rows: rows}
		require.NoError(t, table.print())
		require.Equal(t, test.want, out.String())
	}
}

func TestSkippedFindingsOfOneReasonAreOne(t *testing.T) {
	t.Parallel()
	skipped := func(check, detail string) finding { return finding{check, doctor.Skipped, detail, ""} }
	rows := []finding{skipped("a", "x"), {"b", doctor.OK, "x", ""}, skipped("c", "x"), skipped("d", "x"), skipped("e", "y")}
	require.Equal(t, []finding{skipped("a", "x"), rows[1], skipped("2 others", "x"), skipped("e", "y")}, shortened(rows))
	require.Equal(t, "5 probes: 1 ok, 4 skipped", sum("probe", rows))
	require.Equal(t, "1 check: 1 ok", sum("check", rows[1:2]))
	require.NoError(t, verdictOf(rows))
	require.ErrorIs(t, verdictOf(append(rows, finding{Verdict: doctor.Failed})), errUnwell)
}

// TestProfileIsAConfiguration reads what doctor provider prints as serve would.
func TestProfileIsAConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte("sk-from-a-file\n"), 0o600))
	text := profileYAML(doctor.Profile{
		Name: "local", BaseURL: "http://127.0.0.1:1/v1", Model: `od"d: #1`, Concurrent: 1, TokensPerMinute: 30000,
		FirstToken: 20 * time.Second, Token: time.Second,
	}, key)
	file := filepath.Join(dir, "correx.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	loaded, err := wiring.Load(wiring.Sources{File: file, Environ: []string{"HOME=" + dir}})
	require.NoError(t, err, text)
	require.Equal(t, "local", loaded.Config.Answering())
	require.Equal(t, 4*time.Minute, loaded.Config.Runs.FirstTokenTimeout)
	require.Equal(t, wiring.DefaultConfig().Runs.TokenTimeout, loaded.Config.Runs.TokenTimeout)
	require.Len(t, loaded.Config.Providers, 1)
	require.Equal(t, `od"d: #1`, loaded.Config.Providers[0].Models[0].Name)
	require.Equal(t, wiring.ProviderLimits{Concurrent: 1, TokensPerMinute: 30000}, loaded.Config.Providers[0].Limits)
	require.EqualValues(t, "sk-from-a-file", loaded.Config.Providers[0].APIKey)
}

func TestWhoHoldsAPortIsFoundOut(t *testing.T) {
	t.Parallel()
	const health, list = `{"status":"ok"}`, `{"sessions":[]}`
	for name, test := range map[string]struct {
		answers map[string]string
		want    serverState
	}{
		"ours":             {map[string]string{"/healthz": health, "/v1/sessions": list, "/readyz": health}, serverReady},
		"ours, draining":   {map[string]string{"/healthz": health, "/v1/sessions": list}, serverBusy},
		"ours, in trouble": {map[string]string{"/healthz": health, "/v1/sessions": `{"error":{"code":"unavailable"}}`}, serverBusy},
		"another":          {map[string]string{"/healthz": health, "/readyz": health}, serverOther},
		"a web site":       {map[string]string{"/healthz": "<html>"}, serverOther},
		"nothing":          {nil, serverOther},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, known := test.answers[r.URL.Path]
			if !known {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = w.Write([]byte(body))
		}))
		require.Equal(t, test.want, ask(t.Context(), server.URL), name)
		server.Close()
	}
}

func TestClockIsComparedWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.FixedZone("east", 3600))
	steady := clockReading{now: now, built: now.Add(-time.Hour), changed: now.Add(time.Second), steady: time.Second, wall: time.Second}
	require.Equal(t, passed("2026-12-01T11:00:00Z, steady"), steady.judged(), "time zones do not matter")
	for detail, change := range map[string]func(*clockReading){
		"before this program was built": func(c *clockReading) { c.built = now.Add(time.Hour) },
		"before the journal's last":     func(c *clockReading) { c.changed = now.Add(time.Hour) },
		"it jumped by -59s within 1s":   func(c *clockReading) { c.wall = -58 * time.Second },
		"it jumped by 1h0m0s within 1s": func(c *clockReading) { c.wall += time.Hour },
	} {
		reading := steady
		change(&reading)
		found := reading.judged()
		require.NotEqual(t, doctor.OK, found.Verdict, detail)
		require.Contains(t, found.Detail, detail)
		require.NotEmpty(t, found.Advice, detail)
	}
	require.Equal(t, doctor.OK, (&checkup{started: time.Now()}).clock(t.Context()).Verdict)
}

func TestFolderThatWillBeMadeIsJudgedByTheOneAbove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, missing := existing(filepath.Join(dir, "a", "b"))
	require.Equal(t, dir, folder)
	require.True(t, missing)
	folder, missing = existing(dir)
	require.Equal(t, dir, folder)
	require.False(t, missing)
}

func TestSizesAreForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[uint64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1 << 62: "4194304.0 TiB"} {
		require.Equal(t, want, size(bytes))
	}
}
