package gateway_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

func TestHelloComesFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.connect(t.Context())
	require.Equal(t, "correx.v1", c.ws.Subprotocol())
	require.Equal(t, frame{
		"type": "hello", "protocol": "correx.v1", "server": "v0.0.1", "node": "n1",
		"max_frame_bytes": 65536.0, "heartbeat_ms": 30000.0,
	}, c.next())
}

func TestChatAnswersFirstAndFinishesLast(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	c.send("chat_input", "id", "1", "session_id", "s1", "text", "hi")
	accepted := c.expect("turn_accepted")
	require.Equal(t, "1", accepted.text("id"))
	require.Equal(t, "started", accepted.text("disposition"))
	final, items := c.until("router_response")
	require.Equal(t, "Hello there", final.text("content"))
	require.Equal(t, "completed", final.text("outcome"))
	require.Equal(t, accepted["run_id"], final["run_id"])
	require.Equal(t, []any{accepted["turn_id"]}, final["turn_ids"])
	requireNumbered(t, items)
	var kinds []string
	for _, f := range items {
		kinds = append(kinds, f.kind())
	}
	end := kinds[slices.Index(kinds, "stream_finalize"):]
	require.Equal(t, []string{"stream_finalize", "turn_state", "run_phase", "router_response"}, end)
}

// requireNumbered checks that numbers rise by one (I11).
func requireNumbered(t *testing.T, items []frame) {
	t.Helper()
	for i, f := range items[1:] {
		require.Equal(t, items[i].number("seq")+1, f.number("seq"), "%v after %v", f, items[i])
	}
}

func TestChatFollowsTheSessionFromNowOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.dial(), s.dial()
	a.send("chat_input", "session_id", "s1", "text", "one")
	first, _ := a.until("router_response")
	b.send("chat_input", "session_id", "s1", "text", "two")
	b.expect("turn_accepted")
	for _, c := range []*client{a, b} {
		f := c.next()
		require.Equal(t, "run_phase", f.kind())
		require.Equal(t, first.number("seq")+1, f.number("seq"), "nothing of the first turn comes, nothing of the second is missing")
		last, _ := c.until("router_response")
		require.Equal(t, "Hello there", last.text("content"))
	}
}

func TestEachFrameHasItsDirectAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	started := c.ask("start_session", "session_id", "s1", "config", frame{"conversation_keep_last": 3})
	require.Equal(t, "session_started", started.kind())
	require.Equal(t, "s1", started.text("session_id"))
	state, _ := started["state"].(map[string]any)
	require.Equal(t, "IDLE", state["workflow_status"])
	require.Equal(t, []any{}, state["queue"])
	require.NotEmpty(t, c.ask("start_session").text("session_id"), "an id is made")

	subscribed := c.ask("subscribe", "session_id", "s1")
	require.Equal(t, "subscribed", subscribed.kind())
	c.send("chat_input", "session_id", "s1", "text", "hi", "idempotency_key", "k1")
	accepted := c.expect("turn_accepted")
	final, items := c.until("router_response")
	require.Equal(t, subscribed.number("next_seq"), items[0].number("seq"))

	for _, by := range [][]any{{"turn_id", accepted["turn_id"]}, {"idempotency_key", "k1"}} {
		turn := c.ask("get_turn", append(by, "session_id", "s1")...)
		require.Equal(t, "turn", turn.kind())
		require.Equal(t, accepted["turn_id"], turn["turn_id"])
		require.Equal(t, "answered", turn.text("state"))
		require.Equal(t, "Hello there", turn.text("content"))
	}
	again := c.ask("chat_input", "session_id", "s1", "text", "hi", "idempotency_key", "k1")
	require.Equal(t, "duplicate", again.text("disposition"))
	require.Equal(t, accepted["turn_id"], again["turn_id"])

	session := c.ask("get_session", "session_id", "s1")
	require.Equal(t, "session", session.kind())
	require.Len(t, session["state"].(map[string]any)["conversation_history"], 2)
	recorded := c.ask("record_events", "session_id", "s1", "events", []frame{{"type": "workflow_started", "workflow_id": "w"}})
	require.Equal(t, "events_recorded", recorded.kind())
	require.EqualValues(t, 1, recorded.number("first_sequence"))
	aborted := c.ask("abort", "session_id", "s1")
	require.Equal(t, frame{"type": "aborted", "id": "ask", "session_id": "s1", "turn_ids": []any{}, "run_ids": []any{}}, aborted)

	c.send("ack", "session_id", "s1", "seq", final.number("seq"))
	require.Zero(t, c.ask("subscribe", "session_id", "s1").number("pending_finals"))
	require.Equal(t, "unsubscribed", c.ask("unsubscribe", "session_id", "s1").kind())
	require.Equal(t, frame{"type": "pong", "id": "ask"}, c.ask("ping"))
}

func TestEveryAnswerMakesRoomForAFrame(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.gateway.MaxInFlight, set.gateway.MaxSubscriptions = 2, 1 })
	c := s.dial()
	go func() { // more than may be in flight, without waiting
		for range 20 {
			c.send("ping")
			c.send("subscribe", "session_id", "s1")
			c.send("subscribe", "session_id", "s2")
			c.send("ack", "session_id", "s1", "seq", 1)
			c.send("get_session", "session_id", "s1")
			c.send("nonsense")
			c.send("record_events", "session_id", "s1", "events", []frame{{"type": "stage_started"}})
		}
	}()
	got := make(map[string]int)
	for range 20 * 6 {
		f := c.next()
		got[f.kind()+f.text("code")]++
	}
	require.Equal(t, map[string]int{
		"pong": 20, "subscribed": 20, "errorrate_limited": 20, "session": 20, "errorunknown_type": 20, "errorinvalid_event": 20,
	}, got)
}

func TestUnsubscribedGetsNothingMore(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.dial(), s.dial()
	a.ask("subscribe", "session_id", "s1")
	a.ask("unsubscribe", "session_id", "s1")
	b.send("chat_input", "session_id", "s1", "text", "hi")
	b.until("router_response")
	require.Equal(t, "pong", a.ask("ping").kind())
	a.send("ping", "id", "p")
	require.Equal(t, "p", a.next().text("id"), "no item came before")
}

func TestASecondSubscribeReplacesTheFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	c.send("chat_input", "session_id", "s1", "text", "hi")
	final, items := c.until("router_response")
	c.ask("subscribe", "session_id", "s1", "after_seq", 0)
	_, again := c.until("router_response")
	require.Equal(t, items[1:], again, "all items again, once")
	c.send("chat_input", "session_id", "s1", "text", "more")
	c.expect("turn_accepted")
	require.Equal(t, final.number("seq")+1, c.next().number("seq"), "each item comes once")
}

func TestLosingAConnectionCancelsNoRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	gate := make(chan struct{})
	s.model.Call(testkit.Stream("a"), testkit.WaitFor(gate), testkit.Stream("b"))
	c := s.dial()
	accepted := c.ask("chat_input", "session_id", "s1", "text", "hi")
	require.NoError(t, c.ws.CloseNow())
	other := s.dial()
	other.ask("subscribe", "session_id", "s1", "after_seq", 0)
	close(gate)
	final, _ := other.until("router_response")
	require.Equal(t, "ab", final.text("content"))
	require.Equal(t, accepted["run_id"], final["run_id"])
}

func TestAbortOverTheSocket(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.model.Call(testkit.Stream("a"), testkit.HangUntilCancel())
	c := s.dial()
	accepted := c.ask("chat_input", "session_id", "s1", "text", "hi")
	aborted := c.ask("abort", "session_id", "s1")
	require.Equal(t, []any{accepted["run_id"]}, aborted["run_ids"])
	final, _ := c.until("router_response")
	require.Equal(t, "cancelled", final.text("outcome"))
	s.model.ExpectCanceled()
}

func TestManyClientsOfManySessionsGetTheirOwn(t *testing.T) {
	t.Parallel()
	s := start(t)
	clients := make([]*client, 8)
	for i := range clients {
		clients[i] = s.dial()
		for n := range 5 {
			clients[i].send("chat_input", "session_id", fmt.Sprintf("s%d", i), "text", fmt.Sprintf("turn %d", n))
		}
	}
	for i, c := range clients {
		var items []frame
		for answered := 0; answered < 5; {
			f := c.next()
			if f.kind() == "turn_accepted" {
				continue
			}
			require.Equal(t, fmt.Sprintf("s%d", i), f.text("session_id"))
			items = append(items, f)
			if f.kind() == "router_response" {
				answered++
			}
		}
		requireNumbered(t, items)
	}
}

func TestEventsComeFromTheLogInOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, host := s.dial(), s.dial()
	record := func(from, to int) {
		for i := from; i <= to; i++ {
			host.ask("record_events", "session_id", "s1", "events", []frame{{"type": "custom", "n": i}})
		}
	}
	read := func(from, to int) {
		t.Helper()
		for i := from; i <= to; i++ {
			f := c.expect("session_event")
			require.EqualValues(t, i, f.number("sequence"))
			require.Equal(t, map[string]any{"type": "custom", "n": float64(i)}, f["event"])
			require.NotEmpty(t, f.text("recorded_at"))
		}
	}
	record(1, 3)
	c.ask("subscribe", "session_id", "s1", "events", true)
	record(4, 6)
	read(4, 6) // only new ones
	c.send("subscribe", "id", "again", "session_id", "s1", "events", true, "after_event", 1)
	require.Equal(t, "again", c.expect("subscribed").text("id"))
	read(2, 6)
	record(7, 8)
	read(7, 8) // once, not twice
	c.ask("subscribe", "session_id", "s1")
	record(9, 9)
	c.send("ping")
	c.expect("pong") // the subscription without events has replaced the one with
	require.EqualValues(t, 9, s.state("s1").number("event_sequence"))
}

func (s *server) state(id string) frame {
	s.t.Helper()
	status, f, _ := s.call("GET", "/v1/sessions/"+id, "")
	require.Equal(s.t, 200, status)
	state, _ := f["state"].(map[string]any)
	return state
}

func TestASessionThatRestartsIsFollowedOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, other := s.dial(), s.dial()
	c.send("subscribe", "session_id", "s1", "events", true)
	c.expect("subscribed")
	c.send("chat_input", "session_id", "s1", "text", "hi")
	first, _ := c.until("router_response")
	// Another owner takes the session and leaves it: the next append ends the actor, and the session starts again.
	_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
	require.NoError(t, err)
	other.refused("unavailable", "record_events", "session_id", "s1", "events", []frame{{"type": "lost"}})
	require.Equal(t, "events_recorded", other.ask("record_events", "session_id", "s1", "events", []frame{{"type": "kept"}}).kind())
	other.ask("chat_input", "session_id", "s1", "text", "again")
	var final frame
	var event bool
	last := first.number("seq")
	for final == nil {
		f := c.next()
		switch f.kind() {
		case "session_event":
			require.Equal(t, map[string]any{"type": "kept"}, f["event"])
			event = true
			continue
		case "gap":
			require.Equal(t, last+1, f.number("from_seq"))
			continue
		case "resync":
			last = f.number("up_to_seq")
			continue
		case "router_response":
			if f.number("seq") <= last {
				require.Greater(t, f.number("seq"), first.number("seq"), "nothing is repeated")
				continue
			}
			final = f
		}
		require.Equal(t, last+1, f.number("seq"), "%v", f)
		last = f.number("seq")
	}
	require.Equal(t, "Hello there", final.text("content"))
	if !event {
		require.Equal(t, "kept", c.expect("session_event")["event"].(map[string]any)["type"])
	}
}
