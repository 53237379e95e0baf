package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// peer is a server's side of one connection. Its methods end the connection's goroutine when the client is gone.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
}

func (p *peer) send(frames ...protocol.ServerFrame) {
	for _, f := range frames {
		b, err := protocol.Encode(f)
		if err == nil {
			err = p.ws.Write(p.t.Context(), websocket.MessageText, b)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// next reads the client's next frame.
func (p *peer) next() protocol.ClientFrame {
	_, b, err := p.ws.Read(p.t.Context())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	frame, refusal := protocol.Decode(b)
	if refusal != nil {
		p.t.Errorf("the client sent %s: %v", b, refusal)
		panic(http.ErrAbortHandler)
	}
	return frame
}

// expect reads a frame of one type.
func expect[F protocol.ClientFrame](p *peer) F {
	frame := p.next()
	f, ok := frame.(F)
	if !ok {
		p.t.Errorf("the client sent %s", frame.FrameType())
		panic(http.ErrAbortHandler)
	}
	return f
}

// subscribed answers the subscription and gives it.
func (p *peer) subscribed(next uint64) *protocol.Subscribe {
	f := expect[*protocol.Subscribe](p)
	p.send(&protocol.Subscribed{ID: f.ID, SessionID: f.SessionID, NextSeq: next})
	return f
}

// accept answers an input.
func (p *peer) accept(turnID string) *protocol.ChatInput {
	f := expect[*protocol.ChatInput](p)
	p.send(&protocol.TurnAccepted{ID: f.ID, SessionID: f.SessionID, TurnID: turnID, RunID: "run", Disposition: "started", State: "running"})
	return f
}

func response(seq uint64, turnID string) *protocol.RouterResponse {
	f := &protocol.RouterResponse{RunID: "run", TurnID: turnID, TurnIDs: []string{turnID}, Content: "yes", Outcome: "completed"}
	f.SessionID, f.Seq = "s1", seq
	return f
}

// talking starts a conversation with a server whose connections are the given ones, in order; further ones are refused.
func talking(t *testing.T, opts client.TalkOptions, conns ...func(p *peer)) *client.Talk {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(count.Add(1))
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.Name}})
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow() //nolint:errcheck // the test is over
		if n > len(conns) {
			return
		}
		p := &peer{t: t, ws: ws}
		p.send(&protocol.Hello{Protocol: protocol.Name, Server: "test", MaxFrameBytes: 1 << 16, HeartbeatMS: 30000})
		conns[n-1](p)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "")
	require.NoError(t, err)
	talk := c.Talk(t.Context(), "s1", opts)
	t.Cleanup(talk.Close)
	return talk
}

// until reads notices up to the next of a type.
func until[N client.Notice](t *testing.T, talk *client.Talk) N {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case notice, open := <-talk.Notices():
			if !open {
				require.FailNow(t, "the conversation has ended", "%v", talk.Err())
			}
			if n, ok := notice.(N); ok {
				return n
			}
		case <-timeout:
			require.FailNow(t, "nothing came")
		}
	}
}

// wait keeps a connection open until the client closes it.
func (p *peer) wait() { _, _, _ = p.ws.Read(p.t.Context()) }

func TestTalkSendsAgainWithTheSameKeyWhatHadNoAnswer(t *testing.T) {
	t.Parallel()
	first := make(chan string, 1)
	talk := talking(t, client.TalkOptions{},
		func(p *peer) {
			p.subscribed(8)
			first <- expect[*protocol.ChatInput](p).IdempotencyKey
			// Lost before the answer: nobody knows whether it was admitted.
		},
		func(p *peer) {
			after := p.subscribed(9)
			if after.AfterSeq == nil || *after.AfterSeq != 7 {
				p.t.Errorf("subscribed after %v, want after 7", after.AfterSeq)
			}
			if key := p.accept("turn_1").IdempotencyKey; key == "" || key != <-first {
				p.t.Errorf("sent again with another key: %q", key)
			}
			p.send(response(9, "turn_1"))
			p.wait()
		},
	)
	input := &protocol.ChatInput{Text: "hello"}
	talk.Submit(input)
	require.False(t, until[*client.Connected](t, talk).Again)
	until[*client.Lost](t, talk)
	require.True(t, until[*client.Connected](t, talk).Again)
	require.Equal(t, "turn_1", until[*client.Accepted](t, talk).Turn.TurnID)
	settled := until[*client.Settled](t, talk)
	require.Equal(t, "answered", settled.State)
	require.Equal(t, "yes", settled.Response.Content)
}

func TestTalkFindsAnEndThatItMissed(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{},
		func(p *peer) {
			p.subscribed(1)
			p.accept("turn_1")
		},
		func(p *peer) {
			p.subscribed(50)
			p.send(&protocol.Gap{SessionID: "s1", FromSeq: 1, ToSeq: 49}, &protocol.Resync{SessionID: "s1", UpToSeq: 49})
			ask := expect[*protocol.GetTurn](p)
			p.send(&protocol.Turn{ID: ask.ID, TurnID: ask.TurnID, State: "answered", Content: "yes", Outcome: "completed"})
			p.wait()
		},
	)
	talk.Submit(&protocol.ChatInput{Text: "hello"})
	settled := until[*client.Settled](t, talk)
	require.Equal(t, "answered", settled.State)
	require.Nil(t, settled.Response)
	require.Equal(t, "yes", settled.Turn.Content)
}

func TestTalkShowsEachItemOnce(t *testing.T) {
	t.Parallel()
	notice := func(seq uint64, text string) *protocol.Notice {
		return &protocol.Notice{Item: protocol.Item{SessionID: "s1", Seq: seq}, Text: text}
	}
	talk := talking(t, client.TalkOptions{},
		func(p *peer) {
			p.subscribed(5)
			p.send(notice(5, "five"), notice(6, "six"))
		},
		func(p *peer) {
			if after := p.subscribed(8); after.AfterSeq == nil || *after.AfterSeq != 6 {
				p.t.Errorf("subscribed after %v, want after 6", after.AfterSeq)
			}
			p.send(notice(6, "six"), notice(7, "seven"))
			p.wait()
		},
	)
	for _, want := range []string{"five", "six", "seven"} {
		require.Equal(t, want, until[*client.Arrived](t, talk).Frame.(*protocol.Notice).Text)
	}
}

func TestTalkTriesAgainWhatIsRefusedForNow(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(1)
		first := expect[*protocol.ChatInput](p)
		p.send(&protocol.Error{ID: first.ID, Code: protocol.CodeUnavailable, Message: "later", Retryable: true})
		if again := p.accept("turn_1"); again.IdempotencyKey != first.IdempotencyKey {
			p.t.Error("sent again with another key")
		}
		p.wait()
	})
	talk.Submit(&protocol.ChatInput{Text: "hello"})
	until[*client.Accepted](t, talk)
}

func TestTalkTellsOfARefusal(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(1)
		p.send(&protocol.Error{ID: expect[*protocol.ChatInput](p).ID, Code: protocol.CodeQueueFull, Message: "20 wait", Retryable: true})
		p.wait()
	})
	input := &protocol.ChatInput{Text: "hello"}
	talk.Submit(input)
	require.Equal(t, protocol.CodeQueueFull, until[*client.Refused](t, talk).Err.Code)
}

func TestTalkSettlesATurnThatNoRunTook(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(1)
		p.accept("turn_1")
		p.accept("turn_2")
		p.send(
			&protocol.RunPhase{Item: protocol.Item{SessionID: "s1", Seq: 1}, RunID: "run", TurnIDs: []string{"turn_1"}, Phase: "dispatched"},
			&protocol.TurnState{Item: protocol.Item{SessionID: "s1", Seq: 2}, TurnID: "turn_2", State: "cancelled", Reason: "why not"},
			&protocol.TurnState{Item: protocol.Item{SessionID: "s1", Seq: 3}, TurnID: "turn_1", State: "answered", RunID: "run"},
			response(4, "turn_1"),
		)
		p.wait()
	})
	talk.Submit(&protocol.ChatInput{Text: "one"})
	talk.Submit(&protocol.ChatInput{Text: "two"})
	first := until[*client.Settled](t, talk)
	require.Equal(t, []string{"turn_2", "cancelled", "why not", "two"}, []string{first.TurnID, first.State, first.Reason, first.Input.Text})
	second := until[*client.Settled](t, talk)
	require.Equal(t, []string{"turn_1", "answered", "one"}, []string{second.TurnID, second.State, second.Input.Text})
	require.NotNil(t, second.Response, "the answer comes with the end, not before it")
}

func TestAbortOfWhateverRunsIsNotSentAgain(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{},
		func(p *peer) {
			p.subscribed(1)
			expect[*protocol.Abort](p)
		},
		func(p *peer) {
			p.subscribed(1)
			p.accept("turn_1") // what comes next is not the abort
			p.wait()
		},
	)
	talk.Abort("")
	until[*client.Lost](t, talk)
	talk.Submit(&protocol.ChatInput{Text: "hello"})
	until[*client.Accepted](t, talk)
}

func TestCloseSendsWhatWasPutBefore(t *testing.T) {
	t.Parallel()
	acked := make(chan uint64, 1)
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(1)
		acked <- expect[*protocol.Ack](p).Seq
	})
	until[*client.Connected](t, talk)
	talk.Ack(12)
	talk.Close()
	require.ErrorIs(t, talk.Err(), client.ErrClosed)
	require.Equal(t, uint64(12), <-acked)
}

func TestTalkDoesNotWaitForAServerThatItNeverReached(t *testing.T) {
	t.Parallel()
	c, err := client.New("http://127.0.0.1:1", "")
	require.NoError(t, err)
	talk := c.Talk(t.Context(), "s1", client.TalkOptions{})
	for range talk.Notices() {
		require.Fail(t, "nothing can have happened")
	}
	var gone *client.UnreachableError
	require.ErrorAs(t, talk.Err(), &gone)
}

func TestTalkGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{GiveUp: 200 * time.Millisecond}, func(p *peer) { p.subscribed(1) })
	for range talk.Notices() {
	}
	var gone *client.UnreachableError
	require.ErrorAs(t, talk.Err(), &gone)
}

func TestTalkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := client.New(server.URL, "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	talk := c.Talk(ctx, "s1", client.TalkOptions{})
	for range talk.Notices() {
		require.Fail(t, "nothing can have happened")
	}
	require.ErrorIs(t, talk.Err(), context.DeadlineExceeded)

	_, err = c.Dial(t.Context())
	require.ErrorContains(t, err, "404 Not Found: is this a correx-actors server?")
	_, err = c.Session(t.Context(), "s1")
	require.ErrorContains(t, err, "404 Not Found: is this a correx-actors server?")
}

// taken answers an input that does not get a run of its own.
func (p *peer) taken(turnID, disposition string) {
	f := expect[*protocol.ChatInput](p)
	p.send(&protocol.TurnAccepted{ID: f.ID, SessionID: f.SessionID, TurnID: turnID, RunID: "run", Disposition: disposition, State: "queued"})
}

func TestTalkWaitsForTheAnswerOfTheRunThatTookATurn(t *testing.T) {
	t.Parallel()
	item := func(seq uint64) protocol.Item { return protocol.Item{SessionID: "s1", Seq: seq} }
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(1)
		p.taken("turn_2", "merged")
		p.taken("turn_3", "steering")
		p.send(
			&protocol.TurnState{Item: item(1), TurnID: "turn_2", State: "merged", RunID: "run", MergedInto: "turn_1"},
			&protocol.RunPhase{Item: item(2), RunID: "run", TurnIDs: []string{"turn_1", "turn_2"}, Phase: "dispatched", Attempt: 1},
			&protocol.TurnState{Item: item(3), TurnID: "turn_3", State: "steered", RunID: "run", SteeredInto: "run"},
			&protocol.RouterResponse{Item: item(4), RunID: "run", TurnID: "turn_1", TurnIDs: []string{"turn_1", "turn_2"}, Content: "yes", Outcome: "completed"},
		)
		p.wait()
	})
	talk.Submit(&protocol.ChatInput{Text: "b"})
	talk.Submit(&protocol.ChatInput{Text: "c"})
	for _, turn := range []string{"turn_2", "turn_3"} {
		settled := until[*client.Settled](t, talk)
		require.Equal(t, turn, settled.TurnID)
		require.Equal(t, "answered", settled.State)
		require.NotNil(t, settled.Response)
		require.Equal(t, "yes", settled.Response.Content)
	}
}

func TestTalkIsNotSettledByATurnWhoseRunGoesOn(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(8)
		p.taken("turn_2", "duplicate")
		ask := expect[*protocol.GetTurn](p)
		p.send(&protocol.Turn{ID: ask.ID, TurnID: "turn_2", State: "steered", RunID: "run", SteeredInto: "run"}, response(9, "turn_1"))
		p.wait()
	})
	talk.Submit(&protocol.ChatInput{Text: "b"})
	settled := until[*client.Settled](t, talk)
	require.Equal(t, "answered", settled.State)
	require.NotNil(t, settled.Response, "the answer of the run, not the word that it was taken")
}

func TestTalkTellsOfAMergedTurnByTheAnswerThatItMissed(t *testing.T) {
	t.Parallel()
	talk := talking(t, client.TalkOptions{}, func(p *peer) {
		p.subscribed(8)
		p.taken("turn_2", "duplicate")
		ask := expect[*protocol.GetTurn](p)
		p.send(&protocol.Turn{ID: ask.ID, TurnID: "turn_2", State: "merged", RunID: "run", MergedInto: "turn_1", Content: "yes", Outcome: "completed"})
		p.wait()
	})
	talk.Submit(&protocol.ChatInput{Text: "b"})
	settled := until[*client.Settled](t, talk)
	require.Equal(t, "answered", settled.State)
	require.Equal(t, "yes", settled.Turn.Content)
}
