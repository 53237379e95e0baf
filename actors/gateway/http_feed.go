package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// Numbers of a feed's commands; Subscribe has askSubscribe and those behind it.
const (
	askSubmit uint64 = 1 + iota
	askTurn
	askSubscribe
)

// noNumber is beyond every number of a session: who subscribes after it is given the present state.
const noNumber uint64 = math.MaxInt64

var (
	// whole ends a stream behind its last item.
	whole = ending{}
	// timeUp ends the stream of a turn that takes longer than its client wants to wait.
	timeUp = ending{reason: "time is up: the turn goes on"}
)

// renewFeed is the pause after a subscription that failed or was not answered.
type renewFeed struct{ generation uint64 }

// feed is the actor between a session and a stream of server-sent events: of all items, or of one turn. It follows the session
// over restarts and puts encoded events into an outbox; the request's goroutine writes them.
//
// An event has an id only if its client then has all items up to that number, so that Last-Event-ID is always a number to go
// on after. The finals that come before a gap have none, nor has the gap; the resync behind it has its up_to_seq.
type feed struct {
	gateway *Gateway
	key     messages.Key
	out     *outbox
	// begun gets the answer to the first command, once.
	begun chan messages.Reply
	// turn is what the stream is of; nil = all items.
	turn *turnFeed
	// cursor is the number after which the client goes on; nil = it has none.
	cursor *uint64

	self *actor.PID
	// answeredFirst: begun has its answer.
	answeredFirst bool
	// generation counts the subscriptions that were asked for.
	generation uint64
	// muted: what comes is from before the subscription that was asked for, and will come again after it.
	muted bool
	// fresh: the client gets the present state first, without a gap.
	fresh bool
	// seen is the last number that went by; placed says that it is known.
	seen   uint64
	placed bool
	// unawait stops the timer of a subscription that is not answered.
	unawait func()
	// tries counts subscriptions that failed, in a row.
	tries int
	over  bool
}

func (g *Gateway) newFeed(key messages.Key, cursor *uint64) *feed {
	return &feed{
		gateway: g, key: key, cursor: cursor,
		out:   newOutbox(g.config.OutboxBytes, g.config.OutboxFrames),
		begun: make(chan messages.Reply, 1), unawait: func() {},
	}
}

// stream serves a feed to a client until either ends it; wait > 0 bounds the time.
func (g *Gateway) stream(w http.ResponseWriter, r *http.Request, f *feed, wait time.Duration) {
	pid, err := g.deps.Kernel.SpawnIn("connections", g.deps.Kernel.Props(func() actor.Actor { return f }, kernel.PropsOptions{MailboxLimit: -1}))
	if err != nil {
		respondError(w, messages.FailRetryable(messages.CodeDraining, "the server is shutting down"))
		return
	}
	defer g.deps.Kernel.Root().Stop(pid)
	ctx, cancel := g.bounded(r, answerWithin)
	err = f.await(ctx)
	cancel()
	if err != nil {
		respondFailed(w, err)
		return
	}
	// The farewell is behind everything that the session has sent to the feed.
	defer context.AfterFunc(g.base, func() { g.deps.Kernel.Tell(pid, farewell{}) })()
	newEventStream(w).relay(r.Context(), f.out, g.config.Heartbeat, wait)
}

// await waits for the answer to the first command. Errors: a Failure, the cause of ctx.
func (f *feed) await(ctx context.Context) error {
	select {
	case reply := <-f.begun:
		if failure, failed := reply.(*messages.Failure); failed {
			return failure
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Receive implements actor.Actor.
func (f *feed) Receive(ctx actor.Context) {
	if f.over {
		return
	}
	switch m := ctx.Message().(type) {
	case *messages.DeliveryIntent:
		f.item(m)
	case *actor.Started:
		f.start(ctx.Self())
	case *session.Answer:
		f.answered(m)
	case *kernel.Refusal:
		if answer, ok := session.Refused(m); ok {
			f.answered(answer)
		}
	case *messages.Gap:
		f.gap(m)
	case *messages.Resync:
		f.resynced(m)
	case *session.Lost:
		f.lost()
	case renewFeed:
		if f.muted && m.generation == f.generation {
			f.subscribe()
		}
	case askAgainForTurn:
		f.askTurn()
	case farewell, *actor.Stopping:
		f.unawait()
		f.finish(goingAway)
	case *actor.Restarting:
		f.finish(restarting)
	}
}

func (f *feed) start(self *actor.PID) {
	f.self = self
	if f.cursor != nil {
		f.seen, f.placed = *f.cursor, true
	}
	if f.turn != nil {
		f.ask(askSubmit, f.turn.submit)
		return
	}
	f.fresh = f.cursor == nil
	f.subscribe()
}

func (f *feed) ask(id uint64, cmd messages.Command) {
	f.gateway.deps.Directory.Send(f.key, id, cmd, f.self)
}

// subscribe asks for everything after the last number that went by: the client sees no seam, or is told of the gap (I11).
func (f *feed) subscribe() {
	f.muted, f.placed = true, true
	after := f.seen
	if f.fresh {
		after = noNumber
	}
	f.ask(askSubscribe+f.generation, &messages.Subscribe{AfterSeq: &after})
	f.generation++
	f.unawait() // the one before is not awaited any more
	// A session answers what it takes; this is for one that died in the middle.
	f.unawait = f.gateway.deps.Kernel.After(requestTimeout, f.self, renewFeed{f.generation})
}

// lost: the session's actor is gone and has forgotten this subscriber.
func (f *feed) lost() {
	if f.turn != nil && !f.turn.attached {
		f.askTurn()
		return
	}
	f.subscribe()
}

func (f *feed) answered(a *session.Answer) {
	switch a.ID {
	case askSubmit:
		f.submitted(a.Reply)
	case askTurn:
		f.found(a.Reply)
	case askSubscribe + f.generation - 1:
		f.subscribed(a.Reply)
	}
}

func (f *feed) subscribed(reply messages.Reply) {
	f.unawait()
	if failure, failed := reply.(*messages.Failure); failed {
		f.unsubscribed(failure)
		return
	}
	f.muted, f.tries = false, 0
	if f.turn != nil {
		f.askTurn() // its end may have been told to nobody; the answer comes behind what is told now
		return
	}
	f.begin(reply)
}

// unsubscribed tries again, unless it is the client's first attempt, which is its own to repeat.
func (f *feed) unsubscribed(failure *messages.Failure) {
	if f.turn == nil && f.begin(failure) {
		f.over = true
		return
	}
	if !failure.GetRetryable() || f.tries >= renewTries {
		f.fail(failure)
		return
	}
	pause := min(renewMin<<f.tries, renewMax)
	f.tries++
	f.gateway.deps.Kernel.After(pause, f.self, renewFeed{f.generation})
}

// begin gives the request its answer; false if it has it.
func (f *feed) begin(reply messages.Reply) bool {
	if f.answeredFirst {
		return false
	}
	f.answeredFirst = true
	f.begun <- reply
	return true
}

// item passes a numbered item on.
func (f *feed) item(m *messages.DeliveryIntent) {
	seq := m.GetSeq()
	if f.muted || f.placed && seq <= f.seen {
		return
	}
	id := ""
	if !f.placed || seq == f.seen+1 { // else a final from before a gap
		f.seen, f.placed = seq, true
		id = strconv.FormatUint(seq, 10)
	}
	meets := meetsOwn
	if f.turn != nil {
		meets = f.turn.meets(m)
	}
	if meets == meetsOther {
		return
	}
	if frame := itemFrame(m); frame != nil {
		f.put(id, frame)
	}
	switch meets {
	case meetsLast:
		f.finish(whole)
	case meetsEnd:
		f.turn.told = true
		f.askTurn()
	case meetsOwn, meetsOther:
	}
}

func (f *feed) gap(m *messages.Gap) {
	if f.muted || f.fresh {
		return
	}
	f.put("", &protocol.Gap{SessionID: m.GetSessionId(), FromSeq: m.GetFromSeq(), ToSeq: m.GetToSeq()})
}

func (f *feed) resynced(m *messages.Resync) {
	if f.muted {
		return
	}
	f.fresh, f.seen = false, m.GetUpToSeq()
	f.put(strconv.FormatUint(f.seen, 10), resyncFrame(m))
	if f.turn != nil {
		f.askTurn() // it may have ended in the gap
	}
}

// put encodes a frame for the client; it never blocks.
func (f *feed) put(id string, frame protocol.ServerFrame) {
	data, err := protocol.Encode(frame)
	if err != nil {
		f.gateway.log.LogAttrs(context.Background(), slog.LevelError, "frame does not encode", f.session(), slog.Any(messages.AttrError, err))
		f.finish(restarting)
		return
	}
	if f.out.put(outFrame{data: appendEvent(nil, id, frame.FrameType(), data)}) {
		f.over = true
		f.gateway.log.LogAttrs(context.Background(), slog.LevelWarn, "slow client dropped", f.session())
	}
}

// fail ends the stream with an error.
func (f *feed) fail(err error) {
	failure := journalFailure(err)
	if f.begin(failure) {
		f.over = true
		return
	}
	f.put("", failureFrame("", f.key, failure))
	f.finish(ending{reason: "resume after the last id"})
}

func (f *feed) finish(e ending) {
	f.over = true
	f.begin(messages.FailRetryable(messages.CodeUnavailable, e.reason))
	f.out.finish(e)
}

// session names the session in the log.
func (f *feed) session() slog.Attr { return slog.String(messages.AttrSession, string(f.key.Session)) }

// passing says whether a later try may succeed.
func passing(err error) bool {
	var f *messages.Failure
	return errors.As(err, &f) && f.GetCode() == string(messages.CodeUnavailable)
}
