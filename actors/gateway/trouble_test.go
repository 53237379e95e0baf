package gateway_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// panicky is a journal with a defect.
type panicky struct{ persistence.Journal }

func (panicky) Healthy() error { panic("defect") }

func (j panicky) Replay(
	ctx context.Context, key messages.Key, stream messages.Stream, after uint64,
) iter.Seq2[messages.Record, error] {
	if after == 7 {
		panic("defect")
	}
	return j.Journal.Replay(ctx, key, stream, after)
}

func TestAPanicIsTheFailureOfOneRequest(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.journal = panicky{set.journal} })
	c := s.dial()
	c.goesOn(t)
	status, body, _ := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Equal(t, "internal", body.code())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/other/events?after=7", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/event-stream")
	_, err = s.http.Do(req) //nolint:bodyclose // there is none
	require.Error(t, err, "an answer that has begun is cut, so that nobody takes it for whole")
	c.goesOn(t)
}

func TestAPanicEndsOneConnection(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.journal = panicky{set.journal} })
	c, other := s.dial(), s.dial()
	c.goesOn(t)
	c.send("subscribe", "session_id", "other", "events", true, "after_event", 7)
	code, _ := c.closed()
	require.Equal(t, websocket.StatusServiceRestart, code)
	other.goesOn(t)

	for _, pid := range s.gateway.Connections() {
		s.sys.Tell(pid, (*session.Lost)(nil)) // the actor takes it for a message of a session
	}
	code, _ = other.closed()
	require.Equal(t, websocket.StatusServiceRestart, code)
	s.dial().goesOn(t)
}

// within takes the next frame, which may take long.
func (c *client) within(d time.Duration) frame {
	c.t.Helper()
	f, err := c.readFor(d)
	require.NoError(c.t, err)
	return f
}

func TestARequestWithoutAnAnswerIsAnsweredInTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c := s.dial()
		s.journal.Hold()
		begun := time.Now()
		c.send("chat_input", "id", "1", "session_id", "s1", "text", "hi", "idempotency_key", "k")
		time.Sleep(30 * time.Second)
		c.send("start_session", "id", "2", "session_id", "s2")
		for _, id := range []string{"1", "2"} {
			f := c.within(5 * time.Minute)
			require.Equal(t, id, f.text("id"))
			require.Equal(t, "unavailable", f.text("code"))
			require.Equal(t, true, f["retryable"])
		}
		require.Equal(t, 90*time.Second, time.Since(begun))
		s.journal.Release()
		synctest.Wait()
		// The late answer is not taken for another one's, and the turn is there.
		require.Equal(t, "duplicate", c.ask("chat_input", "session_id", "s1", "text", "hi", "idempotency_key", "k").text("disposition"))
	})
}

func TestASessionThatCannotBeFollowedAnyMoreIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c, other := s.dial(), s.dial()
		c.send("chat_input", "session_id", "s1", "text", "hi")
		c.until("router_response")
		s.journal.FailClaims(1, &persistence.CorruptError{Key: messages.NewKey("s1"), Seq: 1, Reason: "test"})
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		other.send("record_events", "session_id", "s1", "events", events("custom"))
		f := c.expect("error")
		require.Equal(t, "quarantined", f.text("code"))
		require.Equal(t, "s1", f.text("session_id"))
		require.NotContains(t, f, "id")
		c.goesOn(t)
	})
}

func TestRenewalIsTriedForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c := s.dial()
		c.send("chat_input", "session_id", "s1", "text", "hi")
		c.until("router_response")
		begun := time.Now()
		require.NoError(t, s.dir.Stop(t.Context()))
		f := c.within(5 * time.Minute)
		require.Equal(t, "error", f.kind())
		require.Equal(t, "unavailable", f.text("code"))
		require.Equal(t, "s1", f.text("session_id"))
		require.Greater(t, time.Since(begun), 20*time.Second)
		require.Less(t, time.Since(begun), time.Minute)
		require.Equal(t, "pong", c.ask("ping").kind())
	})
}

func TestHTTPWaitGoesOnThroughARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.HangUntilCancel())
		answered := make(chan frame, 1)
		go func() {
			_, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=5m", `{"text":"hi"}`)
			answered <- f
		}()
		synctest.Wait()
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
		require.Equal(t, http.StatusServiceUnavailable, status)
		f := <-answered
		require.Equal(t, "router_response", f.kind(), "%v", f)
		require.Equal(t, "Hello there", f.text("content"))
	})
}

// The end of a waiting turn is stored, but the journal cannot say so: the session begins anew, and has nobody told.
func TestHTTPWaitLearnsOfAnEndWhoseOutcomeWasUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.HangUntilCancel())
		s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"first"}`)
		answered := make(chan frame, 1)
		go func() {
			_, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=5m", `{"text":"hi","idempotency_key":"k"}`)
			answered <- f
		}()
		synctest.Wait()
		_, turn, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi","idempotency_key":"k"}`)
		s.journal.UnknownNext(true)
		s.journal.FailNext(20, persistence.ErrUnknown)
		begun := time.Now()
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", `{"scope":"turn","turn_id":"`+turn.text("turn_id")+`"}`)
		require.Equal(t, http.StatusServiceUnavailable, status)
		f := <-answered
		require.Equal(t, "cancelled", f.text("state"), "%v", f)
		require.Less(t, time.Since(begun), 2*time.Minute)
	})
}

func TestAnEventStreamGoesOnThroughARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"one"}]}`)
		resp := s.request(t.Context(), http.MethodGet, "/v1/sessions/s1/events?after=1", "", "Accept", "text/event-stream")
		defer resp.Body.Close()
		synctest.Wait()
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
			status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"two"}]}`)
			require.Equal(t, want, status)
		}
		buf := make([]byte, 7)
		_, err = io.ReadFull(resp.Body, buf)
		require.NoError(t, err)
		require.Equal(t, "id: 2\ne", string(buf))
	})
}
