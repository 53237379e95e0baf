package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// output is what a child has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String implements fmt.Stringer.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// machine is a place to run the program in: a data folder, and an address that outlives its servers.
type machine struct {
	t   *testing.T
	dir string
	url string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	return &machine{t: t, dir: t.TempDir(), url: "http://" + addr}
}

// command prepares the program as a child.
func (m *machine) command(args ...string) (cmd *exec.Cmd, stdout, stderr *output) {
	m.t.Helper()
	cmd = exec.CommandContext(m.t.Context(), "correx-actors", args...)
	stdout, stderr = new(output), new(output)
	cmd.Env = []string{"HOME=" + m.dir, "CORREX_SERVER=" + m.url, "PATH=" + os.Getenv("PATH"), "GORACE=" + raceOptions}
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, stdout, stderr
	return cmd, stdout, stderr
}

// serve starts a server and waits until it serves.
func (m *machine) serve(args ...string) *exec.Cmd {
	m.t.Helper()
	ready := filepath.Join(m.dir, "ready")
	_ = os.Remove(ready)
	cmd, _, stderr := m.command(append([]string{
		"serve", "--listen", strings.TrimPrefix(m.url, "http://"), "--ready-file", ready,
	}, args...)...)
	require.NoError(m.t, cmd.Start())
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if log := unexpected(stderr.String()); m.t.Failed() && log != "" {
			m.t.Logf("server's log:\n%s", log)
		}
	})
	_, err := readReady(ready)
	require.NoError(m.t, err, "server's log:\n%s", stderr)
	return cmd
}

// unexpected is what a server's log has besides its greeting and its farewell: some tests start hundreds of servers.
func unexpected(log string) string {
	usual := regexp.MustCompile(`(?m)^(correx-actors devel|  (address|data|provider|chat)  .*|correx-actors: stopping: .*)\n`)
	return usual.ReplaceAllString(log, "")
}

func (m *machine) kill(cmd *exec.Cmd) {
	m.t.Helper()
	require.NoError(m.t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// run carries out a command that must succeed and gives its output.
func (m *machine) run(stdin string, args ...string) string {
	m.t.Helper()
	cmd, stdout, stderr := m.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	require.NoError(m.t, cmd.Run(), "%v: %s", args, stderr)
	return stdout.String()
}

func (m *machine) state(session string) *protocol.State {
	m.t.Helper()
	var state protocol.State
	require.NoError(m.t, json.Unmarshal([]byte(m.run("", "--json", "sessions", "show", session)), &state))
	return &state
}

// await waits until a session's state is as wanted.
func (m *machine) await(session string, want func(*protocol.State) bool) *protocol.State {
	m.t.Helper()
	c, err := client.New(m.url, "")
	require.NoError(m.t, err)
	var state *protocol.State
	require.Eventually(m.t, func() bool {
		state, err = c.Session(m.t.Context(), session)
		return err == nil && want(state)
	}, 20*time.Second, 5*time.Millisecond)
	return state
}

const workflow = `{"type":"workflow_started","workflow_id":"w1"}
{"type":"stage_started","stage_id":"build"}
{"type":"stage_completed","stage_id":"build","summary":"binaries for 3 platforms"}
{"type":"custom","n":1.50}
{"type":"stage_started","stage_id":"test"}
`

// TestKilledServerLosesNothing records a release's workflow of 30 events, chats and steers, and kills the server in the middle
// of an answer. After a restart the state is the same, the missing answer comes, and the client that was waiting gets it as if
// nothing had happened (I1, I6, I7).
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve("--set", "offline.delay=20ms")
	m.run(releaseWorkflow(t), "events", "import", "s1")
	first := m.run("", "send", "s1", "hello")
	events := m.run("", "events", "export", "s1")
	before := m.state("s1")

	waiting, answer, log := m.command("send", "--steer", "--idempotency-key", "k1", "s1", "what is the status?")
	require.NoError(t, waiting.Start())
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil && s.ActiveRun.Phase == "streaming" })
	m.kill(server)

	m.serve()
	require.NoError(t, waiting.Wait(), log)
	require.Contains(t, answer.String(), "Current stage: canary")
	require.Contains(t, log.String(), "connected again")

	after := m.await("s1", func(s *protocol.State) bool { return s.ActiveRun == nil && len(s.ConversationHistory) == 4 })
	require.Equal(t, before.WorkflowStatus, after.WorkflowStatus)
	require.Equal(t, before.CurrentStageID, after.CurrentStageID)
	require.Equal(t, before.L2Memory, after.L2Memory)
	require.Equal(t, before.ConversationHistory, after.ConversationHistory[:2])
	require.Equal(t, strings.TrimRight(first, "\n"), after.ConversationHistory[1].Content)
	require.Equal(t, strings.TrimRight(answer.String(), "\n"), after.ConversationHistory[3].Content)

	// The log has what it had, and the one note of the turn that the second process answered.
	again := m.run("", "events", "export", "s1")
	require.True(t, strings.HasPrefix(again, events))
	require.Equal(t, 1, strings.Count(again, "steering_note_added"))
	require.Equal(t, 1, strings.Count(m.run("", "turns", "show", "--key", "s1", "k1"), "state    answered"))
	// Sending once more with the same key gives the same answer and makes no turn.
	require.Equal(t, answer.String(), m.run("", "send", "--steer", "--idempotency-key", "k1", "s1", "what is the status?"))
	require.Len(t, m.state("s1").ConversationHistory, 4)
}

// TestAnswerComesAlthoughNobodyWaits kills the server in the middle of an answer; after the restart nobody asks for the session.
func TestAnswerComesAlthoughNobodyWaits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve("--set", "offline.delay=1h")
	turns := make([]string, 3)
	for i := range turns {
		turns[i] = strings.TrimSpace(m.run("", "send", "--no-wait", "s1", fmt.Sprintf("hello %d", i)))
	}
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil })
	m.kill(server)

	m.serve()
	m.await("s1", func(s *protocol.State) bool {
		return s.ActiveRun == nil && len(s.Queue) == 0 && len(s.ConversationHistory) == 6
	})
	for _, turn := range turns {
		require.Contains(t, m.run("", "turns", "show", "s1", turn), "state    answered")
	}
}

// TestChatGoesOnOverARestart holds one plain chat over a server that is killed and started again.
func TestChatGoesOnOverARestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve()
	chat, out, log := m.command("chat", "--plain", "s1")
	stdin, err := chat.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, chat.Start())
	_, err = stdin.Write([]byte("hello\n"))
	require.NoError(t, err)
	m.await("s1", func(s *protocol.State) bool { return len(s.ConversationHistory) == 2 })
	m.kill(server)
	_, err = stdin.Write([]byte("what is the status?\n"))
	require.NoError(t, err)
	m.serve()
	m.await("s1", func(s *protocol.State) bool { return len(s.ConversationHistory) == 4 && s.ActiveRun == nil })
	require.NoError(t, stdin.Close())
	require.NoError(t, chat.Wait(), log)
	require.Equal(t, 1, strings.Count(out.String(), "Hello!"))
	require.Equal(t, 2, strings.Count(out.String(), "The workflow has not started."))
	require.Contains(t, log.String(), "trying again")
	require.Contains(t, log.String(), "connected again")
}

// TestTerminateDrains ends a server with SIGTERM, as supervisors do.
func TestTerminateDrains(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve("--set", "offline.delay=5ms")
	waiting, answer, log := m.command("send", "s1", "hello")
	require.NoError(t, waiting.Start())
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil })
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, waiting.Wait(), log)
	require.Contains(t, answer.String(), "Hello!")
	require.NoError(t, server.Wait())
}

// TestInterruptAbortsTheAnswerThenLeaves presses Ctrl-C in a chat.
func TestInterruptAbortsTheAnswerThenLeaves(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.serve("--set", "offline.delay=1h")
	chat, _, log := m.command("chat", "--plain", "s1")
	stdin, err := chat.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, chat.Start())
	_, err = stdin.Write([]byte("hello\n"))
	require.NoError(t, err)
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil && s.ActiveRun.Phase == "starting_engine" })
	require.NoError(t, chat.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "correx-actors: cancelled") }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, chat.Process.Signal(os.Interrupt))
	_ = chat.Wait()
	require.Equal(t, 0, chat.ProcessState.ExitCode(), log)
	require.Contains(t, log.String(), "aborting the answer; Ctrl-C again leaves")
}

// TestTailFollowsOverARestart follows a session's events while its server is killed and started again.
func TestTailFollowsOverARestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve()
	m.run(workflow, "events", "import", "s1")
	tail, out, log := m.command("events", "tail", "--after", "2", "s1")
	require.NoError(t, tail.Start())
	seen := func(n int) {
		require.Eventually(t, func() bool { return strings.Count(out.String(), "\n") == n }, 20*time.Second, 5*time.Millisecond, log)
	}
	seen(3)
	m.kill(server)
	m.serve()
	m.run(`{"type":"workflow_completed"}`, "events", "import", "s1")
	seen(4)
	require.NoError(t, tail.Process.Signal(os.Interrupt))
	require.NoError(t, tail.Wait(), log)
	require.Equal(t, m.run("", "events", "export", "--after", "2", "s1"), out.String())
}

// TestRunThatTakesTheServerDownEndsAsCrashLoop kills the server during each attempt that it may make.
func TestRunThatTakesTheServerDownEndsAsCrashLoop(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	args := []string{"--set", "offline.delay=1h", "--set", "recovery.max_attempts=1"}
	server := m.serve(args...)
	turn := strings.TrimSpace(m.run("", "send", "--no-wait", "s1", "hello"))
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil })
	m.kill(server)
	m.serve(args...)
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun == nil })
	shown := m.run("", "turns", "show", "s1", turn)
	require.Contains(t, shown, "failed")
	require.Contains(t, shown, "crash_loop")
}
