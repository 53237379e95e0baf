package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/persistence"
)

const (
	renewMin = 100 * time.Millisecond
	renewMax = 5 * time.Second
	// renewTries is about half a minute.
	renewTries = 10
)

// subscription is one session that a connection follows, or has asked to.
type subscription struct {
	key messages.Key
	// asked counts the requests under way that would make the subscription.
	asked int
	// leaving counts the requests under way that end it.
	leaving int
	// active: the session has this subscriber.
	active bool
	// seen is the last number that went to the client; 0 = none, and everything that is kept is wanted after Lost.
	seen uint64
	// tries counts renewals that failed, in a row.
	tries int
	// pump reads the event log; nil = the client did not ask for events.
	pump *pump
}

// saw keeps the greatest number: finals from before a gap come with smaller ones.
func (s *subscription) saw(seq uint64) { s.seen = max(s.seen, seq) }

// renew is the pause after a renewal that failed.
type renew struct{ sub *subscription }

// expect books a request that will subscribe; false at the limit.
func (c *conn) expect(key messages.Key) bool {
	sub := c.subs[key.Session]
	if sub == nil {
		if len(c.subs) >= c.gateway.config.MaxSubscriptions {
			return false
		}
		sub = &subscription{key: key}
		c.subs[key.Session] = sub
	}
	sub.asked++
	return true
}

// unexpect takes a booking back: the request was refused.
func (c *conn) unexpect(key messages.Key) {
	if sub := c.subs[key.Session]; sub != nil {
		sub.asked--
		c.forgetUnused(sub)
	}
}

func (c *conn) forgetUnused(sub *subscription) {
	if !sub.active && sub.asked == 0 {
		c.forget(sub)
	}
}

func (c *conn) forget(sub *subscription) {
	sub.stopPump()
	delete(c.subs, sub.key.Session)
}

// follow: an accepted turn subscribed its sender, or found it subscribed.
func (c *conn) follow(key messages.Key) *subscription {
	sub := c.subs[key.Session]
	if sub == nil { // cannot be: it was booked
		sub = &subscription{key: key, asked: 1}
		c.subs[key.Session] = sub
	}
	sub.asked--
	sub.active = true
	return sub
}

// subscribed answers the client and replaces the connection's subscription to a session. No event of the old one comes behind
// the answer, and none of the new one before it.
func (c *conn) subscribed(r *request, cmd *messages.Subscribe, answer *messages.Subscribed) {
	sub := c.follow(r.key)
	// The numbers begin anew: the client says what it has seen.
	if sub.seen = answer.GetNextSeq() - min(answer.GetNextSeq(), 1); cmd.AfterSeq != nil {
		sub.seen = cmd.GetAfterSeq()
	}
	sub.stopPump()
	c.send(answerFrame(r.id, r.key, answer), true)
	if !cmd.GetEvents() {
		return
	}
	after := answer.GetState().GetEventSequence()
	if r.afterEvent != nil {
		after = *r.afterEvent
	}
	sub.pump = c.startPump(r.key, after)
}

// left: the session has answered Unsubscribe.
func (c *conn) left(key messages.Key, reply messages.Reply) {
	sub := c.subs[key.Session]
	if sub == nil {
		return
	}
	sub.leaving--
	if f, failed := reply.(*messages.Failure); failed && f.GetCode() != string(messages.CodeUnknownSession) {
		return
	}
	sub.active = false
	sub.stopPump()
	c.forgetUnused(sub)
}

// lost: the session's actor is gone and has forgotten this subscriber. What is under way for it was answered before.
func (c *conn) lost(m *session.Lost) {
	sub := c.subs[m.Key.Session]
	if sub == nil || !sub.active {
		return
	}
	if sub.leaving > 0 {
		sub.active = false
		c.forgetUnused(sub)
		return
	}
	c.renew(sub)
}

// renew subscribes again after the last number that the client has: it sees no seam, or is told of the gap (I11).
func (c *conn) renew(sub *subscription) {
	after := sub.seen
	c.ask(&request{renewal: true, incoming: incoming{
		key: sub.key, cmd: &messages.Subscribe{AfterSeq: &after, Events: sub.pump != nil},
	}})
}

func (c *conn) renewed(m renew) {
	if c.subs[m.sub.key.Session] == m.sub && m.sub.active {
		c.renew(m.sub)
	}
}

func (c *conn) renewalAnswered(key messages.Key, reply messages.Reply) {
	sub := c.subs[key.Session]
	f, failed := reply.(*messages.Failure)
	switch {
	case sub == nil || !sub.active:
		if !failed { // the client left meanwhile
			c.gateway.deps.Directory.Send(key, 0, &messages.Unsubscribe{}, c.pid)
		}
	case !failed:
		sub.tries = 0
		if sub.pump != nil {
			sub.pump.signal() // events of the time between
		}
	case f.GetRetryable() && sub.tries < renewTries:
		pause := min(renewMin<<sub.tries, renewMax)
		sub.tries++
		c.gateway.deps.Kernel.After(pause, c.pid, renew{sub: sub})
	default:
		c.send(failureFrame("", key, f), false)
		sub.active = false
		sub.stopPump()
		c.forgetUnused(sub)
	}
}

// pump sends a session's event log to one client, as fast as that reads.
type pump struct {
	cancel context.CancelFunc
	wake   chan struct{}
}

func (p *pump) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// stopPump ends the pump; when it returns the pump puts nothing into the outbox any more.
func (s *subscription) stopPump() {
	if s.pump != nil {
		s.pump.cancel()
		s.pump = nil
	}
}

func (c *conn) startPump(key messages.Key, after uint64) *pump {
	ctx, cancel := context.WithCancel(c.ctx)
	p := &pump{cancel: cancel, wake: make(chan struct{}, 1)}
	s := c.socket
	s.background.Go(func() {
		s.contained(func() { s.pumpEvents(ctx, key, after, p.wake) })
	})
	return p
}

func (s *socket) pumpEvents(ctx context.Context, key messages.Key, after uint64, wake <-chan struct{}) {
	for stored, err := range persistence.Tail(ctx, s.gateway.deps.Journal, key, after, wake) {
		if ctx.Err() != nil {
			return
		}
		var f protocol.ServerFrame
		if err == nil {
			f, err = eventFrame(stored)
		}
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "event log cannot be read",
				slog.String(messages.AttrSession, string(key.Session)), slog.Any(messages.AttrError, err))
			f = failureFrame("", key, journalFailure(err))
		}
		data, encodeErr := protocol.Encode(f)
		if encodeErr != nil || s.out.putBulk(ctx, data) != nil || err != nil {
			return
		}
	}
}
