package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// sessions asks for a page of the list.
func (s *server) sessions(query ...string) (rows []frame, next string) {
	s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	status, page, _ := s.call(http.MethodGet, "/v1/sessions?"+values.Encode(), "")
	require.Equal(s.t, http.StatusOK, status, "%v", page)
	list, ok := page["sessions"].([]any)
	require.True(s.t, ok, "a list, also when it is empty")
	for _, row := range list {
		rows = append(rows, row.(map[string]any))
	}
	return rows, page.text("next")
}

func ids(rows []frame) (all []string) {
	for _, row := range rows {
		all = append(all, row.text("session_id"))
	}
	return all
}

func TestHTTPListsSessionsInPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	rows, next := s.sessions()
	require.Empty(t, rows)
	require.Empty(t, next)
	var want []string
	for n := range 120 {
		id := fmt.Sprintf("s%03d", n)
		want = append(want, id)
		status, f, _ := s.call(http.MethodPost, "/v1/sessions/"+id+"/events", `{"events":[{"type":"custom"}]}`)
		require.Equal(t, http.StatusOK, status, "%v", f)
	}
	rows, next = s.sessions()
	require.Equal(t, want[:100], ids(rows), "100 without a limit")
	require.Equal(t, "s099", next)
	rows, next = s.sessions("after", next, "limit", "20")
	require.Equal(t, want[100:], ids(rows))
	require.Empty(t, next, "a full page may be the last one")
	for _, state := range []string{"", "idle"} {
		var got []string
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			rows, after = s.sessions("after", after, "limit", "7", "state", state)
			got = append(got, ids(rows)...)
		}
		require.Equal(t, want, got, "state %q", state)
	}
	rows, next = s.sessions("state", "passivated")
	require.Empty(t, rows)
	require.Empty(t, next)
	rows, _ = s.sessions("after", "s050x", "limit", "1")
	require.Equal(t, []string{"s051"}, ids(rows), "an id that no session has")
}

func TestHTTPListTellsStateAndWork(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.model.Otherwise(testkit.HangUntilCancel())
	for range 3 {
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/busy/turns", `{"text":"hi"}`)
		require.Equal(t, http.StatusAccepted, status)
	}
	s.call(http.MethodPost, "/v1/sessions/idle/events", `{"events":[{"type":"custom"}]}`)
	s.call(http.MethodPost, "/v1/sessions/bad/events", `{"events":[{"type":"custom"}]}`)
	_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("bad")) // so that it is read again
	require.NoError(t, err)
	s.journal.Damage(messages.NewKey("bad"), messages.StreamEvents, 1)
	s.call(http.MethodPost, "/v1/sessions/bad/events", `{"events":[{"type":"custom"}]}`)
	require.Eventually(t, func() bool {
		_, f, _ := s.call(http.MethodGet, "/v1/sessions/bad", "")
		failure, _ := f["error"].(map[string]any)
		return frame(failure).text("code") == string(messages.CodeQuarantined)
	}, patience, patience/1000)

	rows, _ := s.sessions()
	require.Equal(t, []string{"bad", "busy", "idle"}, ids(rows))
	require.Equal(t, "quarantined", rows[0].text("state"))
	require.EqualValues(t, 1, rows[0].number("event_sequence"), "its row is good")
	require.Equal(t, "busy", rows[1].text("state"))
	require.Equal(t, true, rows[1]["running"])
	require.EqualValues(t, 2, rows[1].number("waiting"))
	require.NotEmpty(t, rows[1].text("updated_at"))
	require.Equal(t, "idle", rows[2].text("state"))
	require.Equal(t, false, rows[2]["running"], "not left out")
	require.Contains(t, rows[2], "waiting")
	for _, row := range rows {
		only, next := s.sessions("state", row.text("state"))
		require.Equal(t, []string{row.text("session_id")}, ids(only))
		require.Empty(t, next)
	}
	s.call(http.MethodPost, "/v1/sessions/busy/abort", `{"scope":"session"}`)
	require.Eventually(t, func() bool {
		rows, _ := s.sessions("state", "idle")
		return slices.Equal(ids(rows), []string{"busy", "idle"}) && rows[0].number("waiting") == 0
	}, patience, patience/1000)
}

func TestHTTPListSaysWhatIsWrongWithAQuery(t *testing.T) {
	t.Parallel()
	s := start(t)
	for query, says := range map[string]string{
		"state=sleepy":  "state is not busy, idle, passivated or quarantined",
		"state=Busy":    "state is not busy",
		"limit=0":       "limit is 0, want at least 1",
		"limit=1001":    "limit is not a whole number",
		"limit=-1":      "limit is not a whole number",
		"limit=ten":     "limit is not a whole number",
		"after=%20":     "after is no cursor",
		"after=a%00b":   "after is no cursor",
		"after=a%2F..b": "after is no cursor",
	} {
		status, f, _ := s.call(http.MethodGet, "/v1/sessions?"+query, "")
		require.Equal(t, http.StatusBadRequest, status, query)
		failure, _ := f["error"].(map[string]any)
		require.Equal(t, "invalid_field", frame(failure).text("code"), query)
		require.Contains(t, frame(failure).text("message"), says, query)
	}
}
