package correx_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/wiring"
)

var (
	madeID   = regexp.MustCompile(`(turn|run|sess)_[0-9a-f-]{36}`)
	someTime = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
)

// TestReadmeTranscriptsAreTrue types the commands of the README and compares what they print.
func TestReadmeTranscriptsAreTrue(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the commands are written for a shell")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./cmd/correx-actors")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	doc := open(t, "README.md")
	quick := wiring.DefaultConfig()
	doc.transcript("transcript", dir, quick)
	slow := quick
	for name, set := range map[string]*time.Duration{"offline.delay": &slow.Offline.Delay, "queue.merge_window": &slow.Queue.MergeWindow} {
		_, text, found := strings.Cut(doc.text, "--set "+name+"=")
		require.True(t, found, name)
		*set, err = time.ParseDuration(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \"`", r) })[0])
		require.NoError(t, err)
	}
	doc.transcript("transcript of queue modes", dir, slow)
	tooled := quick
	tooled.Tools.Demo = true
	doc.transcript("transcript of tools", dir, tooled)
	doc.save()
}

// transcript types the commands of one block to a server of its own.
func (d *document) transcript(name, bin string, cfg wiring.Config) {
	d.t.Helper()
	cfg.Listen, cfg.Journal.Driver, cfg.Provider = "127.0.0.1:0", wiring.DriverMemory, wiring.ProviderOffline
	cfg.Log.Level, cfg.Drain.Timeout = "error", 0
	server, err := wiring.NewServer(cfg)
	require.NoError(d.t, err)
	require.NoError(d.t, server.Start(d.t.Context()))
	d.t.Cleanup(func() { require.NoError(d.t, server.Stop(context.WithoutCancel(d.t.Context()))) })

	_, block, _ := strings.Cut(d.text, "<!-- "+name+" -->\n")
	block, _, _ = strings.Cut(block, "<!-- /"+name+" -->")
	block = strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```\n")
	patience := 10 * time.Second
	if *rewriteDocs {
		patience = time.Second / 2
	}
	var typed strings.Builder
	typed.WriteString("```console\n")
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		run := func() string {
			shell := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", command)
			shell.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "CORREX_SERVER=http://"+server.Addr().String())
			shell.Stderr = io.Discard // notes for a person at a terminal
			printed, err := shell.Output()
			require.NoError(d.t, err, command)
			return steady(string(printed))
		}
		printed := run()
		if strings.Contains(command, " turns show ") {
			// A reader is slower than a test: what only asks is asked again until it is as written.
			for deadline := time.Now().Add(patience); printed != want && time.Now().Before(deadline); {
				printed = run()
			}
		}
		typed.WriteString("$ " + command + "\n" + printed)
	}
	typed.WriteString("```\n")
	d.part(name, typed.String())
}

// steady takes out what differs each time.
func steady(printed string) string {
	printed = madeID.ReplaceAllString(printed, "${1}_…")
	return someTime.ReplaceAllString(printed, "2027-01-15T08:00:00Z")
}

// TestReadmeFramesAreFrames reads the frames of the README as a client and a server would.
func TestReadmeFramesAreFrames(t *testing.T) {
	t.Parallel()
	sent, received := 0, 0
	for line := range strings.Lines(open(t, "README.md").text) {
		line = strings.TrimSpace(line)
		if frame, ok := strings.CutPrefix(line, "> {"); ok {
			_, refusal := protocol.Decode([]byte("{" + frame))
			require.Nil(t, refusal, line)
			sent++
		}
		if frame, ok := strings.CutPrefix(line, "< {"); ok {
			_, err := protocol.DecodeServer([]byte("{" + frame))
			require.NoError(t, err, line)
			received++
		}
	}
	require.Positive(t, sent)
	require.Positive(t, received)
}
