package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

// aimockEnv names the program of @copilotkit/aimock, an OpenAI-compatible server that this project did not write. `make
// test-aimock` installs it and runs these tests.
const aimockEnv = "CORREX_AIMOCK"

// startAIMock serves the fixtures and gives the base URL.
func startAIMock(t *testing.T) string {
	t.Helper()
	program := os.Getenv(aimockEnv)
	if program == "" {
		t.Skipf("%s is not set: run `make test-aimock`, which installs the peer through npm", aimockEnv)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	log := new(output)
	peer := exec.CommandContext(t.Context(), program, "-p", port, "-f", "testdata/aimock/fixtures.json", "--strict", "-c", "8")
	peer.Stdout, peer.Stderr = log, log
	require.NoError(t, peer.Start())
	t.Cleanup(func() {
		_ = peer.Process.Kill()
		_ = peer.Wait()
		if t.Failed() {
			t.Logf("aimock's log:\n%s", log)
		}
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + addr + "/v1/models") //nolint:noctx // a readiness probe
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	}, 30*time.Second, 20*time.Millisecond)
	return "http://" + addr + "/v1"
}

func releaseWorkflow(t *testing.T) string {
	t.Helper()
	events, err := os.ReadFile("testdata/workflow/release.jsonl")
	require.NoError(t, err)
	return string(events)
}

// TestAIMockReleaseFromEndToEnd records a real workflow, chats, steers, kills the server in the middle of a streamed answer and
// finds everything after a restart: against a model server that we did not write.
func TestAIMockReleaseFromEndToEnd(t *testing.T) {
	t.Parallel()
	provider := startAIMock(t)
	m := newMachine(t)
	args := []string{"--set", "provider=openai", "--set", "openai.base_url=" + provider, "--set", "openai.model=gpt-4o-mini"}
	server := m.serve(args...)
	m.run(releaseWorkflow(t), "events", "import", "rel")

	var response protocol.RouterResponse
	sent := m.run("", "--json", "send", "rel", "how is it going?")
	require.NoError(t, json.Unmarshal([]byte(lastLine(sent)), &response))
	require.Equal(t, "Nine stages succeeded; the canary runs now. 你好", response.Content)
	require.Equal(t, "completed", response.Outcome)
	require.Equal(t, "reported", response.Usage.Source, "aimock sends a usage chunk")
	require.NotZero(t, *response.Usage.InputTokens)
	m.run("", "send", "--steer", "rel", "prefer safety")
	before := m.state("rel")
	require.Equal(t, "RUNNING", before.WorkflowStatus)
	require.Equal(t, "canary", before.CurrentStageID)
	require.Len(t, before.L2Memory, 12)

	waiting, answer, log := m.command("send", "--idempotency-key", "k", "rel", "tell me everything")
	require.NoError(t, waiting.Start())
	m.await("rel", func(s *protocol.State) bool { return s.ActiveRun != nil && s.ActiveRun.Phase == "streaming" })
	m.kill(server)
	m.serve(args...)
	require.NoError(t, waiting.Wait(), log)
	whole := strings.Repeat("The release is under way. ", 40) + "That is all."
	// What had been printed of the first attempt cannot be taken back; the second one begins on a line of its own.
	require.Equal(t, whole, lastLine(answer.String()))

	after := m.state("rel")
	require.Equal(t, before.L2Memory, after.L2Memory)
	require.Equal(t, before.CurrentStageID, after.CurrentStageID)
	require.Equal(t, before.ConversationHistory, after.ConversationHistory[:4])
	require.Len(t, after.ConversationHistory, 6)
	require.Equal(t, whole, after.ConversationHistory[5].Content)
	exported := m.run("", "events", "export", "rel")
	require.Equal(t, 1, strings.Count(exported, "steering_note_added"))
	require.Contains(t, exported, `"big":12345678901234567890`)
}

// TestAIMockFailuresAreNotTakenForAnswers: a stream that is cut, an error status.
func TestAIMockFailuresAreNotTakenForAnswers(t *testing.T) {
	t.Parallel()
	provider := startAIMock(t)
	m := newMachine(t)
	m.serve("--set", "provider=openai", "--set", "openai.base_url="+provider, "--set", "openai.model=gpt-4o-mini", "--set", "breaker.failures=100")
	for text, want := range map[string]struct{ outcome, code string }{
		"cut it short please":  {"incomplete", "truncated"},
		"too many of them":     {"failed", "provider_rate_limited"},
		"nothing matches this": {"failed", "provider_"},
	} {
		cmd, stdout, _ := m.command("--json", "send", "s", text)
		_ = cmd.Run() // a failed turn is a failed command
		var response protocol.RouterResponse
		require.NoError(t, json.Unmarshal([]byte(lastLine(stdout.String())), &response), stdout)
		require.Equal(t, want.outcome, response.Outcome, text)
		require.NotNil(t, response.Error, text)
		require.Contains(t, response.Error.Code, want.code, text)
	}
	require.Contains(t, m.run("", "--json", "send", "s", "how is it going?"), "completed", "the session goes on")
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
