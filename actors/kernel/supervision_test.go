package kernel

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

func TestFailedActorHandlesNothingDuringTheDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Supervisor: Backoff{Min: time.Minute, Jitter: -1}})
		t.Cleanup(func() { shutdown(t, s) })
		rec := newRecorder()
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch msg := ctx.Message().(type) {
			case *actor.Restarting, *actor.Started, ping, urgent:
				rec.add(msg)
			case boom:
				panic("boom")
			}
		})
		s.Tell(pid, boom{})
		synctest.Wait()
		s.Tell(pid, ping{1})
		s.Tell(pid, urgent{2})
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Equal(t, []any{&actor.Started{}}, rec.all())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []any{&actor.Restarting{}, &actor.Started{}, urgent{2}, ping{1}}, rec.all())
	})
}

func TestStoppedDuringTheDelayStaysStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Supervisor: Backoff{Min: time.Minute}})
		t.Cleanup(func() { shutdown(t, s) })
		var starts atomic.Int32
		until := make(chan struct{})
		child := s.Props(func() actor.Actor { return slowToStop(until) }, PropsOptions{})
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				starts.Add(1)
				ctx.Spawn(child)
			case boom:
				panic("boom")
			}
		})
		s.Tell(pid, boom{})
		s.Tell(pid, ping{}) // waits for the restart that never comes
		synctest.Wait()
		s.as.Root.Stop(pid)
		time.Sleep(time.Hour) // the restart comes while it waits for its child
		close(until)
		require.NoError(t, s.Stop(t.Context(), pid))
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, starts.Load())
	})
}

func TestOnFailureIsToldAndContained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var restarts []int
		var reasons []any
		s := New(Config{Supervisor: Backoff{
			Limit: 2,
			Rand:  func() float64 { return 0.5 },
			OnFailure: func(_ *actor.PID, reason any, n int) {
				restarts, reasons = append(restarts, n), append(reasons, reason)
				panic("callback")
			},
		}})
		t.Cleanup(func() { shutdown(t, s) })
		pid := spawnFunc(t, s, echo)
		for range 3 {
			_, err := s.Ask(t.Context(), pid, boom{})
			require.ErrorIs(t, err, ErrFailed)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, restarts)
		require.Equal(t, []any{"boom", "boom", "boom"}, reasons)
		_, err := s.Ask(t.Context(), pid, ping{})
		require.ErrorIs(t, err, ErrStopped)
	})
}

func TestFailuresOutsideTheWindowAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Supervisor: Backoff{Limit: 2, Window: time.Minute}})
		t.Cleanup(func() { shutdown(t, s) })
		pid := spawnFunc(t, s, echo)
		for range 500 {
			s.Tell(pid, boom{})
			time.Sleep(31 * time.Second)
		}
		answer, err := s.Ask(t.Context(), pid, ping{1})
		require.NoError(t, err)
		require.Equal(t, pong{1}, answer)
	})
}

func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rand     float64
		restarts int
		want     time.Duration
	}{
		{0.5, 0, 100 * time.Millisecond},
		{0, 0, 80 * time.Millisecond},
		{0.75, 1, 220 * time.Millisecond},
		{0.5, 4, 1600 * time.Millisecond},
		{0.5, 5000, 30 * time.Second},
		{0.99, 5000, 30 * time.Second},
	} {
		b := Backoff{Rand: func() float64 { return tt.rand }}.withDefaults()
		require.InDelta(t, tt.want, b.delay(tt.restarts), float64(time.Microsecond), "%+v", tt)
	}
}

type panickingStrategy struct{}

func (panickingStrategy) HandleFailure(
	*actor.ActorSystem, actor.Supervisor, *actor.PID, *actor.RestartStatistics, any, any,
) {
	panic("strategy")
}

// strategist supervises its children itself.
type strategist struct {
	panickingStrategy
	actor.ReceiveFunc
}

func TestPanicInTheStrategyStopsTheChild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		children := make(chan *actor.PID, 2)
		parent := func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				children <- ctx.Spawn(s.Props(func() actor.Actor { return actor.ReceiveFunc(echo) }, PropsOptions{}))
			}
			echo(ctx)
		}
		byOption := spawnWith(t, s, parent, PropsOptions{Supervisor: panickingStrategy{}})
		own, err := s.Spawn(s.Props(func() actor.Actor { return &strategist{ReceiveFunc: parent} }, PropsOptions{}))
		require.NoError(t, err)
		for range 2 {
			child := <-children
			_, err := s.Ask(t.Context(), child, boom{})
			require.ErrorIs(t, err, ErrFailed)
			_, err = s.Ask(t.Context(), child, ping{})
			require.ErrorIs(t, err, ErrStopped)
		}
		for _, pid := range []*actor.PID{byOption, own} {
			_, err := s.Ask(t.Context(), pid, ping{})
			require.NoError(t, err, "the parent has not failed")
		}
	})
}

func TestUnwrapGivesTheProducedActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		inner := &strategist{ReceiveFunc: func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				ctx.Respond(Unwrap(ctx.Actor()))
			}
		}}
		pid, err := s.Spawn(s.Props(func() actor.Actor { return inner }, PropsOptions{}))
		require.NoError(t, err)
		answer, err := s.Ask(t.Context(), pid, ping{})
		require.NoError(t, err)
		require.Same(t, inner, answer)
	})
}

func TestPanicInTerminatedWhileStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		child := s.Props(func() actor.Actor { return actor.ReceiveFunc(echo) }, PropsOptions{})
		var starts atomic.Int32
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				starts.Add(1)
				ctx.Spawn(child)
			case *actor.Terminated:
				panic("child is gone")
			}
		})
		require.NoError(t, s.Stop(t.Context(), pid))
		require.EqualValues(t, 1, starts.Load())
	})
}

func TestSpawnReturnsThePanicOfTheProducer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		_, err := s.Spawn(s.Props(func() actor.Actor { panic("no memory") }, PropsOptions{}))
		require.EqualError(t, err, "spawn: producer panicked: no memory")
		_, err = s.Ask(t.Context(), spawnFunc(t, s, echo), ping{})
		require.NoError(t, err)
	})
}

// A failed require in an actor ends its goroutine; the actor must not hang with it.
func TestGoexitInAHandlerIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(boom); ok {
				runtime.Goexit()
			}
			echo(ctx)
		})
		_, err := s.Ask(t.Context(), pid, boom{})
		require.ErrorIs(t, err, ErrFailed)
		answer, err := s.Ask(t.Context(), pid, ping{1})
		require.NoError(t, err)
		require.Equal(t, pong{1}, answer)
	})
}

func TestAskEndsWhenTheActorKeepsTheQuestionAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		pid := spawnFunc(t, s, echo) // answers ping only
		errs := make(chan error, 100)
		ask := func(to *actor.PID) {
			_, err := s.Ask(t.Context(), to, deferIt{})
			errs <- err
		}
		for range cap(errs) {
			go ask(pid)
		}
		synctest.Wait()
		require.NoError(t, s.Stop(t.Context(), pid))
		for range cap(errs) {
			require.ErrorIs(t, <-errs, ErrStopped)
		}

		pid = spawnFunc(t, s, echo)
		go ask(pid)
		synctest.Wait()
		s.Tell(pid, boom{})
		require.ErrorIs(t, <-errs, ErrFailed, "the restart forgets the question")
	})
}

func TestAskFollowsAForwardedQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		target := spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				s.After(time.Minute, ctx.Sender(), pong{5})
			}
		})
		router := spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				ctx.Forward(target)
			}
		})
		answers := make(chan any, 1)
		go func() {
			answer, err := s.Ask(t.Context(), router, ping{})
			if err != nil {
				answer = err
			}
			answers <- answer
		}()
		synctest.Wait()
		require.NoError(t, s.Stop(t.Context(), router))
		require.Equal(t, pong{5}, <-answers)
	})
}

func TestWatchOfAnEndedActorIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		gone := spawnFunc(t, s, echo)
		require.NoError(t, s.Stop(t.Context(), gone))
		told := make(chan *actor.PID, 1)
		spawnFunc(t, s, func(ctx actor.Context) {
			switch msg := ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(gone)
			case *actor.Terminated:
				told <- msg.Who
			}
		})
		require.Equal(t, gone.Id, (<-told).Id)
	})
}
