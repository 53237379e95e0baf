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

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/wiring"
)

var (
	madeID   = regexp.MustCompile(`(turn|run|sess)_[0-9a-f-]{36}`)
	someTime = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
)

// TestReadmeTranscriptIsTrue types the commands of the README and compares what they print.
func TestReadmeTranscriptIsTrue(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the commands are written for a shell")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./cmd/correx-actors")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.Journal.Driver, cfg.Provider = "127.0.0.1:0", wiring.DriverMemory, wiring.ProviderOffline
	cfg.Log.Level = "error"
	server, err := wiring.NewServer(cfg)
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })

	doc := open(t, "README.md")
	_, block, _ := strings.Cut(doc.text, "<!-- transcript -->\n")
	block, _, _ = strings.Cut(block, "<!-- /transcript -->")
	var typed strings.Builder
	typed.WriteString("```console\n")
	for line := range strings.Lines(block) {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			continue
		}
		shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
		shell.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"), "CORREX_SERVER=http://"+server.Addr().String())
		shell.Stderr = io.Discard // notes for a person at a terminal
		printed, err := shell.Output()
		require.NoError(t, err, command)
		typed.WriteString(line + steady(string(printed)))
	}
	typed.WriteString("```\n")
	doc.part("transcript", typed.String())
	doc.save()
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
