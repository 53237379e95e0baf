package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// lastEventID reads the number after which a client of a stream goes on; nil = it gives none.
func lastEventID(r *http.Request) (*uint64, *messages.Failure) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return nil, nil //nolint:nilnil // no number and no failure
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, messages.Fail(messages.CodeInvalidField, fmt.Sprintf("Last-Event-ID %.100q is no number of this stream", text))
	}
	return &n, nil
}

// appendEvent writes a server-sent event. The data is JSON, so it has no line end that would have to be split; id "" leaves the
// client's last id as it is.
func appendEvent(b []byte, id, name string, data []byte) []byte {
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), '\n')
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// eventStream writes server-sent events; err is the first that went wrong.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
	// buf joins small events.
	buf []byte
	// by is when the stream must have ended; zero = it goes on.
	by time.Time
}

// newEventStream answers with the head of a stream.
func newEventStream(w http.ResponseWriter) *eventStream {
	h := w.Header()
	h.Set("Content-Type", typeSSE)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, control: http.NewResponseController(w)}
}

// relay writes what comes through an outbox until that is finished or the client has gone.
func (s *eventStream) relay(ctx context.Context, out *outbox, heartbeat, wait time.Duration) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	s.flush() // the client learns at once that it is served
	for s.err == nil {
		select {
		case <-out.wake:
			batch, end := out.take()
			if end != nil {
				s.by = time.Now().Add(closeWithin)
			}
			s.frames(out, batch)
			if end != nil && end.reason != "" {
				s.comment(end.reason)
			}
			s.flush()
			if end != nil {
				return
			}
			out.reuse(batch)
		case <-beat.C:
			s.comment("")
			s.flush()
		case <-late:
			out.finish(timeUp)
		case <-ctx.Done():
			return
		}
	}
}

// frames writes encoded events, small ones together.
func (s *eventStream) frames(out *outbox, batch []outFrame) {
	for len(batch) > 0 && s.err == nil {
		n := 1
		s.buf = append(s.buf[:0], batch[0].data...)
		for n < len(batch) && len(s.buf)+len(batch[n].data) <= corkBytes {
			s.buf = append(s.buf, batch[n].data...)
			n++
		}
		s.write(s.buf)
		out.written(n, len(s.buf))
		batch = batch[n:]
		if cap(s.buf) > corkBytes {
			s.buf = nil // a rare large answer
		}
	}
}

// stored writes one event of the log, or the error at which the stream ends.
func (s *eventStream) stored(ctx context.Context, stored *messages.StoredEvent, err error) {
	if ctx.Err() != nil {
		s.err = context.Cause(ctx)
		return
	}
	var data []byte
	if err == nil {
		var e *protocol.StoredEvent
		if e, err = storedEvent(stored); err == nil {
			data, err = protocol.EncodeBody(e)
		}
	}
	if err == nil {
		s.write(appendEvent(nil, strconv.FormatUint(stored.GetSequence(), 10), "session_event", data))
		return
	}
	if data, encodeErr := protocol.EncodeBody(failureFrame("", messages.Key{}, journalFailure(err)).Body()); encodeErr == nil {
		s.write(appendEvent(nil, "", "error", data))
		s.flush()
	}
	s.err = err
}

// comment writes what clients pass over; an empty one is a sign of life.
func (s *eventStream) comment(text string) { s.write([]byte(": " + text + "\n\n")) }

// write gives a slow client the time for each part anew.
func (s *eventStream) write(data []byte) {
	for len(data) > 0 && s.err == nil {
		n := min(len(data), corkBytes)
		s.extend()
		_, s.err = s.w.Write(data[:n])
		data = data[n:]
	}
}

func (s *eventStream) flush() {
	if s.err == nil {
		s.extend()
		s.err = s.control.Flush()
	}
}

// extend sets until when the next write may take, never beyond the end of the stream.
func (s *eventStream) extend() {
	deadline := time.Now().Add(writeWithin)
	if !s.by.IsZero() && s.by.Before(deadline) {
		deadline = s.by
	}
	_ = s.control.SetWriteDeadline(deadline) // not all writers can
}
