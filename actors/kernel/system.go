package kernel

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	defaultMailboxLimit   = 10_000
	defaultMaxIdleWorkers = 256

	// localAddress is the address of PIDs in a system without a remote.
	localAddress = "nonhost"
	rootName     = "kernel"

	keyActor     = "actor"
	keyComponent = "component"
	keyReason    = "reason"
	keyStack     = "stack"
	keyDirective = "directive"
	keyType      = "type"
)

// Config says how a System is set up. The zero value is usable.
type Config struct {
	// Logger takes the kernel's and protoactor's log; nil = none.
	Logger *slog.Logger
	// MailboxLimit is the number of user messages that may wait in one mailbox; 0 = 10_000, negative = no limit.
	MailboxLimit int
	// MaxIdleWorkers is the number of goroutines kept for reuse while they have nothing to do; 0 = 256.
	MaxIdleWorkers int
	// Supervisor decides about top-level actors; nil = Backoff{}. An escalation stops the actor.
	Supervisor actor.SupervisorStrategy
	// Scheduler decides what runs next, one message at a time, in place of the pool; nil = the pool. For tests: it costs the
	// use of more than one core.
	Scheduler Scheduler
}

// System is one actor system with a root supervisor and a goroutine pool of its own.
type System struct {
	as     *actor.ActorSystem
	pool   *pool
	root   *actor.PID
	log    *slog.Logger
	limit  int
	closed atomic.Bool

	scheduler Scheduler // nil = the pool
}

// New starts a system. End it with Shutdown.
func New(cfg Config) *System {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&cfg.MailboxLimit, defaultMailboxLimit)
	setDefault(&cfg.MaxIdleWorkers, defaultMaxIdleWorkers)
	if cfg.Supervisor == nil {
		cfg.Supervisor = Backoff{}
	}
	s := &System{
		log:   cfg.Logger.With(slog.String(keyComponent, "kernel")),
		limit: cfg.MailboxLimit,
		pool:  newPool(cfg.MaxIdleWorkers),

		scheduler: cfg.Scheduler,
	}
	protoLog := cfg.Logger.With(slog.String(keyComponent, "protoactor"))
	s.as = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return protoLog }))
	s.useOwnEventStream()
	props := s.Props(newRoot, PropsOptions{MailboxLimit: -1}).
		Configure(actor.WithSupervisor(topmost{contained{inner: cfg.Supervisor, log: s.log}}))
	root, err := s.as.Root.SpawnNamed(props, rootName)
	if err != nil {
		panic("unreachable: the registry of a new system is not empty: " + err.Error())
	}
	s.root = root
	return s
}

// ActorSystem gives the protoactor system below, for remote and cluster.
func (s *System) ActorSystem() *actor.ActorSystem { return s.as }

// Root gives protoactor's root context. Do not spawn with it: such actors have no supervisor of ours and outlive Shutdown.
func (s *System) Root() *actor.RootContext { return s.as.Root }

// PropsOptions are the choices of one kind of actor.
type PropsOptions struct {
	// MailboxLimit bounds the user lane; 0 = Config.MailboxLimit, negative = no limit.
	MailboxLimit int
	// Supervisor decides about the children of this actor; nil = Backoff{}. It may escalate; a panic in it stops the child.
	Supervisor actor.SupervisorStrategy
}

// Props describes an actor with the kernel's mailbox, dispatcher, guard and supervisor. The producer must only allocate:
// it runs in the parent's Receive.
func (s *System) Props(producer actor.Producer, opts PropsOptions) *actor.Props {
	limit := opts.MailboxLimit
	setDefault(&limit, s.limit)
	supervisor := opts.Supervisor
	if supervisor == nil {
		supervisor = Backoff{}
	}
	return actor.PropsFromProducer(
		s.guardedProducer(producer),
		actor.WithMailbox(func() actor.Mailbox { return newMailbox(s, limit) }),
		actor.WithDispatcher(s.pool),
		actor.WithSupervisor(contained{inner: supervisor, log: s.log}),
	)
}

// Spawn starts a top-level actor under the root supervisor. All actors of the same Props form a group; Shutdown stops the
// groups in reverse order of their first Spawn. Errors: ErrStopped after Shutdown began; a panic of the producer.
func (s *System) Spawn(props *actor.Props) (*actor.PID, error) {
	return s.spawn(&spawnRequest{group: props, props: props})
}

// SpawnIn is Spawn into a named group, for actors with different Props that Shutdown may stop at the same time.
// A named group keeps its place in the order while it is empty.
func (s *System) SpawnIn(name string, props *actor.Props) (*actor.PID, error) {
	return s.spawn(&spawnRequest{group: name, props: props})
}

func (s *System) spawn(req *spawnRequest) (*actor.PID, error) {
	answer, err := s.Ask(context.Background(), s.root, req)
	if err != nil {
		return nil, err
	}
	pid, _ := answer.(*actor.PID)
	return pid, nil
}

// Tell sends msg without a sender. What cannot be taken becomes a dead letter.
func (s *System) Tell(to *actor.PID, msg any) { s.TellAs(to, msg, nil) }

// TellAs sends msg in the name of sender, who gets the answer or a Refusal.
func (s *System) TellAs(to *actor.PID, msg any, sender *actor.PID) {
	switch {
	case to == nil:
		s.refuse(nil, &actor.MessageEnvelope{Message: msg, Sender: sender}, ErrStopped)
	case sender == nil:
		s.as.Root.Send(to, msg)
	default:
		s.as.Root.RequestWithCustomSender(to, msg, sender)
	}
}

// After sends msg to an actor after d. The returned function prevents that, any number of times; a message that is in the
// mailbox already still comes, so let it carry a generation that the actor compares.
func (s *System) After(d time.Duration, to *actor.PID, msg any) (stop func()) {
	due := func() {
		if !s.closed.Load() {
			s.Tell(to, msg)
		}
	}
	if s.scheduler != nil {
		return s.afterInTurn(d, due, msg)
	}
	timer := time.AfterFunc(d, due)
	return func() { timer.Stop() }
}

// holdUserLane is taken by our mailbox at the moment it is posted.
type holdUserLane bool

// Hold keeps user messages of the actor waiting until Release; system and control messages still come. The mailbox's limit
// goes on. A restart releases. Call it from the actor's Receive (from elsewhere one message may still slip through).
func (s *System) Hold(self *actor.PID) { s.hold(self, true) }

// Release ends Hold.
func (s *System) Release(self *actor.PID) { s.hold(self, false) }

func (s *System) hold(pid *actor.PID, held bool) {
	if process, ok := s.as.ProcessRegistry.GetLocal(pid.Id); ok {
		process.SendSystemMessage(pid, holdUserLane(held))
	}
}

// Shutdown stops all actors, group by group in reverse order of their first Spawn, and then the goroutines of the pool.
// When ctx ends first, everything left is told to stop at once and the cause of ctx is returned. It may be called again,
// which waits again. Do not call it from an actor.
func (s *System) Shutdown(ctx context.Context) error {
	s.Tell(s.root, stopAll{})
	err := s.endAndWait(ctx, s.root, func(*actor.PID) {})
	if err != nil {
		s.as.Root.Stop(s.root)
	}
	empty := s.pool.Close()
	if s.closed.CompareAndSwap(false, true) {
		s.as.Shutdown()
	}
	if err != nil {
		return err
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
