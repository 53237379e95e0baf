package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tmaxmax/go-sse"

	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

func TestHTTPTurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	status, accepted, header := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"id":"a","text":"hi"}`,
		"Idempotency-Key", "k1", "X-Request-Id", "req-7")
	require.Equal(t, http.StatusAccepted, status)
	require.Equal(t, "req-7", header.Get("X-Request-Id"))
	require.Equal(t, "turn_accepted", accepted.kind())
	require.Equal(t, "a", accepted.text("id"))
	require.Equal(t, "started", accepted.text("disposition"))
	path := "/v1/sessions/s1/turns/" + accepted.text("turn_id")
	require.Eventually(t, func() bool {
		status, turn, _ := s.call(http.MethodGet, path, "")
		return status == http.StatusOK && turn.text("state") == "answered" && turn.text("content") == "Hello there"
	}, patience, 5*time.Millisecond)
	status, again, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi","idempotency_key":"k1"}`)
	require.Equal(t, http.StatusAccepted, status)
	require.Equal(t, "duplicate", again.text("disposition"))
	require.Equal(t, accepted["turn_id"], again["turn_id"])
}

func TestHTTPTurnWaits(t *testing.T) {
	t.Parallel()
	s := start(t)
	status, final, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"hi"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "router_response", final.kind())
	require.Equal(t, "Hello there", final.text("content"))
	require.NotZero(t, final.number("seq"))
	require.Equal(t, "stop", final.text("finish_reason"))

	// The same again: its answer is there already.
	status, again, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"hi"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "router_response", again.kind())
	require.Equal(t, "Hello there", again.text("content"))
	require.Equal(t, final["run_id"], again["run_id"])
	require.Equal(t, "completed", again.text("outcome"))
	require.NotContains(t, again, "seq", "its item is not at hand, so its number is not known")

	status, refused, _ := s.call(http.MethodPost, "/v1/sessions/s2/turns?wait=30s", `{"text":"hi","resume":{"engine":"e","token":"t"}}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "unsupported_resume_engine", refused.code())
}

func TestHTTPWaitAttachesToARunningDuplicate(t *testing.T) {
	t.Parallel()
	s := start(t)
	gate := make(chan struct{})
	s.model.Call(testkit.WaitFor(gate), testkit.Stream("once"))
	status, first, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=1ms", `{"text":"hi"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusAccepted, status, "time is up, the turn goes on")
	require.Equal(t, "turn_accepted", first.kind())
	time.AfterFunc(50*time.Millisecond, func() { close(gate) })
	status, final, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"hi"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "once", final.text("content"))
	require.Equal(t, first["run_id"], final["run_id"])
	s.model.ExpectCalls(1)
}

func TestHTTPWaitTellsOfATurnThatNoRunTook(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.model.Call(testkit.HangUntilCancel())
	s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"first"}`)
	answered := make(chan frame, 1)
	go func() {
		_, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"second"}`)
		answered <- f
	}()
	require.Eventually(t, func() bool {
		queue, _ := s.state("s1")["queue"].([]any)
		return len(queue) == 1
	}, patience, 5*time.Millisecond)
	status, aborted, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", `{"scope":"session"}`)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, aborted["turn_ids"], 2)
	f := <-answered
	require.Equal(t, "turn", f.kind(), "%v", f)
	require.Equal(t, "cancelled", f.text("state"))
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.gateway.MaxBodyBytes = 100_000 })
	s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
	for _, tt := range []struct {
		method, path, body string
		headers            []string
		status             int
		code               string
	}{
		{"GET", "/", "", nil, 404, "unknown_type"},
		{"GET", "/v1/nothing", "", nil, 404, "unknown_type"},
		{"GET", "/v1/sessions/s1/nothing", "", nil, 404, "unknown_type"},
		{"DELETE", "/v1/sessions/s1", "", nil, 405, "unknown_type"},
		{"GET", "/v1/sessions/s1/turns", "", nil, 405, "unknown_type"},
		{"POST", "/healthz", "", nil, 405, "unknown_type"},
		{"GET", "/v1/sessions/nobody", "", nil, 404, "unknown_session"},
		{"GET", "/v1/sessions/nobody/events", "", nil, 404, "unknown_session"},
		{"GET", "/v1/sessions/nobody/events", "", []string{"Accept", "text/event-stream"}, 404, "unknown_session"},
		{"GET", "/v1/sessions/nobody/context", "", nil, 404, "unknown_session"},
		{"GET", "/v1/sessions/nobody/turns/t", "", nil, 404, "unknown_session"},
		{"POST", "/v1/sessions/nobody/abort", "", nil, 404, "unknown_session"},
		{"GET", "/v1/sessions/no%20spaces", "", nil, 400, "invalid_session_id"},
		{"GET", "/v1/sessions/" + strings.Repeat("x", 201) + "/events", "", nil, 400, "invalid_session_id"},
		{"POST", "/v1/sessions/no%20spaces/turns", `{"text":"hi"}`, nil, 400, "invalid_session_id"},
		{"GET", "/v1/sessions/s1/turns/t", "", nil, 404, "unknown_turn"},
		{"GET", "/v1/sessions?state=sleepy", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions?limit=0", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions?limit=1001", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions?after=%20", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions/s1/events?after=-1", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions/s1/events?limit=x", "", nil, 400, "invalid_field"},
		{"GET", "/v1/sessions/s1/events", "", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/turns", `{`, nil, 400, "bad_frame"},
		{"POST", "/v1/sessions/s1/turns", ``, nil, 400, "bad_frame"},
		{"POST", "/v1/sessions/s1/turns", `{"text":" "}`, nil, 400, "empty_input"},
		{"POST", "/v1/sessions/s1/turns", `{"text":"` + strings.Repeat("x", 40_000) + `"}`, nil, 413, "input_too_large"},
		{"POST", "/v1/sessions/s1/turns", `{"text":"` + strings.Repeat("x", 100_000) + `"}`, nil, 413, "input_too_large"},
		{"POST", "/v1/sessions/s1/turns?wait=soon", `{"text":"hi"}`, nil, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/turns?wait=6m", `{"text":"hi"}`, nil, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/turns", `{"text":"hi","idempotency_key":"a"}`, []string{"Idempotency-Key", "b"}, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/turns", `{"text":"hi","queue_mode":"never"}`, nil, 400, "invalid_queue_mode"},
		{"POST", "/v1/sessions/s1/explain", `{"text":"hi","queue_mode":"never"}`, nil, 400, "invalid_queue_mode"},
		{"POST", "/v1/sessions/s1/explain", ``, nil, 400, "bad_frame"},
		{"POST", "/v1/sessions/s1/explain", `{"text":" "}`, nil, 400, "empty_input"},
		{"POST", "/v1/sessions/s1/explain", `{"text":"hi","idempotency_key":"a"}`, []string{"Idempotency-Key", "b"}, 400, "invalid_field"},
		{"GET", "/v1/sessions/s1/explain", "", nil, 405, "unknown_type"},
		{"DELETE", "/v1/sessions/s1/turns/t", "", nil, 404, "unknown_turn"},
		{"DELETE", "/v1/sessions/nobody/turns/t", "", nil, 404, "unknown_session"},
		{"DELETE", "/v1/sessions/no%20spaces/turns/t", "", nil, 400, "invalid_session_id"},
		{"POST", "/v1/sessions/s1/events", `{"events":[]}`, nil, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/events", `{"events":[{"type":"stage_started"}]}`, nil, 400, "invalid_event"},
		{"POST", "/v1/sessions/s1/events", `{"events":[{"type":"steering_note_added","content":"x"}]}`, nil, 403, "forbidden_event"},
		{"POST", "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`, []string{"If-Match", `"9"`}, 412, "sequence_conflict"},
		{"POST", "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`, []string{"If-Match", `W/"1"`}, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/events", `{"events":[{"type":"custom"}],"expected_sequence":1}`, []string{"If-Match", `2`}, 400, "invalid_field"},
		{"POST", "/v1/sessions/s1/abort", `{"run_id":"run_1"}`, nil, 404, "unknown_run"},
		{"POST", "/v1/sessions/s1/abort", `{"scope":"world"}`, nil, 400, "invalid_field"},
	} {
		status, body, header := s.call(tt.method, tt.path, tt.body, tt.headers...)
		name := fmt.Sprintf("%s %.60s %.60s %v", tt.method, tt.path, tt.body, tt.headers)
		require.Equal(t, tt.code, body.code(), name)
		require.Equal(t, tt.status, status, name)
		require.NotEmpty(t, header.Get("X-Request-Id"))
		if tt.status == http.StatusMethodNotAllowed {
			require.NotEmpty(t, header.Get("Allow"))
		}
	}
	require.EqualValues(t, 1, s.state("s1").number("event_sequence"))
}

func TestHTTPQueueFullSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.session.Core.QueueLimit = 1 })
	s.model.Call(testkit.HangUntilCancel())
	for range 2 {
		s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi"}`)
	}
	status, body, header := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi"}`)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "queue_full", body.code())
	require.Equal(t, "1", header.Get("Retry-After"))
}

func TestHTTPSessions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.model.Call(testkit.HangUntilCancel())
	s.call(http.MethodPost, "/v1/sessions/b/turns", `{"text":"hi"}`)
	for _, id := range []string{"a", "c"} {
		s.call(http.MethodPost, "/v1/sessions/"+id+"/events", `{"events":[{"type":"custom"}]}`)
	}
	ids := func(query string) (list []string, next string) {
		status, page, _ := s.call(http.MethodGet, "/v1/sessions"+query, "")
		require.Equal(t, http.StatusOK, status)
		for _, row := range page["sessions"].([]any) {
			list = append(list, frame(row.(map[string]any)).text("session_id"))
		}
		return list, page.text("next")
	}
	list, next := ids("")
	require.Equal(t, []string{"a", "b", "c"}, list)
	require.Empty(t, next)
	list, next = ids("?limit=2")
	require.Equal(t, []string{"a", "b"}, list)
	list, next = ids("?limit=2&after=" + next)
	require.Equal(t, []string{"c"}, list)
	require.Empty(t, next)
	list, _ = ids("?state=busy")
	require.Equal(t, []string{"b"}, list)
	list, _ = ids("?state=passivated")
	require.Empty(t, list)

	status, session, _ := s.call(http.MethodGet, "/v1/sessions/b", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "session", session.kind())
	require.NotNil(t, session["state"].(map[string]any)["active_run"])
	status, pack, _ := s.call(http.MethodGet, "/v1/sessions/b/context?model=m", "")
	require.Equal(t, http.StatusOK, status)
	require.NotEmpty(t, pack["entries"])
	require.NotZero(t, pack.number("budget"))
	status, _, header := s.call(http.MethodHead, "/v1/sessions/b", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "no-store", header.Get("Cache-Control"))
}

func TestHTTPEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	for n, headers := range [][]string{{"If-Match", `"0"`}, {"If-Match", "2"}, nil} {
		body := fmt.Sprintf(`{"id":"x","events":[{"type":"custom","n":%d.50},{"type":"workflow_started","workflow_id":"w"}]}`, n)
		status, recorded, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", body, headers...)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "events_recorded", recorded.kind())
		require.EqualValues(t, 2*n+1, recorded.number("first_sequence"))
		require.EqualValues(t, 2*n+2, recorded.number("last_sequence"))
	}
	resp := s.request(t.Context(), http.MethodGet, "/v1/sessions/s1/events?after=2&limit=3", "")
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(data), `"event":{"type":"custom","n":1.50}`, "as the host wrote it")
	status, page, _ := s.call(http.MethodGet, "/v1/sessions/s1/events?after=2&limit=3", "")
	require.Equal(t, http.StatusOK, status)
	require.Len(t, page["events"], 3)
	require.EqualValues(t, 5, page.number("next"))
	_, page, _ = s.call(http.MethodGet, "/v1/sessions/s1/events?after=6", "")
	require.Equal(t, frame{"events": []any{}, "next": 6.0}, page)
}

func TestHTTPEventsPageIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := start(t)
	big := `{"events":[{"type":"custom","text":"` + strings.Repeat("x", 240_000) + `"}]}`
	for range 5 {
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", big)
		require.Equal(t, http.StatusOK, status)
	}
	seen := 0
	for next := uint64(0); seen < 5; {
		_, page, _ := s.call(http.MethodGet, fmt.Sprintf("/v1/sessions/s1/events?after=%d", next), "")
		list := page["events"].([]any)
		require.NotEmpty(t, list)
		require.LessOrEqual(t, len(list), 4)
		seen += len(list)
		next = page.number("next")
	}
}

func TestHTTPEventStreamStaysOpen(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"one"},{"type":"two"},{"type":"three"}]}`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp := s.request(ctx, http.MethodGet, "/v1/sessions/s1/events", "", "Accept", "text/event-stream", "Last-Event-ID", "1")
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	want := 2
	for e, err := range sse.Read(resp.Body, nil) {
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(want), e.LastEventID)
		require.Equal(t, "session_event", e.Type)
		require.Contains(t, e.Data, fmt.Sprintf(`"sequence":%d,`, want))
		if want == 6 {
			break
		}
		if want++; want > 3 {
			s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"more"}]}`)
		}
	}
}

func TestHTTPEventStreamSendsSignsOfLife(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"one"}]}`)
		begun := time.Now()
		resp := s.request(t.Context(), http.MethodGet, "/v1/sessions/s1/events?after=1", "", "Accept", "text/event-stream")
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for range 3 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, ": \n", line)
			_, err = lines.ReadString('\n')
			require.NoError(t, err)
		}
		require.Equal(t, 90*time.Second, time.Since(begun))
	})
}

func TestHTTPBodyThatNeverComesIsGivenUp(t *testing.T) {
	for route, want := range map[string]int{
		"POST /v1/sessions/s1/turns":           http.StatusBadRequest,
		"POST /v1/sessions/s1/turns?wait=soon": http.StatusBadRequest,
		"POST /v1/nothing":                     http.StatusNotFound,
	} {
		t.Run(route, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *server, network *pipes) {
				conn, err := network.dial(t.Context(), "", "")
				require.NoError(t, err)
				_, err = io.WriteString(conn, route+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
				require.NoError(t, err)
				begun := time.Now()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				defer resp.Body.Close()
				require.Equal(t, want, resp.StatusCode)
				require.Equal(t, 20*time.Second, time.Since(begun))
				require.NoError(t, conn.Close())
			})
		})
	}
}

func TestReadyzFollowsTheJournal(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, s.journal.Close())
	status, body, _ := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "unavailable", body.code())
}

func TestHTTPJournalErrors(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"one"}]}`)
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{persistence.ErrCorrupt, http.StatusServiceUnavailable, "quarantined"},
		{persistence.ErrDeleted, http.StatusGone, "session_deleted"},
		{persistence.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	} {
		s.journal.FailReads(1, tt.err)
		status, body, _ := s.call(http.MethodGet, "/v1/sessions/s1/events", "")
		require.Equal(t, tt.status, status)
		require.Equal(t, tt.code, body.code())
	}
}
