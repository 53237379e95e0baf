package testkit_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// register is an actor that holds a number.
type register struct{ value int }

type (
	read  struct{}
	write struct{ value int }
)

// Receive implements actor.Actor.
func (r *register) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case read:
		ctx.Respond(r.value)
	case write:
		r.value = m.value
		ctx.Respond(m.value)
	}
}

// lostUpdate lets two clients count, as one who reads, thinks and writes does; it gives what they counted to.
func lostUpdate(t *testing.T, s *testkit.Schedule) int {
	t.Helper()
	sys := kernel.New(kernel.Config{Scheduler: s})
	pid, err := sys.Spawn(sys.Props(func() actor.Actor { return &register{} }, kernel.PropsOptions{}))
	require.NoError(t, err)
	for range 2 {
		s.Go(func(yield func()) {
			value, err := sys.Ask(t.Context(), pid, read{})
			require.NoError(t, err)
			yield()
			_, err = sys.Ask(t.Context(), pid, write{value.(int) + 1})
			require.NoError(t, err)
		})
	}
	s.Wait()
	value, err := sys.Ask(t.Context(), pid, read{})
	require.NoError(t, err)
	require.NoError(t, sys.Shutdown(t.Context()))
	return value.(int)
}

func TestExplorationFindsWhatOnlySomeOrdersShow(t *testing.T) {
	t.Parallel()
	counted := make(map[int]int)
	testkit.Explore(t, 100, func(t *testing.T, s *testkit.Schedule) { counted[lostUpdate(t, s)]++ })
	if os.Getenv(testkit.SeedVariable) == "" {
		require.Greater(t, counted[1], 10, "an update is lost")
		require.Greater(t, counted[2], 10, "none is")
	}
}

func TestASeedIsAlwaysTheSameSchedule(t *testing.T) {
	t.Parallel()
	traces := make(map[uint64]string)
	different := make(map[string]bool)
	for range 3 {
		testkit.Explore(t, 20, func(t *testing.T, s *testkit.Schedule) {
			lostUpdate(t, s)
			trace := strings.Join(s.Trace(), "\n")
			if before, ok := traces[s.Seed()]; ok {
				require.Equal(t, before, trace)
			}
			traces[s.Seed()], different[trace] = trace, true
		})
	}
	require.Greater(t, len(different), len(traces)/4)
}

// A timer that is due takes its turn with all else, and a message before it need not be handled before it.
func TestTimersTakeTheirTurn(t *testing.T) {
	t.Parallel()
	first := make(map[string]int)
	testkit.Explore(t, 60, func(t *testing.T, s *testkit.Schedule) {
		sys := kernel.New(kernel.Config{Scheduler: s})
		probe := testkit.NewProbe(t, sys)
		begin := time.Now()
		sys.After(time.Second, probe.PID(), "timer")
		sys.After(time.Second, probe.PID(), "stopped")()
		s.Go(func(yield func()) {
			time.Sleep(time.Second)
			yield()
			sys.Tell(probe.PID(), "client")
		})
		first[testkit.Expect[string](probe)]++
		testkit.Expect[string](probe)
		probe.ExpectNone(time.Minute)
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
		require.NoError(t, sys.Shutdown(t.Context()))
	})
	if os.Getenv(testkit.SeedVariable) == "" {
		require.Greater(t, first["timer"], 5)
		require.Greater(t, first["client"], 5)
	}
}

// Anything may come while an append is under way.
func TestAnswersOfAPacedJournalTakeTheirTurn(t *testing.T) {
	t.Parallel()
	first := make(map[string]int)
	testkit.Explore(t, 40, func(t *testing.T, s *testkit.Schedule) {
		j := testkit.NewFaultyJournal(nil)
		j.Pace(s.Yield())
		w := newWriter(t, j)
		came := make(chan string, 2)
		j.Append(w.key, w.expect, batch(t), func(persistence.Appended, error) { came <- "answer" })
		s.Go(func(func()) { came <- "client" })
		first[<-came]++
		<-came
		require.NoError(t, j.Close())
	})
	if os.Getenv(testkit.SeedVariable) == "" {
		require.Greater(t, first["answer"], 5)
		require.Greater(t, first["client"], 5)
	}
}

// faulty is the variable that lets the tests of failures fail; only a process of their own sees it.
const faulty = "CORREX_TEST_FAULT"

func TestExploreFaults(t *testing.T) {
	t.Parallel()
	switch os.Getenv(faulty) {
	case "lost":
		testkit.Explore(t, 100, func(t *testing.T, s *testkit.Schedule) { require.Equal(t, 2, lostUpdate(t, s)) })
	case "stuck":
		testkit.Explore(t, 100, func(*testing.T, *testkit.Schedule) { <-make(chan struct{}) })
	case "panic":
		testkit.Explore(t, 100, func(_ *testing.T, s *testkit.Schedule) {
			s.Go(func(func()) { panic("boom") })
			s.Wait()
		})
	}
}

func TestAFailureTellsItsSeedAndTheSeedPlaysItAgain(t *testing.T) {
	t.Parallel()
	out := failing(t, "TestExploreFaults", "lost")
	require.Contains(t, out, "expected: 2")
	require.Contains(t, out, "register 2: testkit_test.read")
	_, rest, found := strings.Cut(out, testkit.SeedVariable+"=")
	require.True(t, found, out)
	seed, _, _ := strings.Cut(rest, " ")
	again := failing(t, "TestExploreFaults", "lost", testkit.SeedVariable+"="+seed)
	require.Equal(t, steps(out), steps(again))
	require.Contains(t, again, "seed="+seed)

	require.Contains(t, failing(t, "TestExploreFaults", "stuck"), testkit.SeedVariable+"=1 ")
	require.Contains(t, failing(t, "TestExploreFaults", "panic"), "a client panicked: boom")
	require.Contains(t, failing(t, "TestExploreFaults", "lost", testkit.SeedVariable+"=x"), "is not a seed")
}

// failing runs a test in a process of its own, where it must fail, and gives what it printed.
func failing(t *testing.T, test, fault string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(append(os.Environ(), faulty+"="+fault), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	return string(out)
}

func steps(out string) string {
	_, rest, _ := strings.Cut(out, "its last steps")
	story, _, _ := strings.Cut(rest, "--- ")
	return story
}
