//go:build unix

package mcp_test

import (
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/inference/tools/mcp"
)

// child is this test binary as a server. The mode reaches it by a variable that it is given by name, so these tests are not parallel.
func child(t *testing.T, mode string) mcp.Server {
	t.Helper()
	t.Setenv(childMode, mode)
	executable, err := os.Executable()
	require.NoError(t, err)
	return mcp.Server{Name: "child", Command: executable, Args: []string{"-test.run=^$"}, Env: []string{childMode}}
}

// gone says whether no process has this id, not even one that waits to be reaped.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err, text)
	return n
}

func TestChildThatDiesIsStartedAgain(t *testing.T) {
	source := open(t, child(t, "server"))
	ready(t, source)
	first := number(t, run(t.Context(), t, source, "child__pid", `{}`, nil).Text)
	died := run(t.Context(), t, source, "child__exit", `{}`, nil)
	require.Equal(t, tools.ErrorUnavailable, died.Failure.Type)

	var second int
	eventually(t, func() bool {
		answer := run(t.Context(), t, source, "child__pid", `{}`, nil)
		if !answer.OK() {
			return false
		}
		second = number(t, answer.Text)
		return true
	})
	require.NotEqual(t, first, second)
	require.True(t, gone(first), "no zombie stays")
	closeNow(t, source)
	require.True(t, gone(second))
	answer := run(t.Context(), t, source, "child__pid", `{}`, nil)
	require.Equal(t, "unavailable: the server child is away: it is closed", answer.Text)
}

func TestChildDoesNotSeeOurEnvironment(t *testing.T) {
	t.Setenv("CORREX_TEST_KEY", "secret")
	t.Setenv("CORREX_TEST_GIVEN", "given")
	server := child(t, "server")
	server.Env = append(server.Env, "CORREX_TEST_GIVEN")
	source := open(t, server)
	ready(t, source)
	require.Equal(t, "(no output)", run(t.Context(), t, source, "child__env", `{"text":"CORREX_TEST_KEY"}`, nil).Text)
	require.Equal(t, "given", run(t.Context(), t, source, "child__env", `{"text":"CORREX_TEST_GIVEN"}`, nil).Text)
	require.NotEmpty(t, run(t.Context(), t, source, "child__env", `{"text":"PATH"}`, nil).Text)
}

func TestStubbornChildAndItsChildrenAreKilled(t *testing.T) {
	source := open(t, child(t, "stubborn"))
	ready(t, source)
	pid := number(t, run(t.Context(), t, source, "child__pid", `{}`, nil).Text)
	grandchild := number(t, run(t.Context(), t, source, "child__spawn", `{}`, nil).Text)
	began := make(chan struct{})
	ended := begin(t.Context(), t, source, "child__slow", `{}`, func(u tools.Update) {
		if u.Phase == tools.PhaseUpdated {
			close(began)
		}
	})
	<-began
	closeNow(t, source)
	require.Equal(t, tools.ErrorUnavailable, (<-ended).Failure.Type)
	require.True(t, gone(pid))
	// It was not our child: who reaps it does so in its own time.
	eventually(t, func() bool { return gone(grandchild) || zombie(grandchild) })
}

// zombie says whether a process has ended and was not reaped by its parent, which is not us.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && stat[i+2] == 'Z'
		}
	}
	return false
}

func TestChildWhoseChildHoldsItsOutputIsNoticedWhenItDies(t *testing.T) {
	source := open(t, child(t, "server"))
	ready(t, source)
	run(t.Context(), t, source, "child__spawn", `{}`, nil)
	first := number(t, run(t.Context(), t, source, "child__pid", `{}`, nil).Text)
	before := source.Tools()[0]
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	// Not by a call: that would notice it by itself.
	eventually(t, func() bool { return source.Tools()[0] != before })
	require.NotEqual(t, first, number(t, run(t.Context(), t, source, "child__pid", `{}`, nil).Text))
}

func TestServerThatDoesNotAnswerIsTriedAgainAndCanBeClosed(t *testing.T) {
	server := child(t, "deaf")
	source, err := mcp.Open(server, mcp.Config{Connect: 100 * time.Millisecond, MinPause: time.Millisecond, Grace: 50 * time.Millisecond},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	eventually(t, func() bool { return source.Status().Reason != "it is being connected" })
	closeNow(t, source)
	require.Equal(t, "it is closed", source.Status().Reason)
	require.Error(t, source.Ready(t.Context()))
}

func TestCommandThatIsNotThereTellsNoPath(t *testing.T) {
	source := open(t, mcp.Server{Name: "none", Command: "/nowhere/to/be/found"})
	eventually(t, func() bool { return source.Status().Reason != "it is being connected" })
	require.NotContains(t, source.Status().Reason, "nowhere")
}
