package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/coder/websocket"
)

// outFrame is an encoded frame on its way to a client.
type outFrame struct {
	data []byte
	// answer: it frees the place of a frame in flight once it is written.
	answer bool
}

// ending says how a connection ends.
type ending struct {
	code   websocket.StatusCode
	reason string
	// drop: what waits is not worth sending, the peer has gone.
	drop bool
}

// tooSlow ends the connection of a client whose outbox is full.
var tooSlow = ending{code: websocket.StatusTryAgainLater, reason: "too slow: reconnect and resume after the last number seen"}

// errEnded is given to who wants to put bulk into the outbox of a connection that ends.
var errEnded = errors.New("the connection ends")

// outbox holds what waits for one connection's writer. Any goroutine puts, one takes. Nothing that was taken in is dropped
// by it: at its limit it ends the connection, after the frames that it has.
type outbox struct {
	maxBytes  int
	maxFrames int
	// wake has a signal when there is something to take.
	wake chan struct{}
	// ended is closed when the connection is to end.
	ended chan struct{}

	mu    sync.Mutex
	queue []outFrame
	spare []outFrame // an empty one to go on with
	// bytes and frames count what waits and what is being written.
	bytes  int
	frames int
	end    *ending
	// room is closed when there is room for bulk again; nil = nobody waits.
	room chan struct{}
}

func newOutbox(maxBytes, maxFrames int) *outbox {
	return &outbox{maxBytes: maxBytes, maxFrames: maxFrames, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds a frame and never blocks. At the limit it ends the connection instead, and says so; after that it takes nothing.
func (o *outbox) put(f outFrame) (overflowed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		return false
	}
	if o.bytes >= o.maxBytes || o.frames >= o.maxFrames {
		o.finishLocked(tooSlow)
		return true
	}
	o.add(f)
	return false
}

// putBulk adds a frame once the outbox is less than half full: what can be read again at any time must not be what fills it.
// It gives the cause of ctx, or errEnded.
func (o *outbox) putBulk(ctx context.Context, data []byte) error {
	for {
		room, err := o.tryBulk(ctx, data)
		if err != nil || room == nil {
			return err
		}
		select {
		case <-room:
		case <-o.ended:
		case <-ctx.Done():
		}
	}
}

// tryBulk adds a frame, or gives what to wait for. A frame of a context that has ended is not added, and none is added after
// the cancellation has returned.
func (o *outbox) tryBulk(ctx context.Context, data []byte) (room <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case o.end != nil:
		return nil, errEnded
	case o.roomy():
		o.add(outFrame{data: data})
		return nil, nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room, nil
}

func (o *outbox) roomy() bool { return o.bytes < (o.maxBytes+1)/2 && o.frames < (o.maxFrames+1)/2 }

func (o *outbox) add(f outFrame) {
	o.queue = append(o.queue, f)
	o.bytes += len(f.data)
	o.frames++
	o.signal()
}

// finish asks the writer to end the connection; only the first call counts, and says so.
func (o *outbox) finish(e ending) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.finishLocked(e)
}

func (o *outbox) finishLocked(e ending) bool {
	if o.end != nil {
		return false
	}
	o.end = &e
	close(o.ended)
	o.signal()
	return true
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take gives everything that waits, and how the connection is to end after it; nil = it goes on.
func (o *outbox) take() ([]outFrame, *ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := o.queue
	o.queue, o.spare = o.spare, nil
	return batch, o.end
}

// written says that frames with this many bytes have left.
func (o *outbox) written(frames, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames -= frames
	o.bytes -= bytes
	if o.room != nil && o.roomy() {
		close(o.room)
		o.room = nil
	}
}

// reuse takes a batch back when all of it was written.
func (o *outbox) reuse(batch []outFrame) {
	if cap(batch) > keepBatch {
		return
	}
	clear(batch)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spare = batch[:0]
}

// keepBatch bounds the memory that an idle connection keeps for its next frames.
const keepBatch = 64
