package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func sizes(batch []outFrame) (bytes int) {
	for _, f := range batch {
		bytes += len(f.data)
	}
	return bytes
}

func TestOutboxEndsTheConnectionAtItsLimit(t *testing.T) {
	t.Parallel()
	frame := outFrame{data: make([]byte, 40)}
	o := newOutbox(100, 10)
	for range 3 { // the last one may exceed it
		require.False(t, o.put(frame))
	}
	require.True(t, o.put(frame))
	require.False(t, o.put(frame), "it is told once")
	batch, end := o.take()
	require.Equal(t, websocket.StatusTryAgainLater, end.code)
	require.Equal(t, 120, sizes(batch), "what was taken in is kept")

	o = newOutbox(1000, 2)
	require.False(t, o.put(frame))
	require.False(t, o.put(frame))
	require.True(t, o.put(frame))
}

func TestOutboxCountsWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	o := newOutbox(100, 10)
	require.False(t, o.put(outFrame{data: make([]byte, 100)}))
	_, end := o.take()
	require.Nil(t, end)
	require.True(t, newFull(o), "taken is not written")
	o = newOutbox(100, 10)
	require.False(t, o.put(outFrame{data: make([]byte, 100)}))
	batch, _ := o.take()
	o.written(len(batch), sizes(batch))
	require.False(t, newFull(o))
}

func newFull(o *outbox) bool { return o.put(outFrame{data: []byte("x")}) }

func TestOutboxKeepsRoomForItemsBeforeBulk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(100, 10)
		done := make(chan error, 1)
		require.NoError(t, o.putBulk(t.Context(), make([]byte, 60)))
		go func() { done <- o.putBulk(t.Context(), make([]byte, 60)) }()
		synctest.Wait()
		require.Empty(t, done)
		require.False(t, o.put(outFrame{data: make([]byte, 10)}), "an item has room")
		batch, _ := o.take()
		o.written(1, 60)
		require.NoError(t, <-done)
		require.Len(t, batch, 2)
	})
}

func TestOutboxTakesNothingFromAStoppedPump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		o := newOutbox(100, 1)
		require.NoError(t, o.putBulk(ctx, []byte("a")))
		done := make(chan error, 1)
		go func() { done <- o.putBulk(ctx, []byte("b")) }()
		synctest.Wait()
		cancel(stop)
		require.ErrorIs(t, <-done, stop)
		require.ErrorIs(t, o.putBulk(ctx, []byte("c")), stop)
		go func() { done <- o.putBulk(t.Context(), []byte("d")) }()
		synctest.Wait()
		o.finish(goingAway)
		require.ErrorIs(t, <-done, errEnded)
		batch, _ := o.take()
		require.Len(t, batch, 1)
	})
}

func TestOutboxFirstEndCounts(t *testing.T) {
	t.Parallel()
	o := newOutbox(100, 10)
	require.True(t, o.finish(goingAway))
	require.False(t, o.finish(restarting))
	require.False(t, o.put(outFrame{data: []byte("x")}))
	batch, end := o.take()
	require.Empty(t, batch)
	require.Equal(t, goingAway, *end)
}

func TestTheEarliestCutCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cut := make(chan time.Time, 3)
		s := &socket{wire: &wire{Conn: closing(cut)}}
		begun := time.Now()
		s.arm(5 * time.Second)
		s.arm(2 * time.Second)
		s.arm(4 * time.Second)
		time.Sleep(10 * time.Second)
		require.Len(t, cut, 1)
		require.Equal(t, 2*time.Second, (<-cut).Sub(begun))
		s.arm(time.Second)
		s.disarm()
	})
}
