package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// requestTimeout is when a client is told that the answer to its frame is not known. Sessions answer everything that they
// take; this is for one that died in the middle.
const requestTimeout = time.Minute

// incoming is a client's frame as a command.
type incoming struct {
	// id is the client's own.
	id  string
	key messages.Key
	cmd messages.Command
	// afterEvent of a Subscribe.
	afterEvent *uint64
}

// request is a command without an answer yet.
type request struct {
	incoming
	// renewal: the gateway asked by itself, after Lost; the client learns nothing of the answer.
	renewal  bool
	deadline time.Time
}

type (
	// farewell asks for the end of the connection, behind everything that is in the mailbox.
	farewell struct{}
	// sweep is the timer that looks for requests without an answer.
	sweep struct{}
)

// conn is the actor of one connection: it knows the requests under way and the subscriptions, and turns what sessions send
// into frames. It never touches the network.
type conn struct {
	*socket
	lastID   uint64
	requests map[uint64]*request
	subs     map[messages.SessionID]*subscription
	sweeping bool
}

func newConn(s *socket) *conn {
	return &conn{socket: s, requests: make(map[uint64]*request), subs: make(map[messages.SessionID]*subscription)}
}

// Receive implements actor.Actor.
func (c *conn) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.DeliveryIntent:
		c.item(m)
	case *session.Answer:
		c.answered(m)
	case *incoming:
		c.asked(m)
	case *messages.EventsAdvanced:
		c.advanced(m)
	case *messages.Gap:
		c.gap(m)
	case *messages.Resync:
		c.resynced(m)
	case *session.Lost:
		c.lost(m)
	case *kernel.Refusal:
		if answer, ok := session.Refused(m); ok {
			c.answered(answer)
		}
	case renew:
		c.renewed(m)
	case sweep:
		c.swept()
	case farewell:
		c.finish(goingAway, stopWithin)
	case *actor.Stopping:
		c.finish(goingAway, stopWithin)
	case *actor.Restarting:
		// What this incarnation knew is lost; the client knows it and can resume.
		c.finish(restarting, closeWithin)
	}
}

// asked passes a command on.
func (c *conn) asked(m *incoming) {
	if subscribes(m.cmd) && !c.expect(m.key) {
		c.send(failureFrame(m.id, m.key, messages.FailRetryable(messages.CodeRateLimited,
			"this connection follows too many sessions; unsubscribe from some or use another connection")), true)
		return
	}
	if _, leaving := m.cmd.(*messages.Unsubscribe); leaving && c.subs[m.key.Session] != nil {
		c.subs[m.key.Session].leaving++
	}
	c.ask(&request{incoming: *m})
}

// subscribes says whether the command makes its sender a subscriber if it is accepted.
func subscribes(cmd messages.Command) bool {
	switch cmd.(type) {
	case *messages.Subscribe, *messages.SubmitTurn:
		return true
	case *messages.StartSession, *messages.RecordEvents, *messages.Unsubscribe, *messages.GetSession, *messages.GetTurn,
		*messages.Abort, *messages.Withdraw, *messages.KeepRunAlive, *messages.Explain, *messages.AckFinals, *messages.GetContext:
	}
	return false
}

func (c *conn) ask(r *request) {
	c.lastID++
	r.deadline = time.Now().Add(requestTimeout)
	c.requests[c.lastID] = r
	c.gateway.deps.Directory.Send(r.key, c.lastID, r.cmd, c.pid)
	if !c.sweeping {
		c.sweeping = true
		c.gateway.deps.Kernel.After(requestTimeout, c.pid, sweep{})
	}
}

// answered takes the answer to a request. It goes out before anything that the request causes, because the session sends it
// first and everything passes this mailbox and one outbox.
func (c *conn) answered(a *session.Answer) {
	r, ok := c.requests[a.ID]
	if !ok {
		return // it came after its client was told that it does not
	}
	delete(c.requests, a.ID)
	if f := c.track(r, a.Reply); f != nil {
		c.send(f, true)
	}
}

// track keeps the books of subscriptions and gives the frame that the client still has to get; nil = none.
func (c *conn) track(r *request, reply messages.Reply) protocol.ServerFrame {
	switch cmd := r.cmd.(type) {
	case *messages.Subscribe:
		if r.renewal {
			c.renewalAnswered(r.key, reply)
			return nil
		}
		if answer, ok := reply.(*messages.Subscribed); ok {
			c.subscribed(r, cmd, answer)
			return nil
		}
		c.unexpect(r.key)
	case *messages.SubmitTurn:
		if _, ok := reply.(*messages.TurnAccepted); ok {
			c.follow(r.key)
		} else {
			c.unexpect(r.key)
		}
	case *messages.Unsubscribe:
		c.left(r.key, reply)
	case *messages.StartSession, *messages.RecordEvents, *messages.GetSession, *messages.GetTurn, *messages.Abort,
		*messages.Withdraw, *messages.KeepRunAlive, *messages.Explain, *messages.AckFinals, *messages.GetContext:
	}
	return answerFrame(r.id, r.key, reply)
}

// swept answers what nobody has answered in time.
func (c *conn) swept() {
	now := time.Now()
	next := time.Duration(0)
	for id, r := range c.requests {
		if left := r.deadline.Sub(now); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		c.log.LogAttrs(c.ctx, slog.LevelWarn, "request without an answer", slog.String(messages.AttrSession, string(r.key.Session)))
		c.answered(&session.Answer{Key: r.key, ID: id, Reply: messages.FailRetryable(messages.CodeUnavailable,
			"the session did not answer in time; ask for the state before you send it again")})
	}
	if c.sweeping = next > 0; c.sweeping {
		c.gateway.deps.Kernel.After(next, c.pid, sweep{})
	}
}

// item sends a numbered item.
func (c *conn) item(m *messages.DeliveryIntent) {
	sub := c.subs[messages.SessionID(m.GetSessionId())]
	if sub == nil {
		return
	}
	if f := itemFrame(m); f != nil {
		sub.saw(m.GetSeq())
		c.send(f, false)
	}
}

func (c *conn) gap(m *messages.Gap) {
	if c.subs[messages.SessionID(m.GetSessionId())] != nil {
		c.send(&protocol.Gap{SessionID: m.GetSessionId(), FromSeq: m.GetFromSeq(), ToSeq: m.GetToSeq()}, false)
	}
}

func (c *conn) resynced(m *messages.Resync) {
	sub := c.subs[messages.SessionID(m.GetSessionId())]
	if sub == nil {
		return
	}
	sub.saw(m.GetUpToSeq())
	c.send(resyncFrame(m), false)
}

func (c *conn) advanced(m *messages.EventsAdvanced) {
	if sub := c.subs[messages.SessionID(m.GetSessionId())]; sub != nil && sub.pump != nil {
		sub.pump.signal()
	}
}

// sessionKey gives the key of a session id of this server's only tenant.
func sessionKey(id string) messages.Key { return messages.NewKey(messages.SessionID(id)) }

// journalFailure says in a client's words what a journal's error means.
func journalFailure(err error) *messages.Failure {
	var f *messages.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return messages.FailRetryable(messages.CodeUnavailable, "the answer did not come in time; try again")
	}
	return storeFailure(err)
}
