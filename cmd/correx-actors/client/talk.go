package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/correx/correx-actors/messages/protocol"
)

const (
	retryMin = 100 * time.Millisecond
	retryMax = 3 * time.Second
	// closeWithin bounds Close.
	closeWithin = time.Second
	// holdFor is the pause before an input is sent again that the server would not take for now.
	holdFor = 500 * time.Millisecond
	// noticeBuffer lets a reader print in peace; when it is full nothing is read from the server.
	noticeBuffer = 64
)

// TalkOptions say how a conversation is kept.
type TalkOptions struct {
	// AfterSeq is where the output begins; nil = with what is new.
	AfterSeq *uint64
	// Events asks for the session's events as well, after AfterEvent (nil = new ones).
	Events     bool
	AfterEvent *uint64
	// GiveUp is how long to try without a server, once one was reached; 0 = for ever.
	GiveUp time.Duration
}

// Talk keeps one session's conversation going: it connects again when the connection is lost, goes on after the last output
// item seen, and sends again what had no answer. An input carries an idempotency key, so that sending it again never doubles
// a turn.
type Talk struct {
	client  *Client
	session string
	opts    TalkOptions
	notices chan Notice
	cancel  context.CancelCauseFunc
	err     error // set before notices is closed

	mu    sync.Mutex
	queue []*request
	// closing: Close was called.
	closing bool
	wake    chan struct{}

	// Owned by the Talk's goroutine.
	seq     *uint64 // of the last output item
	event   *uint64 // of the last event
	pending []*request
	turns   tracker
	down    time.Time // when the server was lost or began to refuse; zero = all is well
	// retry fires when what is held may be sent again; nil while nothing is.
	retry <-chan time.Time
}

// request is a frame on its way.
type request struct {
	id    string
	frame protocol.ClientFrame
	// safe: sending it twice does no harm.
	safe bool
	// answered: the server answers it.
	answered bool
	// held: the server asked to try again later.
	held bool
	// sent: on the present connection.
	sent bool
}

// ErrClosed is the cause with which Close ends a Talk.
var ErrClosed = errors.New("the conversation is closed")

// Talk begins a conversation with a session, which need not exist. Read Notices until it is closed.
func (c *Client) Talk(ctx context.Context, session string, opts TalkOptions) *Talk {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &Talk{
		client: c, session: session, opts: opts, cancel: cancel,
		notices: make(chan Notice, noticeBuffer), wake: make(chan struct{}, 1),
		seq: opts.AfterSeq, event: opts.AfterEvent, turns: newTracker(),
	}
	go func() {
		defer close(t.notices)
		t.err = t.run(ctx)
	}()
	return t
}

// Notices gives what happens, until the conversation ends; then Err says why.
func (t *Talk) Notices() <-chan Notice { return t.notices }

// Err is why the conversation ended: *UnreachableError, *protocol.Error, or the cause of the context. Valid once Notices is closed.
func (t *Talk) Err() error { return t.err }

// Close ends the conversation once what was put before has been sent, or after a second; running answers go on without it.
// The reader of Notices calls it.
func (t *Talk) Close() {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.rouse()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	for {
		select {
		case _, open := <-t.notices:
			if !open {
				return
			}
		case <-timer.C:
			t.cancel(ErrClosed)
		}
	}
}

// Submit sends an input. It gets an idempotency key unless it has one. Accepted or Refused comes, after Accepted also Settled.
func (t *Talk) Submit(input *protocol.ChatInput) {
	input.SessionID = t.session
	if input.IdempotencyKey == "" {
		input.IdempotencyKey = uuid.Must(uuid.NewV7()).String()
	}
	t.put(input, true)
}

// Ask sends a question that changes nothing, or one that may be repeated; its answer Arrives.
func (t *Talk) Ask(frame protocol.ClientFrame) { t.put(frame, true) }

// Abort stops a run; "" = the one that runs when it arrives, and then it is not sent again after a lost connection.
func (t *Talk) Abort(runID string) {
	t.put(&protocol.Abort{SessionID: t.session, Scope: protocol.ScopeRun, RunID: runID}, runID != "")
}

// Ack tells the server that an answer was shown and need not be kept for this session's readers.
func (t *Talk) Ack(seq uint64) { t.put(&protocol.Ack{SessionID: t.session, Seq: seq}, true) }

func (t *Talk) put(frame protocol.ClientFrame, safe bool) {
	_, ack := frame.(*protocol.Ack)
	r := &request{id: uuid.NewString(), safe: safe, answered: !ack}
	r.frame = withID(frame, r.id)
	t.mu.Lock()
	t.queue = append(t.queue, r)
	t.mu.Unlock()
	t.rouse()
}

func (t *Talk) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take takes over what was put, and says whether Close was called.
func (t *Talk) take() (closing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, t.queue...)
	t.queue = nil
	return t.closing
}

// tell hands a notice to the reader.
func (t *Talk) tell(ctx context.Context, n Notice) error {
	select {
	case t.notices <- n:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run connects again and again. A server that was never reached is not waited for.
func (t *Talk) run(ctx context.Context) error {
	pause := retryMin
	for again := false; ; {
		conn, err := t.client.Dial(ctx)
		if err == nil {
			var connected bool
			connected, err = t.converse(ctx, conn, again)
			conn.Close()
			if connected {
				again, pause = true, retryMin
			}
		}
		var gone *UnreachableError
		var refused *protocol.Error
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused) && refused.Retryable:
		case !errors.As(err, &gone):
			return err
		case !again:
			return err
		}
		if t.down.IsZero() {
			t.down = time.Now()
			if err := t.tell(ctx, &Lost{Err: err}); err != nil {
				return err
			}
		}
		if t.late() {
			return err
		}
		// Not all clients of a restarted server at the same moment.
		if err := sleep(ctx, pause/2+rand.N(pause)); err != nil { //nolint:gosec // no secret
			return err
		}
		pause = min(2*pause, retryMax)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// link is one connection of a Talk.
type link struct {
	conn   *Conn
	frames <-chan protocol.ServerFrame
	lost   <-chan error
	// again: it is not the first one that worked.
	again bool
	// subscribed: the server has answered the subscription.
	subscribed bool
}

// converse works on one connection until it is lost; connected says whether it got as far as being subscribed.
func (t *Talk) converse(ctx context.Context, conn *Conn, again bool) (connected bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &link{conn: conn, again: again}
	l.frames, l.lost = receive(ctx, conn)
	t.dropUnsafe()
	err = conn.Send(ctx, &protocol.Subscribe{
		ID: subscribeID, SessionID: t.session, AfterSeq: t.seq, Events: t.opts.Events, AfterEvent: t.event,
	})
	for err == nil {
		if err = t.step(ctx, l); err == nil {
			err = t.forward(ctx, l)
		}
	}
	return l.subscribed, err
}

// step waits for the next thing that happens.
func (t *Talk) step(ctx context.Context, l *link) error {
	select {
	case frame, open := <-l.frames:
		if !open {
			return <-l.lost
		}
		if start, ok := frame.(*protocol.Subscribed); ok {
			return t.connected(ctx, l, start)
		}
		return t.received(ctx, l.conn, frame)
	case <-t.wake:
	case <-t.retry:
		if t.late() {
			return &UnreachableError{Server: t.client.Server(), Err: errors.New("it takes no new turns")}
		}
		t.release()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// forward sends what waits, once the subscription stands, and ends after Close.
func (t *Talk) forward(ctx context.Context, l *link) error {
	closing := t.take()
	if !l.subscribed {
		return nil
	}
	if err := t.send(ctx, l.conn); err != nil {
		return err
	}
	if closing {
		return ErrClosed
	}
	return nil
}

const subscribeID = "subscribe"

// receive reads frames until the connection is lost.
func receive(ctx context.Context, conn *Conn) (<-chan protocol.ServerFrame, <-chan error) {
	frames, lost := make(chan protocol.ServerFrame), make(chan error, 1)
	go func() {
		defer close(frames)
		for {
			frame, err := conn.Receive(ctx)
			if err != nil {
				lost <- err
				return
			}
			select {
			case frames <- frame:
			case <-ctx.Done():
				lost <- context.Cause(ctx)
				return
			}
		}
	}()
	return frames, lost
}

// late says whether it is time to give up.
func (t *Talk) late() bool {
	return t.opts.GiveUp > 0 && !t.down.IsZero() && time.Since(t.down) > t.opts.GiveUp
}

// hold keeps a request for another try in a while.
func (t *Talk) hold(r *request) {
	r.sent, r.held = false, true
	if t.retry == nil {
		t.retry = time.After(holdFor)
	}
}

func (t *Talk) release() {
	t.retry = nil
	for _, r := range t.pending {
		r.held = false
	}
}

// dropUnsafe forgets what may have been done on the last connection and must not be done twice.
func (t *Talk) dropUnsafe() {
	kept := t.pending[:0]
	for _, r := range t.pending {
		if r.sent && !r.safe {
			continue
		}
		r.sent = false
		kept = append(kept, r)
	}
	t.pending = kept
	t.release()
}

func (t *Talk) connected(ctx context.Context, l *link, start *protocol.Subscribed) error {
	l.subscribed = true
	if t.seq == nil {
		last := start.NextSeq - min(start.NextSeq, 1)
		t.seq = &last
	}
	if t.event == nil && start.State != nil {
		t.event = &start.State.EventSequence
	}
	t.down = time.Time{}
	return t.tell(ctx, &Connected{Hello: l.conn.Hello, Start: start, Again: l.again})
}

// send sends what was not sent yet on this connection.
func (t *Talk) send(ctx context.Context, conn *Conn) error {
	for _, r := range t.pending {
		if r.sent || r.held {
			continue
		}
		if err := conn.Send(ctx, r.frame); err != nil {
			return err
		}
		r.sent = true
	}
	t.pending = slices.DeleteFunc(t.pending, func(r *request) bool { return r.sent && !r.answered })
	return nil
}
