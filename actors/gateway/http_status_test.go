package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// endpoint is a request that would be served, once "{id}" is put in.
type endpoint struct {
	method, path, body string
	headers            []string
	// makes a session that does not exist.
	makes bool
}

func (e endpoint) String() string {
	return strings.TrimSpace(fmt.Sprint(e.method, " ", e.path, e.headers))
}

func (e endpoint) of(id string) endpoint {
	e.path = strings.ReplaceAll(e.path, "{id}", id)
	return e
}

// sessionEndpoints has every route of a session, and both forms of those that have two.
func sessionEndpoints() []endpoint {
	stream := []string{"Accept", "text/event-stream"}
	return []endpoint{
		{method: "POST", path: "/v1/sessions/{id}/turns", body: `{"text":"hi"}`, makes: true},
		{method: "POST", path: "/v1/sessions/{id}/turns?wait=30s", body: `{"text":"hi"}`, makes: true},
		{method: "POST", path: "/v1/sessions/{id}/turns", body: `{"text":"hi"}`, headers: stream, makes: true},
		{method: "POST", path: "/v1/sessions/{id}/events", body: `{"events":[{"type":"custom"}]}`, makes: true},
		{method: "GET", path: "/v1/sessions/{id}/turns/turn_1"},
		{method: "DELETE", path: "/v1/sessions/{id}/turns/turn_1"},
		{method: "GET", path: "/v1/sessions/{id}/output", headers: stream},
		{method: "GET", path: "/v1/sessions/{id}/output?after_seq=0"},
		{method: "GET", path: "/v1/sessions/{id}/events"},
		{method: "GET", path: "/v1/sessions/{id}/events", headers: stream},
		{method: "GET", path: "/v1/sessions/{id}/stages"},
		{method: "GET", path: "/v1/sessions/{id}/context"},
		{method: "GET", path: "/v1/sessions/{id}"},
		{method: "POST", path: "/v1/sessions/{id}/abort", body: `{}`},
		{method: "POST", path: "/v1/sessions/{id}/explain", body: `{"text":"hi"}`},
	}
}

func (s *server) refuses(t *testing.T, e endpoint, status int, code string) http.Header {
	t.Helper()
	got, body, header := s.call(e.method, e.path, e.body, e.headers...)
	require.Equal(t, code, body.code(), "%s: %v", e, body)
	require.Equal(t, status, got, "%s", e)
	require.NotEmpty(t, body["error"].(map[string]any)["message"])
	require.Equal(t, slices.Contains([]int{http.StatusTooManyRequests}, status) ||
		status == http.StatusServiceUnavailable && body["error"].(map[string]any)["retryable"] == true, header.Get("Retry-After") != "", "%s", e)
	return header
}

func TestEveryRouteOfASessionRefusesAlike(t *testing.T) {
	t.Parallel()
	s := start(t)
	deleted := messages.NewKey("deleted")
	s.call(http.MethodPost, "/v1/sessions/deleted/events", `{"events":[{"type":"custom"}]}`)
	claim, err := s.journal.Claim(t.Context(), deleted, persistence.Owner{Node: "n1"})
	require.NoError(t, err)
	require.NoError(t, s.journal.Delete(t.Context(), deleted, persistence.Expect(claim)))
	s.call(http.MethodPost, "/v1/sessions/deleted/events", `{"events":[{"type":"custom"}]}`) // who had it learns of it
	for _, e := range sessionEndpoints() {
		s.refuses(t, e.of("no%20spaces"), http.StatusBadRequest, "invalid_session_id")
		s.refuses(t, e.of(strings.Repeat("x", 201)), http.StatusBadRequest, "invalid_session_id")
		s.refuses(t, e.of("deleted"), http.StatusGone, "session_deleted")
		if !e.makes {
			s.refuses(t, e.of("nobody"), http.StatusNotFound, "unknown_session")
		}
		foreign := e.of("s1")
		foreign.headers = append(slices.Clone(e.headers), "Host", "evil.example")
		s.refuses(t, foreign, http.StatusForbidden, "forbidden")
		foreign.headers = append(slices.Clone(e.headers), "Origin", "https://evil.example")
		s.refuses(t, foreign, http.StatusForbidden, "forbidden")
	}
	_, page, _ := s.call(http.MethodGet, "/v1/sessions", "")
	require.Empty(t, page["sessions"], "nothing was made")
}

func TestEveryRouteOfADamagedSessionSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, e := range sessionEndpoints() {
		id := fmt.Sprintf("damaged-%d", i)
		s.call(http.MethodPost, "/v1/sessions/"+id+"/events", `{"events":[{"type":"custom"}]}`)
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey(messages.SessionID(id)))
		require.NoError(t, err)
		s.call(http.MethodPost, "/v1/sessions/"+id+"/events", `{"events":[{"type":"custom"}]}`)
		s.journal.FailClaims(1, &persistence.CorruptError{Key: messages.NewKey(messages.SessionID(id)), Seq: 1, Reason: "test"})
		s.journal.FailReads(2, &persistence.CorruptError{Key: messages.NewKey(messages.SessionID(id)), Seq: 1, Reason: "test"})
		s.refuses(t, e.of(id), http.StatusServiceUnavailable, "quarantined")
		s.journal.FailClaims(0, nil)
		s.journal.FailReads(0, nil)
	}
}

func TestTurnsAreRefusedAlikeWhicheverAnswerIsWanted(t *testing.T) {
	t.Parallel()
	for _, e := range sessionEndpoints()[:3] {
		s := start(t, func(set *settings) { set.session.Core.QueueLimit = 1 })
		e = e.of("s1")
		with := func(body string, headers ...string) endpoint {
			changed := e
			changed.body, changed.headers = body, append(slices.Clone(e.headers), headers...)
			return changed
		}
		s.model.Call(testkit.HangUntilCancel())
		status, _, _ := s.call(http.MethodPost, turnsOfS1, `{"text":"hi","idempotency_key":"k"}`)
		require.Equal(t, http.StatusAccepted, status)
		s.refuses(t, with(`{`), http.StatusBadRequest, "bad_frame")
		s.refuses(t, with(`{"text":" "}`), http.StatusBadRequest, "empty_input")
		s.refuses(t, with(`{"text":"hi","mode":"chat"}`), http.StatusBadRequest, "invalid_mode")
		s.refuses(t, with(`{"text":"hi","queue_mode":"never"}`), http.StatusBadRequest, "invalid_queue_mode")
		s.refuses(t, with(`{"text":"hi","idempotency_key":"a"}`, "Idempotency-Key", "b"), http.StatusBadRequest, "invalid_field")
		s.refuses(t, with(`{"text":"`+strings.Repeat("x", 40_000)+`"}`), http.StatusRequestEntityTooLarge, "input_too_large")
		s.refuses(t, with(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`), http.StatusRequestEntityTooLarge, "input_too_large")
		s.refuses(t, with(`{"text":"other","idempotency_key":"k"}`), http.StatusConflict, "idempotency_conflict")
		status, _, _ = s.call(http.MethodPost, turnsOfS1, `{"text":"waits"}`)
		require.Equal(t, http.StatusAccepted, status)
		s.refuses(t, with(`{"text":"one too many"}`), http.StatusTooManyRequests, "queue_full")
		s.gateway.Drain()
		go func() { _ = s.dir.Drain(t.Context(), t.Context()) }()
		require.Eventually(t, func() bool {
			_, body, _ := s.call(http.MethodPost, turnsOfS1, `{"text":"one too many"}`)
			return body.code() == "draining"
		}, patience, 1e6)
		s.refuses(t, with(`{"text":"one too many"}`), http.StatusServiceUnavailable, "draining")
	}
}

func TestStreamsRefuseNumbersThatAreNone(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
	for _, id := range []string{"x", "-1", "1.5", "18446744073709551616", " ", "1 2"} {
		for _, path := range []string{outputOfS1, outputOfS1 + "?after_seq=1", "/v1/sessions/s1/events"} {
			s.refuses(t, endpoint{method: "GET", path: path, headers: []string{"Accept", "text/event-stream", "Last-Event-ID", "x" + id}}, 400, "invalid_field")
		}
		s.refuses(t, endpoint{
			method: "POST", path: turnsOfS1, body: `{"text":"hi"}`, headers: []string{"Accept", "text/event-stream", "Last-Event-ID", "x" + id},
		}, 400, "invalid_field")
	}
	for _, query := range []string{"output?after_seq=x", "output?after_seq=-1", "stages?after=x", "stages?limit=0", "stages?limit=1001"} {
		s.refuses(t, endpoint{method: "GET", path: "/v1/sessions/s1/" + query}, 400, "invalid_field")
	}
	s.refuses(t, endpoint{method: "GET", path: outputOfS1 + "?after_seq=x", headers: []string{"Last-Event-ID", "1"}}, 400, "invalid_field")
	require.Nil(t, s.state("s1")["active_run"], "no turn was taken")
}

func TestEveryPathTellsItsMethods(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
	paths := make(map[string][]string)
	for _, e := range sessionEndpoints() {
		path, _, _ := strings.Cut(e.of("s1").path, "?")
		if !slices.Contains(paths[path], e.method) {
			paths[path] = append(paths[path], e.method)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/ws", "/healthz", "/readyz"} {
		paths[path] = []string{http.MethodGet}
	}
	for path, methods := range paths {
		want := slices.Clone(methods)
		if slices.Contains(want, http.MethodGet) {
			want = append(want, http.MethodHead)
		}
		want = append(want, http.MethodOptions)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			header := s.refuses(t, endpoint{method: method, path: path}, http.StatusMethodNotAllowed, "unknown_type")
			require.ElementsMatch(t, want, strings.Split(header.Get("Allow"), ", "), "%s %s", method, path)
		}
		resp := s.request(t.Context(), http.MethodOptions, path, "")
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusNoContent, resp.StatusCode)
		require.ElementsMatch(t, want, strings.Split(resp.Header.Get("Allow"), ", "), path)
		s.refuses(t, endpoint{method: "OPTIONS", path: path, headers: []string{"Origin", "https://evil.example"}}, http.StatusForbidden, "forbidden")
	}
}

// HEAD of a stream is its head: it does not stay open.
func TestHeadOfAStreamEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
		living := s.actors()
		for _, path := range []string{outputOfS1, "/v1/sessions/s1/events"} {
			resp := s.request(t.Context(), http.MethodHead, path, "", "Accept", "text/event-stream")
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
			require.NoError(t, resp.Body.Close())
		}
		status, _, _ := s.call(http.MethodHead, "/v1/sessions/nobody/output", "")
		require.Equal(t, http.StatusNotFound, status)
		require.Equal(t, living, s.actors())
	})
}

func TestHTTPStagesInPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	const stages = 120
	for n := range stages {
		body := fmt.Sprintf(`{"events":[{"type":"stage_started","stage_id":"s%d"},{"type":"stage_completed","stage_id":"s%d","summary":"done %d"}]}`, n, n, n)
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", body)
		require.Equal(t, http.StatusOK, status)
	}
	state := s.state("s1")
	require.Len(t, state["l2_memory"], 50)
	require.EqualValues(t, stages, state.number("l2_total"))
	var got []any
	for after := uint64(0); ; {
		status, page, _ := s.call(http.MethodGet, fmt.Sprintf("/v1/sessions/s1/stages?limit=50&after=%d", after), "")
		require.Equal(t, http.StatusOK, status)
		list := page["stages"].([]any)
		require.EqualValues(t, int(after)+len(list), page.number("next"))
		if len(list) == 0 {
			break
		}
		got = append(got, list...)
		after = page.number("next")
	}
	require.Len(t, got, stages)
	require.Equal(t, state["l2_memory"], got[stages-50:], "the same as in the state")
	require.Equal(t, "done 0", frame(got[0].(map[string]any)).text("summary"))
	_, page, _ := s.call(http.MethodGet, "/v1/sessions/s1/stages?after=9223372036854775807", "")
	require.Equal(t, []any{}, page["stages"])
}
