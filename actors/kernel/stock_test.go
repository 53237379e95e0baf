package kernel

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// The tests of this file show each defect of protoactor that the kernel cures: first on the stock part, then on ours.
// Their numbers are those of the review of protoactor that docs and commits refer to. When a stock half fails, protoactor has
// been mended and the cure may go.

func newStock() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// settleStock lets the goroutine end that logs dead letters a second late.
func settleStock() { time.Sleep(2 * time.Second) }

func TestDefect1SendDuringSpawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []any
		receive := actor.ReceiveFunc(func(ctx actor.Context) { seen = append(seen, ctx.Message()) })
		sendEarly := actor.WithOnInit(func(ctx actor.Context) { // the window of the race, without the race
			ctx.ActorSystem().Root.Send(ctx.Self(), ping{})
		})

		stock := newStock()
		require.Panics(t, func() { stock.Root.Spawn(actor.PropsFromFunc(receive, sendEarly)) }, "in the sender's goroutine")
		require.Empty(t, seen)

		s := newSystem(t)
		_, err := s.Spawn(s.Props(func() actor.Actor { return receive }, PropsOptions{}).Configure(sendEarly))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []any{&actor.Started{}, ping{}}, seen)
	})
}

// panicIn panics when it gets a message of type M, and counts its starts.
func panicIn[M any](starts *atomic.Int32) actor.ReceiveFunc {
	return func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			starts.Add(1)
		case M:
			panic("while ending")
		}
	}
}

func TestDefect2PanicInStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		stock := newStock()
		pid := stock.Root.Spawn(actor.PropsFromFunc(panicIn[*actor.Stopping](&starts)))
		stock.Root.Stop(pid)
		synctest.Wait()
		require.EqualValues(t, 2, starts.Load(), "it lives again")
		_, registered := stock.ProcessRegistry.GetLocal(pid.Id)
		require.True(t, registered)

		starts.Store(0)
		s := newSystem(t)
		require.NoError(t, s.Stop(t.Context(), spawnFunc(t, s, panicIn[*actor.Stopping](&starts))))
		require.EqualValues(t, 1, starts.Load())
	})
}

// parentOf starts one child.
func parentOf(child *actor.Props) actor.ReceiveFunc {
	return func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			ctx.Spawn(child)
		}
		echo(ctx)
	}
}

func TestDefect3PanicInStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		child := panicIn[*actor.Stopped](&starts)
		stock := newStock()
		parent := stock.Root.Spawn(actor.PropsFromFunc(parentOf(actor.PropsFromFunc(child))))
		require.ErrorIs(t, stock.Root.StopFuture(parent).Wait(), actor.ErrTimeout, "the parent is never told")

		s := newSystem(t)
		props := s.Props(func() actor.Actor { return child }, PropsOptions{})
		require.NoError(t, s.Stop(t.Context(), spawnFunc(t, s, parentOf(props))))
	})
}

// slowToStop blocks in Stopping until the channel is closed.
func slowToStop(until chan struct{}) actor.ReceiveFunc {
	return func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Stopping); ok {
			<-until
		}
	}
}

func TestDefect4UserMessageAfterStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		stock := newStock()
		parent := stock.Root.Spawn(actor.PropsFromFunc(parentOf(actor.PropsFromFunc(slowToStop(until)))))
		stock.Root.Stop(parent)
		synctest.Wait()
		answer, err := stock.Root.RequestFuture(parent, ping{1}, time.Second).Result()
		require.NoError(t, err)
		require.Equal(t, pong{1}, answer, "handled after Stopping")
		close(until)

		until = make(chan struct{})
		s := newSystem(t)
		props := s.Props(func() actor.Actor { return slowToStop(until) }, PropsOptions{})
		parent = spawnFunc(t, s, parentOf(props))
		s.as.Root.Stop(parent)
		synctest.Wait()
		_, err = s.Ask(t.Context(), parent, ping{})
		require.ErrorIs(t, err, ErrStopped)
		sender, got := probe(t, s)
		s.TellAs(parent, ping{2}, sender)
		s.TellAs(parent, urgent{3}, sender)
		synctest.Wait()
		require.Equal(t, []any{
			&Refusal{Message: ping{2}, Err: ErrStopped},
			&Refusal{Message: urgent{3}, Err: ErrStopped},
		}, got.all())
		close(until)
	})
}

func TestDefect5QueueDroppedAtStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const asks = 10
		until := make(chan struct{})
		stock := newStock()
		pid := stock.Root.Spawn(actor.PropsFromFunc(echo))
		stock.Root.Send(pid, wedge{until})
		futures := make([]*actor.Future, asks)
		for n := range futures {
			futures[n] = stock.Root.RequestFuture(pid, ping{n}, time.Minute)
		}
		stock.Root.Stop(pid)
		close(until)
		for _, f := range futures {
			require.ErrorIs(t, f.Wait(), actor.ErrTimeout)
		}

		until = make(chan struct{})
		s := newSystem(t)
		pid = spawnFunc(t, s, echo)
		s.Tell(pid, wedge{until})
		synctest.Wait()
		begin := time.Now()
		errs := make(chan error, asks)
		for n := range asks {
			go func() {
				_, err := s.Ask(t.Context(), pid, ping{n})
				errs <- err
			}()
		}
		synctest.Wait()
		s.as.Root.Stop(pid)
		close(until)
		for range asks {
			require.ErrorIs(t, <-errs, ErrStopped)
		}
		require.Zero(t, time.Since(begin))
		requireNoAsks(t, s)
	})
}

func TestDefect8SecondAnswerOverwrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stock := newStock()
		future := actor.NewFuture(stock, time.Minute)
		stock.Root.Send(future.PID(), "first")
		answer, err := future.Result()
		require.NoError(t, err)
		require.Equal(t, "first", answer)
		stock.Root.Send(future.PID(), "second")
		answer, _ = future.Result()
		require.Equal(t, "second", answer)

		s := newSystem(t)
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				ctx.Respond("first")
				ctx.Respond("second")
				s.After(time.Hour, ctx.Sender(), "late")
			}
		})
		answer, err = s.Ask(t.Context(), pid, ping{})
		require.NoError(t, err)
		require.Equal(t, "first", answer)
		time.Sleep(2 * time.Hour)
		requireNoAsks(t, s)
	})
}

func TestDefect9ReceiveTimeoutFiresOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ticks atomic.Int32
		stock := newStock()
		stock.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.SetReceiveTimeout(time.Minute)
			case *actor.ReceiveTimeout:
				ticks.Add(1)
			}
		}))
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, ticks.Load())

		ticks.Store(0)
		s := newSystem(t)
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				s.After(time.Minute, ctx.Self(), ping{})
			case ping:
				ticks.Add(1)
				s.After(time.Minute, ctx.Self(), ping{})
			}
		})
		time.Sleep(time.Hour + time.Second)
		require.EqualValues(t, 60, ticks.Load())
		require.NoError(t, s.Stop(t.Context(), pid))
	})
}

func TestDefect11FullMailboxBlocksTheSender(t *testing.T) {
	t.Parallel()
	const limit = 8
	stock := newStock()
	started, until := make(chan struct{}), make(chan struct{})
	pid := stock.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if msg, ok := ctx.Message().(wedge); ok {
			close(started)
			<-msg.until
		}
	}, actor.WithMailbox(actor.Bounded(limit))))
	stock.Root.Send(pid, wedge{until})
	<-started
	var sent atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range limit + 1 {
			stock.Root.Send(pid, ping{})
			sent.Add(1)
		}
	}()
	for sent.Load() < limit {
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
	}
	require.EqualValues(t, limit, sent.Load(), "the last one spins")
	close(until)
	<-done

	// An actor that fills its own mailbox would spin for ever in stock.
	s := newSystem(t)
	var handled, refused atomic.Int32
	filled := make(chan struct{})
	pid = spawnWith(t, s, func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case boom:
			for n := range 20 {
				ctx.Request(ctx.Self(), ping{n})
			}
			close(filled)
		case ping:
			handled.Add(1)
		case *Refusal:
			refused.Add(1)
		}
	}, PropsOptions{MailboxLimit: limit})
	s.Tell(pid, boom{})
	<-filled
	require.NoError(t, s.Poison(t.Context(), pid))
	require.EqualValues(t, limit, handled.Load())
	require.EqualValues(t, 20-limit, refused.Load())
}

func TestDefect13ShutdownStopsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stock := newStock()
		pid := stock.Root.Spawn(actor.PropsFromFunc(echo))
		stock.Shutdown()
		answer, err := stock.Root.RequestFuture(pid, ping{1}, time.Second).Result()
		require.NoError(t, err)
		require.Equal(t, pong{1}, answer)
		require.Panics(t, stock.Shutdown)

		s := New(Config{})
		pid = spawnFunc(t, s, echo)
		shutdown(t, s)
		_, err = s.Ask(t.Context(), pid, ping{})
		require.ErrorIs(t, err, ErrStopped)
		shutdown(t, s)
	})
}

func TestDefect14BackoffIsLinearAndNeverGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const failures = 30
		last, delays := time.Now(), []time.Duration(nil)
		failing := actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok && len(delays) < failures {
				delays = append(delays, time.Since(last).Truncate(time.Second))
				last = time.Now()
				panic("boom")
			}
		})
		stock := newStock()
		strategy := actor.NewExponentialBackoffStrategy(time.Hour, time.Second)
		pid := stock.Root.Spawn(actor.PropsFromFunc(failing, actor.WithGuardian(strategy)))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, delays, failures, "it never gives up")
		require.Equal(t, []time.Duration{0, 1e9, 2e9, 3e9, 4e9, 5e9}, delays[:6], "linear")
		stock.Root.Stop(pid)
		settleStock()

		last, delays = time.Now(), nil
		ended := false
		s := New(Config{Supervisor: Backoff{Min: time.Second, Max: 10 * time.Second, Jitter: -1, Limit: 6, Window: time.Hour}})
		t.Cleanup(func() { shutdown(t, s) })
		spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				ended = true
			}
			failing(ctx)
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 1e9, 2e9, 4e9, 8e9, 10e9, 10e9}, delays)
		require.True(t, ended, fmt.Sprint(delays))
	})
}
