package kernel

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// Every message is handled or refused, whatever its sender races with.
func TestNoMessageIsLostWhenActorsStop(t *testing.T) {
	t.Parallel()
	const rounds, senders, each = 40, 4, 50
	s := newSystem(t)
	var handled, refused atomic.Int64
	sender := spawnFunc(t, s, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Refusal); ok {
			refused.Add(1)
		}
	})
	for round := range rounds {
		pid := spawnWith(t, s, func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case ping, urgent:
				handled.Add(1)
			}
		}, PropsOptions{MailboxLimit: 20})
		var wg sync.WaitGroup
		for n := range senders {
			wg.Go(func() {
				for i := range each {
					if n == 0 && i == round {
						s.as.Root.Stop(pid)
					}
					s.TellAs(pid, []any{ping{i}, ping{i}, urgent{i}}[i%3], sender)
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Stop(t.Context(), pid))
	}
	require.NoError(t, s.Poison(t.Context(), sender))
	require.EqualValues(t, rounds*senders*each, handled.Load()+refused.Load())
}

// Senders that know a name before its actor exists harm neither themselves nor the actor.
func TestSpawnByNameUnderFire(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	var fresh, wrong atomic.Int64
	props := s.Props(func() actor.Actor {
		started := false
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				started = true
				fresh.Add(1)
			case *actor.Stopping, *actor.Stopped, ping:
				if !started {
					wrong.Add(1)
				}
			}
		})
	}, PropsOptions{})
	const actors = 500
	done := make(chan struct{})
	var current atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					pid := s.as.NewLocalPID(fmt.Sprint("victim", current.Load()))
					s.Tell(pid, ping{})
					s.as.Root.Stop(pid)
				}
			}
		})
	}
	for n := range actors {
		current.Store(int64(n))
		pid, err := s.as.Root.SpawnNamed(props, fmt.Sprint("victim", n))
		require.NoError(t, err)
		require.NoError(t, s.Stop(t.Context(), pid))
	}
	close(done)
	wg.Wait()
	require.EqualValues(t, actors, fresh.Load())
	require.Zero(t, wrong.Load(), "handled before Started")
}

// Asks against actors that come, fail and go all end.
func TestAsksAlwaysEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Supervisor: Backoff{Limit: 3}})
		t.Cleanup(func() { shutdown(t, s) })
		var wg sync.WaitGroup
		for range 30 {
			pid := spawnFunc(t, s, echo)
			for i := range 20 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					msg := []any{ping{i}, boom{}, deferIt{}, ping{i}}[i%4]
					answer, err := s.Ask(t.Context(), pid, msg)
					if err == nil && answer != (pong{i}) {
						panic("wrong answer")
					}
				})
			}
			wg.Go(func() {
				time.Sleep(15 * time.Millisecond)
				s.as.Root.Stop(pid)
			})
		}
		wg.Wait()
		requireNoAsks(t, s)
	})
}

func TestShutdownUnderFire(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				pid, err := s.Spawn(s.Props(func() actor.Actor { return actor.ReceiveFunc(echo) }, PropsOptions{}))
				if err != nil {
					return
				}
				_, _ = s.Ask(t.Context(), pid, ping{})
				s.Tell(pid, boom{})
			}
		})
	}
	for range 100 {
		spawnWithin(s)
	}
	wg.Go(func() { shutdown(t, s) })
	shutdown(t, s)
	wg.Wait()
	requireNoAsks(t, s)
}

// spawnWithin spawns an actor with a child of its own.
func spawnWithin(s *System) {
	child := s.Props(func() actor.Actor { return actor.ReceiveFunc(echo) }, PropsOptions{})
	_, _ = s.Spawn(s.Props(func() actor.Actor { return parentOf(child) }, PropsOptions{}))
}

func TestPoolKeepsAndReleasesWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		var ran atomic.Int32
		for range 5 {
			p.Schedule(func() { time.Sleep(time.Second); ran.Add(1) })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, p.idle, 2)
		empty := p.Close()
		<-empty
		p.Schedule(func() { ran.Add(1) })
		synctest.Wait()
		require.EqualValues(t, 6, ran.Load())
		require.Zero(t, p.workers)
		<-p.Close()
	})
}

func TestLaneAgainstASlice(t *testing.T) {
	t.Parallel()
	var l lane[int]
	var want []int
	for n := range 5000 {
		switch {
		case n%7 < 4:
			l.push(n)
			want = append(want, n)
		case n%7 == 4:
			l.pushFront(n)
			want = append([]int{n}, want...)
		case n%701 == 0:
			require.Equal(t, want, l.take())
			want = nil
		case len(want) > 0:
			require.Equal(t, want[0], l.pop())
			want = want[1:]
		}
		require.Equal(t, len(want), l.n)
	}
}
