package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/correx/correx-actors/messages/protocol"
)

const (
	dialWithin  = 5 * time.Second
	writeWithin = 10 * time.Second
	// maxServerFrame bounds what a server may send: a whole answer and a session's state fit many times.
	maxServerFrame = 64 << 20
	// maxHeartbeat keeps a silent connection from being trusted for too long.
	maxHeartbeat = 30 * time.Second
)

// Conn is one WebSocket connection. One goroutine may receive while others send.
type Conn struct {
	// Hello is the server's first frame.
	Hello *protocol.Hello

	client *Client
	ws     *websocket.Conn
	end    context.CancelFunc
	once   sync.Once
}

// Dial connects. Errors: *UnreachableError, *protocol.Error if the server refuses, the cause of ctx.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	u := *c.base.JoinPath("v1", "ws")
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	ws, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{ //nolint:bodyclose // websocket closes it
		Subprotocols: []string{protocol.Name}, HTTPHeader: c.header(), HTTPClient: c.http,
	})
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("%s answered %s: is this a correx-actors server?", c.Server(), resp.Status)
		}
		return nil, c.unreachable(ctx, err)
	}
	ws.SetReadLimit(maxServerFrame)
	conn := &Conn{client: c, ws: ws}
	if err := conn.greet(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c *Conn) greet(ctx context.Context) error {
	frame, err := c.Receive(ctx)
	if err != nil {
		return err
	}
	hello, ok := frame.(*protocol.Hello)
	if !ok || hello.Protocol != protocol.Name {
		return fmt.Errorf("%s speaks another protocol", c.client.Server())
	}
	c.Hello = hello
	alive, end := context.WithCancel(context.Background())
	c.end = end
	go c.heartbeat(alive, min(time.Duration(max(hello.HeartbeatMS, 1000))*time.Millisecond, maxHeartbeat))
	return nil
}

// heartbeat ends a connection whose other side is gone without a word; Receive then fails.
func (c *Conn) heartbeat(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		wait, cancel := context.WithTimeout(ctx, every)
		err := c.ws.Ping(wait)
		cancel()
		if err != nil {
			c.Close()
			return
		}
	}
}

// Send writes a frame. Errors: *UnreachableError, the cause of ctx.
func (c *Conn) Send(ctx context.Context, frame protocol.ClientFrame) error {
	b, err := protocol.EncodeClient(frame)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return c.client.unreachable(ctx, err)
	}
	return nil
}

// Receive reads the next frame that this build knows. Errors: *UnreachableError, the cause of ctx.
func (c *Conn) Receive(ctx context.Context) (protocol.ServerFrame, error) {
	for {
		_, b, err := c.ws.Read(ctx)
		if err != nil {
			return nil, c.client.unreachable(ctx, err)
		}
		frame, err := protocol.DecodeServer(b)
		if errors.Is(err, protocol.ErrUnknownFrame) {
			continue
		}
		return frame, err
	}
}

// Ask sends a frame and waits for its direct answer; frames that come before are dropped, so it is for connections that
// subscribe to nothing. A refusal is returned as *protocol.Error.
func (c *Conn) Ask(ctx context.Context, frame protocol.ClientFrame) (protocol.ServerFrame, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	id := uuid.NewString()
	if err := c.Send(ctx, withID(frame, id)); err != nil {
		return nil, err
	}
	for {
		answer, err := c.Receive(ctx)
		if err != nil {
			return nil, err
		}
		if answerID(answer) != id {
			continue
		}
		if refused, ok := answer.(*protocol.Error); ok {
			return nil, refused
		}
		return answer, nil
	}
}

// Close ends the connection. It may be called again.
func (c *Conn) Close() {
	c.once.Do(func() {
		if c.end != nil {
			c.end()
		}
		// The server learns of it from the end of the stream; a handshake would wait for it.
		_ = c.ws.CloseNow()
	})
}

// plain takes what a person needs from the errors of net/http and websocket.
func plain(err error) error {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		if closed.Reason != "" {
			return fmt.Errorf("connection closed (%d: %s)", closed.Code, closed.Reason)
		}
		return fmt.Errorf("connection closed (%d)", closed.Code)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// withID gives a copy of a frame with an id.
func withID(frame protocol.ClientFrame, id string) protocol.ClientFrame {
	switch f := frame.(type) {
	case *protocol.StartSession:
		return set(*f, func(f *protocol.StartSession) { f.ID = id })
	case *protocol.ChatInput:
		return set(*f, func(f *protocol.ChatInput) { f.ID = id })
	case *protocol.Explain:
		return set(*f, func(f *protocol.Explain) { f.ID = id })
	case *protocol.Subscribe:
		return set(*f, func(f *protocol.Subscribe) { f.ID = id })
	case *protocol.Unsubscribe:
		return set(*f, func(f *protocol.Unsubscribe) { f.ID = id })
	case *protocol.Abort:
		return set(*f, func(f *protocol.Abort) { f.ID = id })
	case *protocol.Withdraw:
		return set(*f, func(f *protocol.Withdraw) { f.ID = id })
	case *protocol.KeepRunAlive:
		return set(*f, func(f *protocol.KeepRunAlive) { f.ID = id })
	case *protocol.GetTurn:
		return set(*f, func(f *protocol.GetTurn) { f.ID = id })
	case *protocol.GetSession:
		return set(*f, func(f *protocol.GetSession) { f.ID = id })
	case *protocol.RecordEvents:
		return set(*f, func(f *protocol.RecordEvents) { f.ID = id })
	case *protocol.Ping:
		return set(*f, func(f *protocol.Ping) { f.ID = id })
	case *protocol.Ack:
		return frame // it has no answer
	}
	return frame
}

func set[F any](f F, change func(*F)) *F {
	change(&f)
	return &f
}

// answerID is the id that a direct answer echoes; "" for all other frames.
func answerID(frame protocol.ServerFrame) string {
	switch f := frame.(type) {
	case *protocol.SessionStarted:
		return f.ID
	case *protocol.TurnAccepted:
		return f.ID
	case *protocol.Explanation:
		return f.ID
	case *protocol.Subscribed:
		return f.ID
	case *protocol.Unsubscribed:
		return f.ID
	case *protocol.Aborted:
		return f.ID
	case *protocol.Withdrawn:
		return f.ID
	case *protocol.OK:
		return f.ID
	case *protocol.Turn:
		return f.ID
	case *protocol.Session:
		return f.ID
	case *protocol.EventsRecorded:
		return f.ID
	case *protocol.Pong:
		return f.ID
	case *protocol.Error:
		return f.ID
	case *protocol.Hello, *protocol.RunPhase, *protocol.StreamDelta, *protocol.StreamSnapshot, *protocol.StreamFinalize,
		*protocol.ToolStatus, *protocol.WatchdogPrompt, *protocol.TurnState, *protocol.RouterResponse, *protocol.Notice, *protocol.SessionEvent, *protocol.Gap, *protocol.Resync:
		return ""
	}
	return ""
}
