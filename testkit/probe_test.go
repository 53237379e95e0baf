package testkit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

type question struct{ n int }

// inSystem runs f with an actor system in a bubble.
func inSystem(t *testing.T, f func(t *testing.T, sys *kernel.System)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sys := kernel.New(kernel.Config{})
		defer func() { require.NoError(t, sys.Shutdown(t.Context())) }()
		f(t, sys)
	})
}

func TestProbeGivesWhatCameInOrder(t *testing.T) {
	t.Parallel()
	inSystem(t, func(t *testing.T, sys *kernel.System) {
		echo, err := sys.Spawn(sys.Props(func() actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if q, ok := ctx.Message().(question); ok {
					ctx.Respond(q.n)
				}
			})
		}, kernel.PropsOptions{}))
		require.NoError(t, err)
		p := testkit.NewProbe(t, sys)
		for n := range 5 {
			p.Tell(echo, question{n})
		}
		require.Equal(t, 0, testkit.Expect[int](p))
		require.Equal(t, 3, testkit.ExpectMatching(p, func(n int) bool { return n == 3 }))
		synctest.Wait()
		require.Equal(t, []any{4}, p.Pending())
		require.Equal(t, 4, testkit.ExpectMatching[int](p, nil))
		p.ExpectNone(time.Hour)

		sys.After(time.Second, p.PID(), "late")
		require.Equal(t, "late", testkit.Expect[string](p))

		p.Watch(echo)
		require.NoError(t, sys.Stop(t.Context(), echo))
		p.ExpectTerminated(echo)
		p.Tell(echo, question{})
		require.ErrorIs(t, testkit.Expect[*kernel.Refusal](p).Err, kernel.ErrStopped)
	})
}

func TestProbeRepliesToTheSender(t *testing.T) {
	t.Parallel()
	inSystem(t, func(t *testing.T, sys *kernel.System) {
		p := testkit.NewProbe(t, sys)
		answer := make(chan any, 1)
		go func() {
			got, _ := sys.Ask(t.Context(), p.PID(), question{1})
			answer <- got
		}()
		testkit.Expect[question](p)
		p.Reply("yes")
		require.Equal(t, "yes", <-answer)
	})
}

func TestProbeTellsWhatCameInstead(t *testing.T) {
	t.Parallel()
	inSystem(t, func(t *testing.T, sys *kernel.System) {
		fake := newFakeTB(t)
		p := testkit.NewProbe(fake, sys)
		require.Contains(t, fake.fails(func() { testkit.Expect[int](p) }), "want a int, nothing came in 5s\nthe probe got nothing at all")
		sys.Tell(p.PID(), 1)
		sys.Tell(p.PID(), &messages.Notice{Text: "hello"})
		sys.Tell(p.PID(), question{2})
		synctest.Wait()
		testkit.Expect[int](p)
		text := fake.fails(func() { testkit.Expect[string](p) })
		require.Contains(t, text, "want a string, got a *messages.Notice")
		require.Regexp(t, `1\. \+0s int 1 \(expected\)\n  2\. \+0s \*messages\.Notice \{ *"text": *"hello" *\} \(this one\)\n  3\. `+
			`\+0s testkit_test\.question \{n:2\} \(waiting\)`, text)
		require.Contains(t, fake.fails(func() { p.ExpectNone(0) }), "want no message for 0s, got a testkit_test.question")
		require.Contains(t, fake.fails(func() { testkit.ExpectMatching[int](p, nil) }), "none came in 5s")
		sys.Tell(p.PID(), "nobody")
		testkit.Expect[string](p)
		require.Contains(t, fake.fails(func() { p.Reply(1) }), "nobody to reply to")
	})
}
