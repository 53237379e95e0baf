package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

func TestAgoTellsTheLargestUnit(t *testing.T) {
	t.Parallel()
	for past, want := range map[time.Duration]string{
		-time.Hour: "now", 0: "now", 999 * time.Millisecond: "now", time.Second: "1 second ago", 59 * time.Second: "59 seconds ago",
		119 * time.Second: "1 minute ago", 23 * time.Hour: "23 hours ago", 47 * time.Hour: "1 day ago", 90 * 24 * time.Hour: "90 days ago",
	} {
		require.Equal(t, want, ago(past), past)
	}
}

func TestSessionsTableShowsWhatIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	page := []protocol.SessionSummary{
		{SessionID: "a", State: protocol.SessionBusy, SessionRow: &protocol.SessionRow{
			EventSequence: 12, Running: true, Waiting: 3, UpdatedAt: now.Add(-time.Minute),
		}},
		{SessionID: "long-name", State: protocol.SessionQuarantined},
		{SessionID: "c", State: protocol.SessionIdle, SessionRow: new(protocol.SessionRow)},
	}
	for people, updated := range map[bool]string{true: "1 minute ago", false: "2027-01-15T07:59:00Z"} {
		var out bytes.Buffer
		list := sessionsTable{a: &app{out: &out}, people: people, now: now}
		require.NoError(t, list.write(page))
		require.NoError(t, list.write(nil))
		require.Equal(t, strings.Join([]string{
			"SESSION    STATE        EVENTS  RUN      WAITING  UPDATED",
			"a          busy         12      running  3        " + updated,
			"long-name  quarantined  ?       ?        ?        ?",
			"c          idle         0       -        0        -",
			"",
		}, "\n"), out.String())
	}
}

// pages serves a list in given pages, the next of each is its number, and records the queries.
func pages(t *testing.T, bodies ...string) (url string, queries *[]string) {
	t.Helper()
	queries = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodies[len(*queries)]
		*queries = append(*queries, r.URL.RawQuery)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, queries
}

func TestSessionsAreListedOverPagesThatAreShortOrEmpty(t *testing.T) {
	t.Parallel()
	bodies := []string{
		`{"sessions":[{"session_id":"a","state":"busy"}],"next":"b"}`, `{"sessions":[],"next":"c"}`, `{"sessions":[{"session_id":"d","state":"busy"}]}`,
	}
	for _, c := range []struct {
		args, want string
		queries    []string
	}{
		{"--state busy", "ad", []string{"limit=1000&state=busy", "after=b&limit=1000&state=busy", "after=c&limit=1000&state=busy"}},
		{"--limit 2", "ad", []string{"limit=2", "after=b&limit=1", "after=c&limit=1"}},
		{"--limit 1", "a", []string{"limit=1"}},
		{"--limit 5000 --after A", "ad", []string{"after=A&limit=1000", "after=b&limit=1000", "after=c&limit=1000"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			url, queries := pages(t, bodies...)
			var out, report bytes.Buffer
			args := append([]string{"--server", url, "--json", "sessions"}, strings.Fields(c.args)...)
			require.Equal(t, exitDone, run(args, &app{out: &out, err: &report}), report.String())
			require.Equal(t, c.queries, *queries)
			var want strings.Builder
			for _, id := range c.want {
				want.WriteString(`{"session_id":"` + string(id) + `","state":"busy"}` + "\n")
			}
			require.Equal(t, want.String(), out.String())
		})
	}
}
