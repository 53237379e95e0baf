package kernel

import (
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// guard wraps an actor so that a panic in the last handlers of an incarnation cannot keep it from ending: protoactor would
// bring an actor that panics in Stopping back to life, and forget to tell the watchers of one that panics in Stopped.
//
// It wraps the actor rather than being a receiver middleware, because a middleware costs an envelope for every message.
type guard struct {
	actor.Actor

	sys     *System
	leaving bool // Restarting or Stopping was seen
}

// supervisingGuard is a guard for actors that are their children's strategy themselves; protoactor asks for the interface.
type supervisingGuard struct {
	*guard
	actor.SupervisorStrategy
}

func (s *System) guardedProducer(producer actor.Producer) actor.Producer {
	return func() actor.Actor {
		inner := producer()
		g := &guard{Actor: inner, sys: s}
		if strategy, ok := inner.(actor.SupervisorStrategy); ok {
			return &supervisingGuard{guard: g, SupervisorStrategy: contained{inner: strategy, log: s.log}}
		}
		return g
	}
}

// Unwrap gives the actor that the producer made. ctx.Actor() is the kernel's wrapper of it.
func Unwrap(a actor.Actor) actor.Actor {
	switch a := a.(type) {
	case *guard:
		return a.Actor
	case *supervisingGuard:
		return a.Actor
	}
	return a
}

// Receive implements actor.Actor.
func (g *guard) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Restarting, *actor.Stopping, *actor.Stopped:
		g.leaving = true
		g.contain(ctx)
	case *actor.Terminated:
		if g.leaving { // the last child's end is what ends or restarts the actor
			g.contain(ctx)
			return
		}
		g.Actor.Receive(ctx)
	default:
		g.Actor.Receive(ctx)
	}
}

func (g *guard) contain(ctx actor.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			g.sys.log.Error("actor panicked while ending", slog.String(keyActor, ctx.Self().GetId()),
				slog.Any(keyReason, reason), slog.String(keyStack, string(debug.Stack())))
		}
	}()
	g.Actor.Receive(ctx)
}
