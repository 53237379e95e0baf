package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/coder/websocket"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// keepBuffer bounds the memory that an idle connection keeps for its next frame.
const keepBuffer = 4 << 10

// socket is a connection: what its goroutines and its actor share.
type socket struct {
	gateway *Gateway
	log     *slog.Logger
	ws      *websocket.Conn
	wire    *wire
	out     *outbox
	pid     *actor.PID
	// slots bounds the frames whose answers have not left: one is taken for each frame.
	slots chan struct{}
	// ctx ends when the connection has; nothing reads or writes with it, as that would cut the connection.
	ctx    context.Context
	cancel context.CancelFunc
	// background counts the goroutines of pumps and pings.
	background sync.WaitGroup
	// flushed is closed when the writer has ended.
	flushed chan struct{}

	mu sync.Mutex
	// force cuts the connection at forceAt if its end takes too long; nil = it does not end yet.
	force   *time.Timer
	forceAt time.Time
}

// serveSocket upgrades a request and serves the connection until it ends.
func (g *Gateway) serveSocket(w http.ResponseWriter, r *http.Request) {
	if f := g.socketRefusal(r); f != nil {
		respondError(w, f)
		return
	}
	up := &upgrade{ResponseWriter: w, silence: 2 * g.config.Heartbeat}
	ws, err := websocket.Accept(up, r, &websocket.AcceptOptions{
		Subprotocols:       []string{protocol.Name},
		InsecureSkipVerify: true, // checked for all routes, by guard
	})
	if err != nil {
		status := max(up.refused, http.StatusBadRequest)
		respondStatus(w, status, messages.Fail(messages.CodeBadFrame, err.Error()))
		return
	}
	s := &socket{
		gateway: g,
		log:     g.log.With(slog.String(messages.AttrRemote, r.RemoteAddr)),
		ws:      ws,
		wire:    up.wire,
		out:     newOutbox(g.config.OutboxBytes, g.config.OutboxFrames),
		slots:   make(chan struct{}, g.config.MaxInFlight),
		flushed: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer s.cancel()
	ws.SetReadLimit(-1) // the reader has its own limit, so that every connection ends the same way
	s.serve()
}

// socketRefusal says why a connection is not to be made.
func (g *Gateway) socketRefusal(r *http.Request) *messages.Failure {
	var offered []string
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				offered = append(offered, name)
			}
		}
	}
	switch {
	case g.isStopping():
		return messages.FailRetryable(messages.CodeDraining, "the server is shutting down")
	case len(offered) > 0 && !slices.Contains(offered, protocol.Name):
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("no subprotocol of %q is served, only %s", offered, protocol.Name))
	}
	return nil
}

// serve runs the connection: it reads on the caller's goroutine.
func (s *socket) serve() {
	defer s.ws.CloseNow() //nolint:errcheck // after the end nobody can be told
	props := s.gateway.deps.Kernel.Props(func() actor.Actor { return newConn(s) }, kernel.PropsOptions{MailboxLimit: -1})
	pid, err := s.gateway.deps.Kernel.SpawnIn("connections", props)
	if err != nil {
		s.leave()
		return
	}
	s.pid = pid
	if !s.gateway.adopt(s) {
		s.gateway.deps.Kernel.Root().Stop(pid)
		s.leave()
		return
	}
	defer s.gateway.release(s)
	s.log.LogAttrs(s.ctx, slog.LevelDebug, "connection opened")
	s.send(&protocol.Hello{
		Protocol: protocol.Name, Server: s.gateway.config.Version, Node: s.gateway.config.Node,
		MaxFrameBytes: s.gateway.config.MaxFrameBytes, HeartbeatMS: s.gateway.config.Heartbeat.Milliseconds(),
	}, false)
	go s.contained(s.write)
	s.contained(s.read)
	<-s.flushed
	s.disarm()
	// The actor's end tells the sessions that this subscriber is gone; only then is nobody left who could start a pump.
	_ = s.gateway.deps.Kernel.Stop(context.WithoutCancel(s.ctx), pid)
	s.cancel()
	s.background.Wait()
	s.log.LogAttrs(context.WithoutCancel(s.ctx), slog.LevelDebug, "connection ended", slog.String(messages.AttrReason, s.out.end.reason))
}

// leave ends a connection that came too late.
func (s *socket) leave() {
	s.arm(stopWithin)
	defer s.disarm()
	_ = s.ws.Close(goingAway.code, goingAway.reason)
}

// contained keeps a panic in a goroutine of ours from ending the process (I13); the client can reconnect and resume.
func (s *socket) contained(do func()) {
	defer func() {
		if reason := recover(); reason != nil {
			s.log.LogAttrs(s.ctx, slog.LevelError, "connection panicked",
				slog.Any(messages.AttrReason, reason), slog.String(attrStack, string(debug.Stack())))
			s.finish(restarting, closeWithin)
		}
	}()
	do()
}

var (
	// restarting ends a connection whose part of the server has failed.
	restarting = ending{code: websocket.StatusServiceRestart, reason: "internal error: reconnect and resume"}
	// goingAway ends a connection because the server shuts down.
	goingAway = ending{code: websocket.StatusGoingAway, reason: "the server is shutting down"}
)

// read takes frames until the connection ends.
func (s *socket) read() {
	var buf bytes.Buffer
	for {
		kind, r, err := s.ws.Reader(context.Background())
		if err != nil {
			s.readFailed(err)
			return
		}
		if kind != websocket.MessageText {
			s.finish(ending{code: websocket.StatusUnsupportedData, reason: "only text frames are served"}, closeWithin)
			return
		}
		n, err := buf.ReadFrom(io.LimitReader(r, s.gateway.config.MaxFrameBytes+1))
		switch {
		case err != nil:
			s.readFailed(err)
			return
		case n > s.gateway.config.MaxFrameBytes:
			s.finish(ending{code: websocket.StatusMessageTooBig, reason: "the frame is over max_frame_bytes"}, closeWithin)
			return
		case !utf8.Valid(buf.Bytes()):
			s.finish(ending{code: websocket.StatusInvalidFramePayloadData, reason: "the frame is not UTF-8"}, closeWithin)
			return
		}
		select {
		case s.slots <- struct{}{}:
		case <-s.out.ended:
			return
		}
		s.frame(buf.Bytes())
		if buf.Reset(); buf.Cap() > keepBuffer {
			buf = bytes.Buffer{}
		}
	}
}

// readFailed ends a connection from which nothing can be read any more.
func (s *socket) readFailed(err error) {
	end := ending{code: websocket.StatusProtocolError, reason: "protocol error", drop: true}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		end.reason = "the peer was silent for two heartbeats"
		s.out.finish(end)
		s.cut()
		return
	case websocket.CloseStatus(err) >= 0:
		end = ending{code: websocket.StatusNormalClosure, reason: "closed by the peer", drop: true}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		end.reason = "the peer is gone"
	}
	s.finish(end, closeWithin)
}

// frame handles a client's frame as far as that needs no state; the rest goes to the actor.
func (s *socket) frame(data []byte) {
	f, refusal := protocol.Decode(data)
	if refusal != nil {
		s.send(refusal, true)
		return
	}
	switch f := f.(type) {
	case *protocol.Ping:
		s.send(&protocol.Pong{ID: f.ID}, true)
	case *protocol.Ack:
		s.gateway.deps.Directory.Send(sessionKey(f.SessionID), 0, &messages.AckFinals{Seq: f.Seq}, nil)
		s.free()
	case *protocol.StartSession, *protocol.ChatInput, *protocol.Explain, *protocol.Subscribe, *protocol.Unsubscribe,
		*protocol.Abort, *protocol.Withdraw, *protocol.KeepRunAlive, *protocol.GetTurn, *protocol.GetSession, *protocol.RecordEvents:
		in, refusal := commandOf(f)
		if refusal != nil {
			s.send(refusal, true)
			return
		}
		s.gateway.deps.Kernel.Tell(s.pid, in)
	}
}

// free gives back the place of a frame in flight.
func (s *socket) free() {
	select {
	case <-s.slots:
	default:
	}
}

// send puts a frame into the outbox; it never blocks. Answer: it is the direct answer to a frame of the client.
func (s *socket) send(f protocol.ServerFrame, answer bool) {
	data, err := protocol.Encode(f)
	if err != nil {
		s.log.LogAttrs(s.ctx, slog.LevelError, "frame does not encode", slog.Any(messages.AttrError, err))
		s.finish(restarting, closeWithin)
		return
	}
	if s.out.put(outFrame{data: data, answer: answer}) {
		s.log.LogAttrs(s.ctx, slog.LevelWarn, "slow client dropped")
		s.arm(closeWithin)
	}
}

// write is the one goroutine that writes frames.
func (s *socket) write() {
	defer close(s.flushed)
	beat := time.NewTicker(s.gateway.config.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			s.background.Go(s.ping)
		case <-s.out.wake:
			batch, end := s.out.take()
			if end != nil && end.drop {
				batch = nil
			}
			if err := s.flush(batch); err != nil {
				s.finish(ending{code: websocket.StatusProtocolError, reason: "the peer is gone", drop: true}, closeWithin)
				_, end = s.out.take()
			}
			if end != nil {
				_ = s.ws.Close(end.code, end.reason) // the timer bounds it
				return
			}
			s.out.reuse(batch)
		}
	}
}

// ping asks the peer for a sign of life. Whether one comes is seen where all bytes of the peer are.
func (s *socket) ping() {
	ctx, cancel := context.WithTimeout(s.ctx, s.gateway.config.Heartbeat)
	defer cancel()
	_ = s.ws.Ping(ctx)
}

// flush writes frames, small ones together.
func (s *socket) flush(batch []outFrame) error {
	for len(batch) > 0 {
		n, size := 1, len(batch[0].data)
		for n < len(batch) && size+len(batch[n].data) <= corkBytes {
			size += len(batch[n].data)
			n++
		}
		if err := s.writeTogether(batch[:n]); err != nil {
			return err
		}
		for _, f := range batch[:n] {
			if f.answer {
				s.free()
			}
		}
		s.out.written(n, size)
		batch = batch[n:]
	}
	return nil
}

func (s *socket) writeTogether(batch []outFrame) error {
	if len(batch) > 1 {
		s.wire.cork()
	}
	var err error
	for _, f := range batch {
		if err = s.ws.Write(context.Background(), websocket.MessageText, f.data); err != nil {
			break
		}
	}
	if len(batch) > 1 {
		err = errors.Join(err, s.wire.uncork())
	}
	return err
}

// finish ends the connection in good order: what waits is sent unless it is to be dropped, then comes the close handshake.
func (s *socket) finish(e ending, within time.Duration) {
	s.out.finish(e)
	s.arm(within)
}

// arm cuts the connection after a while; the earliest time counts.
func (s *socket) arm(within time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().Add(within)
	if s.force != nil {
		if !at.Before(s.forceAt) {
			return
		}
		s.force.Stop()
	}
	s.force, s.forceAt = time.AfterFunc(within, s.cut), at
}

func (s *socket) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.force != nil {
		s.force.Stop()
	}
}

// cut ends the connection without a word. It does not wait for anybody, as CloseNow would.
func (s *socket) cut() { _ = s.wire.Close() }
