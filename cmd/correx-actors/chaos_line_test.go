package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// line is a connection that is made again whenever it is lost.
type line struct {
	c    *chaos
	conn *client.Conn
}

// ask repeats a frame until it is answered. again says that it may have been carried out before. A full queue is an answer:
// what becomes of it is for the sender to say.
func (l *line) ask(frame protocol.ClientFrame) (answer protocol.ServerFrame, refused *protocol.Error, again bool) {
	for l.c.t.Context().Err() == nil {
		answer, err := l.once(frame)
		switch {
		case err == nil:
			return answer, nil, again
		case !errors.As(err, &refused) || refused.Retryable && refused.Code != "queue_full":
			again = true
			time.Sleep(5 * time.Millisecond)
		default:
			return nil, refused, again
		}
	}
	return nil, &protocol.Error{Code: "unavailable", Message: "the test is over"}, again
}

func (l *line) once(frame protocol.ClientFrame) (protocol.ServerFrame, error) {
	conn, err := l.dialed()
	if err != nil {
		return nil, err
	}
	answer, err := conn.Ask(l.c.t.Context(), frame)
	var refused *protocol.Error
	switch {
	case err == nil:
	case !errors.As(err, &refused):
		l.c.happened("reply lost")
		l.drop()
	case strings.Contains(refused.Message, "did not answer in time"):
		l.c.fault("a session took %T %s and never answered", frame, shown(frame))
	}
	return answer, err
}

// send sends a frame and does not wait for its answer.
func (l *line) send(frame protocol.ClientFrame) bool {
	conn, err := l.dialed()
	return err == nil && conn.Send(l.c.t.Context(), frame) == nil
}

func (l *line) dialed() (*client.Conn, error) {
	if l.conn == nil {
		conn, err := l.c.client.Dial(l.c.t.Context())
		if err != nil {
			return nil, err
		}
		l.conn = conn
	}
	return l.conn, nil
}

func (l *line) drop() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// receive gives the next frame, or false when none comes for a while or the connection is lost.
func (l *line) receive(wait time.Duration) (protocol.ServerFrame, bool) {
	ctx, cancel := context.WithTimeout(l.c.t.Context(), wait)
	defer cancel()
	frame, err := l.conn.Receive(ctx)
	return frame, err == nil
}
