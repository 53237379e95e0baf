package kernel

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The three implementations run in the same benchmark, so that their ratios can be read from one run.

// counter closes done after n messages.
type counter struct {
	left int
	done chan struct{}
}

// Receive implements actor.Actor.
func (c *counter) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*ping); ok {
		if c.left--; c.left == 0 {
			close(c.done)
		}
	}
}

func BenchmarkTell(b *testing.B) {
	msg := &ping{}
	b.Run("kernel", func(b *testing.B) {
		s := New(Config{})
		c := &counter{left: b.N, done: make(chan struct{})}
		pid, _ := s.Spawn(s.Props(func() actor.Actor { return c }, PropsOptions{MailboxLimit: -1}))
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			s.Tell(pid, msg)
		}
		<-c.done
		b.StopTimer()
		_ = s.Shutdown(context.Background())
	})
	b.Run("stock", func(b *testing.B) {
		stock := newStock()
		c := &counter{left: b.N, done: make(chan struct{})}
		pid := stock.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			stock.Root.Send(pid, msg)
		}
		<-c.done
	})
	b.Run("channel", func(b *testing.B) {
		in, done := make(chan any, 1024), make(chan struct{})
		go func() {
			for range b.N {
				<-in
			}
			close(done)
		}()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			in <- msg
		}
		<-done
	})
}

// player returns every ball until it has seen n.
type player struct {
	left int
	done chan struct{}
}

// Receive implements actor.Actor.
func (p *player) Receive(ctx actor.Context) {
	if ball, ok := ctx.Message().(*ping); ok {
		ctx.Request(ctx.Sender(), ball)
		if p.left--; p.left == 0 {
			close(p.done)
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	play := func(b *testing.B, spawn func(actor.Producer) *actor.PID, root *actor.RootContext) {
		b.Helper()
		done := make(chan struct{})
		left := spawn(func() actor.Actor { return &player{left: b.N, done: done} })
		right := spawn(func() actor.Actor { return &player{left: -1} })
		b.ReportAllocs()
		b.ResetTimer()
		root.RequestWithCustomSender(left, &ping{}, right)
		<-done
		b.StopTimer()
		root.Stop(left)
		root.Stop(right)
	}
	b.Run("kernel", func(b *testing.B) {
		s := New(Config{})
		play(b, func(p actor.Producer) *actor.PID {
			pid, _ := s.Spawn(s.Props(p, PropsOptions{}))
			return pid
		}, s.Root())
		_ = s.Shutdown(context.Background())
	})
	b.Run("stock", func(b *testing.B) {
		stock := newStock()
		play(b, func(p actor.Producer) *actor.PID { return stock.Root.Spawn(actor.PropsFromProducer(p)) }, stock.Root)
	})
	b.Run("channel", func(b *testing.B) {
		left, right := make(chan any), make(chan any)
		go func() {
			for ball := range left {
				right <- ball
			}
		}()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			left <- &ping{}
			<-right
		}
		close(left)
	})
}

func answer(ctx actor.Context) {
	if msg, ok := ctx.Message().(*ping); ok {
		ctx.Respond(msg)
	}
}

func BenchmarkAsk(b *testing.B) {
	msg := &ping{}
	b.Run("kernel", func(b *testing.B) {
		s := New(Config{})
		pid, _ := s.Spawn(s.Props(func() actor.Actor { return actor.ReceiveFunc(answer) }, PropsOptions{}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if _, err := s.Ask(ctx, pid, msg); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		_ = s.Shutdown(context.Background())
	})
	b.Run("stock", func(b *testing.B) {
		stock := newStock()
		pid := stock.Root.Spawn(actor.PropsFromFunc(answer))
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if _, err := stock.Root.RequestFuture(pid, msg, time.Hour).Result(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("channel", func(b *testing.B) {
		type question struct{ reply chan any }
		in := make(chan question)
		go func() {
			for q := range in {
				q.reply <- msg
			}
		}()
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			q := question{make(chan any, 1)}
			in <- q
			<-q.reply
		}
		close(in)
	})
}

func BenchmarkSpawnAndStop(b *testing.B) {
	b.Run("kernel", func(b *testing.B) {
		s := New(Config{})
		props := s.Props(func() actor.Actor { return actor.ReceiveFunc(answer) }, PropsOptions{})
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			pid, _ := s.Spawn(props)
			_ = s.Stop(context.Background(), pid)
		}
		b.StopTimer()
		_ = s.Shutdown(context.Background())
	})
	b.Run("stock", func(b *testing.B) {
		stock := newStock()
		props := actor.PropsFromFunc(answer)
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			_ = stock.Root.StopFuture(stock.Root.Spawn(props)).Wait()
		}
	})
}
