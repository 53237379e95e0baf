package actors

import (
	"context"
	"iter"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
)

// SubscribeOptions say where a subscription begins.
type SubscribeOptions struct {
	// AfterSeq: nil = only new items, 0 = all that are kept.
	AfterSeq *uint64
	// Events: also wake EventsAdvanced items whenever the event log grows.
	Events bool
	// Limit bounds the items that wait for a slow reader; at the limit the subscription ends with ErrSlow. 0 = 4096.
	Limit int
}

// Item is what a subscription yields: *messages.DeliveryIntent, or a messages.Notification (*Gap, *Resync, *EventsAdvanced).
type Item any

// Subscription is a session's output on its way to one reader.
type Subscription struct {
	// Start is the session's answer.
	Start *messages.Subscribed

	sys   *kernel.System
	pid   *actor.PID
	inbox *inbox
}

// ErrSlow ends a subscription whose reader fell behind its limit; subscribe again with the last number seen.
var ErrSlow = messages.FailRetryable(messages.CodeUnavailable, "the reader is too slow; subscribe again after the last number seen")

const subscriptionLimit = 4096

// Subscribe follows a session's output. It makes a session that does not exist. Close the subscription when done.
func (c *Client) Subscribe(ctx context.Context, key messages.Key, opts SubscribeOptions) (*Subscription, error) {
	if err := key.Validate(); err != nil {
		return nil, messages.Fail(messages.CodeInvalidSessionID, err.Error())
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = subscriptionLimit
	}
	in := newInbox(limit)
	pid, err := c.sys.SpawnIn("subscriptions", c.sys.Props(func() actor.Actor { return in }, kernel.PropsOptions{MailboxLimit: -1}))
	if err != nil {
		return nil, messages.FailRetryable(messages.CodeDraining, "the server is shutting down")
	}
	sub := &Subscription{sys: c.sys, pid: pid, inbox: in}
	c.dir.Send(key, 0, &messages.Subscribe{AfterSeq: opts.AfterSeq, Events: opts.Events}, pid)
	first, err := in.next(ctx)
	if err != nil {
		sub.Close()
		return nil, err
	}
	switch answer := first.(type) {
	case *messages.Subscribed:
		sub.Start = answer
		return sub, nil
	case *messages.Failure:
		sub.Close()
		return nil, answer
	}
	sub.Close()
	return nil, messages.Fail(messages.CodeInternal, "unexpected answer to subscribe")
}

// Next waits for the next item. Errors: the cause of ctx, ErrSlow, a Failure when the session or the system ended.
func (s *Subscription) Next(ctx context.Context) (Item, error) { return s.inbox.next(ctx) }

// Items yields items until ctx ends or the subscription does; the last step has the error.
func (s *Subscription) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for {
			item, err := s.Next(ctx)
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription. It does not wait and may be called again.
func (s *Subscription) Close() {
	s.inbox.fail(messages.FailRetryable(messages.CodeUnavailable, "the subscription is closed"))
	s.sys.Root().Stop(s.pid)
}

// inbox is the subscriber's actor: it only puts what comes where the reader finds it.
type inbox struct {
	mu    sync.Mutex
	items []Item
	err   error
	limit int
	wake  chan struct{}
}

func newInbox(limit int) *inbox { return &inbox{limit: limit, wake: make(chan struct{}, 1)} }

// Receive implements actor.Actor.
func (in *inbox) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *session.Answer:
		in.put(m.Reply)
	case *messages.DeliveryIntent, *messages.Gap, *messages.Resync, *messages.EventsAdvanced:
		in.put(m)
	case *session.Lost:
		in.fail(messages.FailRetryable(messages.CodeUnavailable, "the session was restarted; subscribe again after the last number seen"))
	case *kernel.Refusal:
		if answer, ok := session.Refused(m); ok {
			in.put(answer.Reply)
		}
	case *actor.Stopping:
		in.fail(messages.FailRetryable(messages.CodeUnavailable, "the server is shutting down"))
	}
}

func (in *inbox) put(item Item) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.err != nil:
		return
	case len(in.items) >= in.limit:
		in.err = ErrSlow
	default:
		in.items = append(in.items, item)
	}
	in.signal()
}

func (in *inbox) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err == nil {
		in.err = err
	}
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *inbox) next(ctx context.Context) (Item, error) {
	for {
		in.mu.Lock()
		if len(in.items) > 0 {
			item := in.items[0]
			in.items = in.items[1:]
			in.mu.Unlock()
			return item, nil
		}
		err := in.err
		in.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-in.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
