package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// pipes is a network in memory: it works in virtual time, and a peer that does not read stops its writer at once.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7711} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs a test of a server over pipes, in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, s *server, network *pipes), change ...func(*settings)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		s := serve(t, append(change, func(set *settings) { set.listener, set.dial = network, network.dial })...)
		defer s.stop() // also when the test fails: a bubble must end empty
		test(t, s, network)
	})
}

// rawSocket upgrades a connection and leaves everything else to the test.
func rawSocket(t *testing.T, network *pipes) net.Conn {
	t.Helper()
	conn, err := network.dial(t.Context(), "", "")
	require.NoError(t, err)
	upgradeRaw(t, conn)
	return conn
}

// drained reads until the connection ends and gives the time that it lasted.
func drained(t *testing.T, conn net.Conn) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	return time.Since(begun)
}

func TestASilentPeerIsGoneAfterTwoHeartbeats(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *server, network *pipes) {
		require.Equal(t, time.Minute, drained(t, rawSocket(t, network)))
	})
}

func TestAPeerThatIsGoneDoesNotDisturbItsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, network *pipes) {
		s.model.Call(testkit.Delay(90*time.Second), testkit.Stream("late"))
		conn, err := network.dial(t.Context(), "", "")
		require.NoError(t, err)
		r := upgradeRaw(t, conn)
		go func() { _, _ = io.Copy(io.Discard, r) }()
		_, err = conn.Write(masked(`{"type":"chat_input","session_id":"s1","text":"hi"}`))
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Len(t, s.state("s1")["conversation_history"], 2)
		require.NoError(t, conn.Close())
	})
}

// masked gives the bytes of a client's text frame; the mask is zero.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

func TestAPeerThatAnswersPingsStays(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c := s.dial()
		got := make(chan error, 1)
		go func() {
			_, _, err := c.ws.Read(t.Context())
			got <- err
		}()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.Empty(t, got, "the connection is open")
		c.send("ping")
		require.NoError(t, <-got)
	})
}

func TestAPeerThatPingsItselfStays(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *server, network *pipes) {
		conn := rawSocket(t, network)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, conn)
		}()
		for range 100 {
			time.Sleep(59 * time.Second)
			_, err := conn.Write([]byte{0x89, 0x80, 0, 0, 0, 0})
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		<-ended
	})
}

func TestAPeerThatReadsNothingIsCut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, network *pipes) {
		conn := rawSocket(t, network)
		begun := time.Now()
		for ended := false; !ended; { // a write fails once the server has ended the connection
			time.Sleep(9 * time.Second)
			_, err := conn.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
			ended = err != nil
			require.Less(t, time.Since(begun), 80*time.Second)
		}
		require.NoError(t, conn.Close())
	})
}

func TestASlowClientIsClosedAndCanResume(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		slow, well := s.dial(), s.dial()
		slow.ask("subscribe", "session_id", "s1")
		well.ask("subscribe", "session_id", "s1")
		// The slow one does not read while the other one does.
		var items []frame
		for range 20 {
			require.Equal(t, "turn_accepted", well.askAmong("chat_input", &items, "session_id", "s1", "text", "hi").kind())
			_, more := well.until("router_response")
			items = append(items, more...)
		}
		requireNumbered(t, items)
		time.Sleep(4 * time.Second) // less than it is given to take what it was promised
		var got []frame
		var err error
		for err == nil {
			var f frame
			if f, err = slow.read(); err == nil {
				got = append(got, f)
			}
		}
		require.Equal(t, websocket.StatusTryAgainLater, websocket.CloseStatus(err), "%v", err)
		require.Equal(t, items[:len(got)], got, "what it got is whole so far")
		require.Less(t, len(got), 60, "no more than its outbox waited for it")

		again := s.dial()
		again.ask("subscribe", "session_id", "s1", "after_seq", got[len(got)-1].number("seq"))
		for _, want := range items[len(got) : len(got)+10] {
			require.Equal(t, want, again.next())
		}
	}, func(set *settings) { set.gateway.OutboxFrames = 50 })
}

// askAmong is ask that keeps the items that come before the answer.
func (c *client) askAmong(kind string, items *[]frame, fields ...any) frame {
	c.t.Helper()
	c.send(kind, append(fields, "id", "ask")...)
	for {
		f := c.next()
		if f.text("id") == "ask" {
			return f
		}
		*items = append(*items, f)
	}
}

func TestAClientThatNeverReadsIsCutAtTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		stuck, well := s.dial(), s.dial()
		stuck.ask("subscribe", "session_id", "s1")
		for range 20 {
			well.ask("chat_input", "session_id", "s1", "text", "hi")
			well.until("router_response")
		}
		time.Sleep(6 * time.Second)
		for {
			if _, err := stuck.read(); err != nil {
				require.Equal(t, websocket.StatusCode(-1), websocket.CloseStatus(err), "cut without a word: %v", err)
				break
			}
		}
		well.goesOn(t)
	}, func(set *settings) { set.gateway.OutboxBytes = 20_000 })
}

func TestAClientThatAsksWithoutReadingIsNotReadFrom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, network *pipes) {
		conn := rawSocket(t, network)
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
		sent := 0
		for ; sent < 1000; sent++ {
			if _, err := conn.Write(masked(`{"type":"get_session","session_id":"nobody"}`)); err != nil {
				break
			}
		}
		require.Less(t, sent, 20, "the server stops reading")
		require.NoError(t, conn.Close())
		s.dial().goesOn(t)
	}, func(set *settings) { set.gateway.MaxInFlight = 8 })
}

func TestASlowEventReaderHoldsNothingInMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		slow, host := s.dial(), s.dial()
		slow.ask("subscribe", "session_id", "s1", "events", true)
		for range 100 {
			host.ask("record_events", "session_id", "s1", "events", events("custom"))
		}
		time.Sleep(20 * time.Second)
		for i := range 100 { // the log is read as fast as the client reads, and the connection stays
			require.EqualValues(t, i+1, slow.expect("session_event").number("sequence"))
		}
		require.Equal(t, "pong", slow.ask("ping").kind())
	}, func(set *settings) { set.gateway.OutboxFrames = 10 })
}

func TestAnOldConnectionCanBeUpgraded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		status, _, _ := s.call(http.MethodGet, "/healthz", "")
		require.Equal(t, http.StatusOK, status)
		time.Sleep(time.Minute) // longer than an answer may take
		s.dial().goesOn(t)
	})
}

func TestAReplacedSubscriptionSendsNoMoreEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c, host := s.dial(), s.dial()
		for range 100 {
			host.ask("record_events", "session_id", "s1", "events", events("custom"))
		}
		c.send("subscribe", "id", "first", "session_id", "s1", "events", true, "after_event", 0)
		synctest.Wait() // most events wait for room
		c.send("subscribe", "id", "second", "session_id", "s1")
		synctest.Wait() // it is answered
		var answers []string
		for f := c.next(); f.text("id") != "second"; f = c.next() {
			answers = append(answers, f.kind())
		}
		require.Equal(t, "subscribed", answers[0])
		require.Less(t, len(answers), 50)
		time.Sleep(time.Second)
		c.send("ping")
		c.expect("pong")
	}, func(set *settings) { set.gateway.OutboxFrames = 10 })
}

func TestStopClosesEverySocketInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		s := serve(t, func(set *settings) { set.listener, set.dial = network, network.dial })
		gate := make(chan struct{})
		s.model.Call(testkit.WaitFor(gate), testkit.Stream("last words"))
		reader, stuck := s.dial(), rawSocket(t, network)
		reader.ask("chat_input", "session_id", "s1", "text", "hi")
		close(gate)
		synctest.Wait() // the whole answer waits in the outbox
		begun := time.Now()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			s.stop()
		}()
		final, _ := reader.until("router_response")
		require.Equal(t, "last words", final.text("content"), "what was sent before is flushed")
		code, _ := reader.closed()
		require.Equal(t, websocket.StatusGoingAway, code)
		<-stopped
		require.LessOrEqual(t, time.Since(begun), 2*time.Second, "one that does not read is cut")
		require.NoError(t, stuck.Close())
		_, err := network.dial(t.Context(), "", "")
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestStopEndsWaitingRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		s := serve(t, func(set *settings) { set.listener, set.dial = network, network.dial })
		s.model.Call(testkit.HangUntilCancel())
		waited := make(chan int, 1)
		go func() {
			status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=5m", `{"text":"hi"}`)
			waited <- status
		}()
		synctest.Wait()
		stream := s.request(t.Context(), http.MethodGet, "/v1/sessions/s1/events", "", "Accept", "text/event-stream")
		defer stream.Body.Close()
		synctest.Wait()
		begun := time.Now()
		s.stop()
		require.LessOrEqual(t, time.Since(begun), 2*time.Second, "also a stream that nobody reads")
		require.Equal(t, http.StatusAccepted, <-waited, "the turn goes on")
	})
}
