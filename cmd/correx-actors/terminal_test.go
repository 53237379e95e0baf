package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

// terminal is a real one, of tmux: what the chat writes is what a person would see.
type terminal struct {
	t      *testing.T
	socket string
}

// chatIn opens a chat on a terminal of the given size; environment has further variables.
func chatIn(m *machine, width, height, session string, environment ...string) *terminal {
	m.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		m.t.Skip("tmux is not installed: the terminal chat is only tested as a model")
	}
	program, err := exec.LookPath("correx-actors")
	require.NoError(m.t, err)
	term := &terminal{t: m.t, socket: filepath.Join(m.dir, "tmux")}
	// The pane's shell stays when the chat has ended, so that its last words can be read.
	line := "env CORREX_SERVER=" + m.url + " " + strings.Join(environment, " ") + " '" + program + "' chat " + session + "; echo left with $?; cat"
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, line)
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the screen:\n%s", term.screen())
		}
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() //nolint:noctx // the test's context has ended
	})
	return term
}

func (t *terminal) tmux(args ...string) string {
	t.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...).CombinedOutput() //nolint:noctx // also in cleanup
	require.NoError(t.t, err, "%s", out)
	return string(out)
}

func (t *terminal) screen() string { return t.tmux("capture-pane", "-p") }

func (t *terminal) keys(keys ...string) { t.tmux(append([]string{"send-keys"}, keys...)...) }

// shows waits until all of the texts are on the screen.
func (t *terminal) shows(texts ...string) string {
	t.t.Helper()
	var screen string
	require.Eventually(t.t, func() bool {
		screen = t.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, 20*time.Second, 20*time.Millisecond, "%q", texts)
	return screen
}

// TestChatOnATerminal types into the real program on a real terminal: an answer, several lines, a server that is killed and
// started again, another size, steering, stopping, leaving.
func TestChatOnATerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server := m.serve("--set", "offline.delay=5ms")
	m.run(workflow, "events", "import", "s1")
	term := chatIn(m, "80", "24", "s1")
	term.shows("A new conversation", "s1 · workflow RUNNING · stage test", "● connected")
	term.keys("what is", "M-Enter", "the status?", "C-j")
	term.shows(" › what is\n   the status?\n")
	term.keys("Enter")
	term.shows(" ▌ what is\n ▌ the status?\n", "- Current stage: test", "and start again.")

	m.kill(server)
	term.shows("reconnecting…")
	term.keys("typed while away", "Enter")
	term.shows("not sent yet: waiting for the connection")
	term.keys("a draft")
	m.serve("--set", "offline.delay=1h")
	term.shows("● connected", "thinking", "a draft")
	m.await("s1", func(s *protocol.State) bool { return s.ActiveRun != nil })
	term.keys("Escape")
	term.shows("┄ cancelled")

	term.tmux("resize-window", "-x", "120", "-y", "40")
	screen := term.shows(strings.Repeat("─", 120), "› a draft")
	require.Equal(t, 1, strings.Count(screen, "Current stage: test"))
	require.Equal(t, 1, strings.Count(screen, "typed while away"))

	term.keys("C-u", "/steer run the slow tests too", "Enter")
	term.shows("▌ run the slow tests too", "answering")
	term.keys("C-c")
	term.shows("✓ steering note recorded for the workflow")
	term.keys("kept", "C-c")
	term.shows("Ctrl-C again leaves")
	term.keys("C-c")
	term.shows("go on with it later: correx-actors chat s1", "not sent:\nkept\n", "left with 0")
	require.Len(t, m.state("s1").ConversationHistory, 4)
}

// TestChatWithoutColorsOrTerminal: NO_COLOR leaves words and marks; a dumb terminal gets lines.
func TestChatWithoutColorsOrTerminal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.serve()
	term := chatIn(m, "80", "24", "s1", "NO_COLOR=1")
	term.shows("A new conversation")
	term.keys("/dance", "Enter")
	term.shows("✗ unknown command /dance")
	require.NotRegexp(t, "\x1b\\[(3[0-8]|9[0-7])", term.tmux("capture-pane", "-p", "-e"))
	term.keys("C-u", "C-d")
	term.shows("left with 0")

	dumb := chatIn(&machine{t: t, dir: t.TempDir(), url: m.url}, "80", "24", "s1", "TERM=dumb")
	dumb.shows("correx-actors: session s1", "\n>\n")
	require.NotContains(t, dumb.screen(), "───")
}
