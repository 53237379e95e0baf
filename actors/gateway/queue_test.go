package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// busy starts a run that ends when the gate is closed; what comes later is answered with the given text.
func busy(t *testing.T, later string) (s *server, c *client, gate chan struct{}) {
	t.Helper()
	s = start(t)
	gate = make(chan struct{})
	s.model.Call(testkit.Stream("first"), testkit.WaitFor(gate)).Otherwise(testkit.Stream(later))
	c = s.dial()
	require.Equal(t, "started", c.say("a").text("disposition"))
	c.until("stream_delta")
	return s, c, gate
}

// say sends a turn and takes frames up to its acceptance.
func (c *client) say(text string, fields ...any) frame {
	c.t.Helper()
	f := c.ask("chat_input", append([]any{"session_id", "s1", "text", text}, fields...)...)
	require.Equal(c.t, "turn_accepted", f.kind(), "%v", f)
	return f
}

// turn asks for a turn.
func (c *client) turn(id any) frame {
	c.t.Helper()
	f := c.ask("get_turn", "session_id", "s1", "turn_id", id)
	require.Equal(c.t, "turn", f.kind(), "%v", f)
	return f
}

// finals takes frames up to the n-th answer from here.
func (c *client) finals(n int) (items []frame) {
	c.t.Helper()
	for range n {
		_, some := c.until("router_response")
		items = append(items, some...)
	}
	return items
}

// only gives the frames of a type.
func only(items []frame, kind string) (list []frame) {
	for _, f := range items {
		if f.kind() == kind {
			list = append(list, f)
		}
	}
	return list
}

func TestFollowupsAreOneRunWithOneAnswer(t *testing.T) {
	t.Parallel()
	s, c, gate := busy(t, "both")
	lead := c.say("b", "queue_mode", "followup", "mode", "STEERING")
	require.Equal(t, "queued", lead.text("disposition"))
	explained := c.ask("explain", "session_id", "s1", "text", "c", "queue_mode", "FollowUp", "mode", "STEERING")
	require.Equal(t, "explanation", explained.kind())
	part := c.say("c", "queue_mode", "FollowUp", "mode", "STEERING")
	for _, f := range []frame{explained, part} {
		require.Equal(t, "merged", f.text("disposition"))
		require.Equal(t, lead["turn_id"], f["merged_into"])
		require.Zero(t, f.number("position"))
	}
	require.Equal(t, lead["run_id"], part["run_id"], "the run of the turn that it joined")
	other := c.say("d", "queue_mode", "followup")
	require.Equal(t, "queued", other.text("disposition"), "turns of another chat mode are not merged")
	require.EqualValues(t, 2, other.number("position"), "each part counts")

	queue, _ := s.state("s1")["queue"].([]any)
	require.Len(t, queue, 2)
	require.Equal(t, []any{part["turn_id"]}, queue[0].(map[string]any)["merged_turn_ids"])
	require.Equal(t, []any{}, queue[1].(map[string]any)["merged_turn_ids"])
	require.Equal(t, "queued", c.turn(part["turn_id"]).text("state"), "a part that waits is queued still")

	close(gate)
	items := c.finals(3)
	requireNumbered(t, items)
	finals := only(items, "router_response")
	require.Equal(t, []any{lead["turn_id"], part["turn_id"]}, finals[1]["turn_ids"])
	require.Equal(t, lead["turn_id"], finals[1]["turn_id"])
	require.Equal(t, true, finals[1]["steering_emitted"])
	var merged []frame
	for _, f := range only(items, "turn_state") {
		if f["turn_id"] == part["turn_id"] {
			merged = append(merged, f)
		}
	}
	require.Len(t, merged, 1, "its end is told once")
	require.Equal(t, "merged", merged[0].text("state"))
	require.Equal(t, lead["turn_id"], merged[0]["merged_into"])
	ended := c.turn(part["turn_id"])
	require.Equal(t, "merged", ended.text("state"))
	require.Equal(t, lead["turn_id"], ended["merged_into"])
	require.Equal(t, "both", ended.text("content"), "the answer of the run that took it")
	require.EqualValues(t, 2, s.state("s1").number("event_sequence"), "a note of each")
	s.model.ExpectCalls(3)
}

func TestHTTPWaitsForTheRunThatTookTheTurn(t *testing.T) {
	t.Parallel()
	s, c, gate := busy(t, "both")
	c.say("b", "queue_mode", "followup")
	answered := make(chan frame, 1)
	go func() {
		_, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"c","queue_mode":"followup","idempotency_key":"k"}`)
		answered <- f
	}()
	require.Eventually(t, func() bool {
		queue, _ := s.state("s1")["queue"].([]any)
		return len(queue) == 1 && len(queue[0].(map[string]any)["merged_turn_ids"].([]any)) == 1
	}, patience, patience/1000)
	close(gate)
	final := <-answered
	require.Equal(t, "router_response", final.kind(), "%v", final)
	require.Equal(t, "both", final.text("content"))
	require.Len(t, final["turn_ids"], 2)

	status, again, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"c","queue_mode":"followup","idempotency_key":"k"}`)
	require.Equal(t, http.StatusOK, status, "a duplicate of a merged turn has its answer at once")
	require.Equal(t, "both", again.text("content"))
	require.Equal(t, final["run_id"], again["run_id"])
}

func TestHTTPWaitsWithADuplicateOfATurnThatARunHasTaken(t *testing.T) {
	t.Parallel()
	s, c, gate := busy(t, "")
	second := make(chan struct{})
	s.model.Call(testkit.Stream("bo"), testkit.WaitFor(second), testkit.Stream("th"))
	c.say("b", "queue_mode", "followup")
	c.say("c", "queue_mode", "followup", "idempotency_key", "k")
	close(gate)
	c.until("router_response")
	c.until("stream_delta")
	answered := make(chan frame, 1)
	go func() {
		_, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"c","queue_mode":"followup","idempotency_key":"k"}`)
		answered <- f
	}()
	select {
	case f := <-answered:
		require.Fail(t, "it has no answer yet", "%v", f)
	case <-time.After(50 * time.Millisecond):
	}
	close(second)
	require.Equal(t, "both", (<-answered).text("content"))
}

func TestAPlainRunRefusesAnOfferAndTheTurnRunsNext(t *testing.T) {
	t.Parallel()
	for mode, family := range map[string]string{"steer": "followup", "STEER_Backlog": "collect"} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			s, c, gate := busy(t, "second")
			explained := c.ask("explain", "session_id", "s1", "text", "b", "queue_mode", mode)
			require.Equal(t, "steering", explained.text("disposition"))
			require.NotEmpty(t, explained.text("reason"))
			steer := c.say("b", "queue_mode", mode, "mode", "STEERING")
			require.Equal(t, "steering", steer.text("disposition"))
			require.Equal(t, "offered", steer.text("state"))
			var queued frame
			for queued == nil {
				if f, _ := c.until("run_phase"); f.text("phase") == "queued_in_session" {
					queued = f
				}
			}
			require.Equal(t, steer["run_id"], queued["run_id"], "it falls back to a run of its own")
			require.Contains(t, queued.text("reason"), "no boundary")
			require.Equal(t, "queued", c.turn(steer["turn_id"]).text("state"))
			require.Equal(t, []any{}, s.state("s1")["pending_steers"])
			close(gate)
			finals := only(c.finals(2), "router_response")
			require.Equal(t, "second", finals[1].text("content"))
			require.Equal(t, true, finals[1]["steering_emitted"])
			require.Equal(t, steer["run_id"], finals[1]["run_id"])
			require.Equal(t, "answered", c.turn(steer["turn_id"]).text("state"))
			s.model.ExpectCalls(2)
		})
	}
}

func TestInterruptEndsTheRunBeforeTheNextOneBegins(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.model.Call(testkit.Stream("half"), testkit.HangUntilCancel()).Otherwise(testkit.Stream("next"))
	c := s.dial()
	first := c.say("a")
	c.until("stream_delta")
	waiting := c.say("b")
	urgent := c.say("now", "queue_mode", "interrupt")
	require.Equal(t, "queued", urgent.text("disposition"))
	require.Zero(t, urgent.number("position"))
	items := c.finals(3)
	requireNumbered(t, items)
	finals := only(items, "router_response")
	for i, want := range []struct {
		turn             frame
		outcome, content string
	}{{first, "interrupted", "half"}, {urgent, "completed", "next"}, {waiting, "completed", "next"}} {
		require.Equal(t, want.turn["run_id"], finals[i]["run_id"])
		require.Equal(t, want.outcome, finals[i].text("outcome"))
		require.Equal(t, want.content, finals[i].text("content"))
	}
	ended := false
	for _, f := range items {
		waits := f.text("phase") == "accepted" || f.text("phase") == "queued_in_session"
		if f["run_id"] == urgent["run_id"] && !waits {
			require.True(t, ended, "the old run's final comes first: %v", f)
		}
		ended = ended || f.kind() == "router_response" && f["run_id"] == first["run_id"]
	}
	require.Equal(t, "interrupted", c.turn(first["turn_id"]).text("state"))
	s.model.ExpectCanceled()
}

func TestWithdrawnTurnsNeverRun(t *testing.T) {
	t.Parallel()
	s, c, gate := busy(t, "later")
	second, third := c.say("b", "mode", "STEERING"), c.say("c")
	for range 2 { // a second time tells the same
		require.Equal(t, frame{
			"type": "withdrawn", "id": "ask", "turn_id": second["turn_id"], "withdrawn": true, "state": "withdrawn",
		}, c.ask("withdraw", "session_id", "s1", "turn_id", second["turn_id"]))
	}
	path := "/v1/sessions/s1/turns/" + third.text("turn_id")
	for range 2 {
		status, f, _ := s.call(http.MethodDelete, path, "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, frame{"type": "withdrawn", "turn_id": third["turn_id"], "withdrawn": true, "state": "withdrawn"}, f)
	}
	active, _ := s.state("s1")["active_run"].(map[string]any)
	running, _ := active["turn_ids"].([]any)
	late := c.ask("withdraw", "session_id", "s1", "turn_id", running[0])
	require.Equal(t, false, late["withdrawn"], "it has started")
	require.Equal(t, "running", late.text("state"))
	close(gate)
	c.until("router_response")
	late = c.ask("withdraw", "session_id", "s1", "turn_id", running[0])
	require.Equal(t, false, late["withdrawn"])
	require.Equal(t, "answered", late.text("state"))
	require.Equal(t, "withdrawn", c.turn(second["turn_id"]).text("state"))
	require.Zero(t, s.state("s1").number("event_sequence"), "no run took it, so there is no note")
	s.model.ExpectCalls(1)
}

func TestAPartThatIsWithdrawnLeavesTheOthers(t *testing.T) {
	t.Parallel()
	s, c, gate := busy(t, "rest")
	lead, part := c.say("b", "queue_mode", "followup"), c.say("c", "queue_mode", "followup")
	require.Equal(t, "merged", part.text("disposition"))
	require.Equal(t, true, c.ask("withdraw", "session_id", "s1", "turn_id", lead["turn_id"])["withdrawn"])
	close(gate)
	final := only(c.finals(2), "router_response")[1]
	require.Equal(t, []any{part["turn_id"]}, final["turn_ids"], "the next one leads")
	require.Equal(t, "answered", c.turn(part["turn_id"]).text("state"))
	s.model.ExpectCalls(2)
}

func TestHTTPExplainDoesNothing(t *testing.T) {
	t.Parallel()
	s, _, gate := busy(t, "later")
	defer close(gate)
	before := s.state("s1")
	for mode, want := range map[string]string{"collect": "queued", "followup": "queued", "steer": "steering", "interrupt": "queued"} {
		status, f, _ := s.call(http.MethodPost, "/v1/sessions/s1/explain", `{"id":"x","text":"b","queue_mode":"`+mode+`"}`)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "explanation", f.kind())
		require.Equal(t, "x", f.text("id"))
		require.Equal(t, want, f.text("disposition"))
		require.Equal(t, mode, f.text("queue_mode"))
		require.NotEmpty(t, f.text("reason"))
	}
	require.Equal(t, before, s.state("s1"))

	status, f, _ := s.call(http.MethodPost, "/v1/sessions/nobody/explain", `{"text":"b","queue_mode":"steer"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "unknown_session", f.code())
	status, f, _ = s.call(http.MethodGet, "/v1/sessions/nobody", "")
	require.Equal(t, http.StatusNotFound, status, "explaining makes no session: %v", f)
}

func TestQueueModeOfTheSessionHoldsUnlessATurnNamesOne(t *testing.T) {
	t.Parallel()
	_, c, gate := busy(t, "later")
	c.ask("start_session", "session_id", "s1", "config", frame{"queue_mode": "Followup"})
	require.Equal(t, "queued", c.say("b").text("disposition"))
	require.Equal(t, "merged", c.say("c").text("disposition"))
	require.Equal(t, "queued", c.say("d", "queue_mode", "collect").text("disposition"))
	close(gate)
}
