package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

func events(types ...string) []frame {
	var list []frame
	for _, name := range types {
		list = append(list, frame{"type": name})
	}
	return list
}

// goesOn checks that the connection serves another session as if nothing had happened.
func (c *client) goesOn(t *testing.T) {
	t.Helper()
	c.send("chat_input", "session_id", "other", "text", "hi")
	final, _ := c.until("router_response")
	require.Equal(t, "Hello there", final.text("content"))
}

func TestRefusedFramesKeepTheConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	c.ask("start_session", "session_id", "s1")
	for _, tt := range []struct {
		code, kind string
		fields     []any
	}{
		{"unknown_type", "explode", nil},
		{"invalid_field", "chat_input", []any{"session_id", "s1"}},
		{"invalid_field", "chat_input", []any{"session_id", "s1", "text", 7}},
		{"invalid_field", "subscribe", []any{"session_id", "s1", "after_seq", -1}},
		{"invalid_field", "abort", []any{"session_id", "s1", "scope", "world"}},
		{"invalid_session_id", "get_session", []any{"session_id", "no spaces"}},
		{"invalid_queue_mode", "chat_input", []any{"session_id", "s1", "text", "hi", "queue_mode", "never"}},
		{"invalid_queue_mode", "explain", []any{"session_id", "s1", "text", "hi", "queue_mode", "never"}},
		{"invalid_queue_mode", "start_session", []any{"session_id", "s1", "config", frame{"queue_mode": "never"}}},
		{"invalid_field", "withdraw", []any{"session_id", "s1"}},
		{"empty_input", "explain", []any{"session_id", "s1", "text", " "}},
		{"input_too_large", "explain", []any{"session_id", "s1", "text", strings.Repeat("x", 40_000)}},
		{"unsupported_resume_engine", "explain", []any{"session_id", "s1", "text", "hi", "resume", frame{"engine": "e", "token": "t"}}},
		{"unknown_session", "explain", []any{"session_id", "nobody", "text", "hi"}},
		{"unknown_session", "withdraw", []any{"session_id", "nobody", "turn_id", "turn_1"}},
		{"unknown_turn", "withdraw", []any{"session_id", "s1", "turn_id", "turn_1"}},
		{"unknown_turn", "withdraw", []any{"session_id", "s1", "turn_id", strings.Repeat("x", 10_000)}},
		{"invalid_mode", "chat_input", []any{"session_id", "s1", "text", "hi", "mode", "chat"}},
		{"input_too_large", "chat_input", []any{"session_id", "s1", "text", strings.Repeat("x", 40_000)}},
		{"empty_input", "chat_input", []any{"session_id", "s1", "text", " \n"}},
		{"unknown_session", "get_session", []any{"session_id", "nobody"}},
		{"unknown_session", "get_turn", []any{"session_id", "nobody", "turn_id", "turn_1"}},
		{"unknown_session", "abort", []any{"session_id", "nobody"}},
		{"unknown_session", "unsubscribe", []any{"session_id", "nobody"}},
		{"unknown_turn", "get_turn", []any{"session_id", "s1", "turn_id", "turn_1"}},
		{"unknown_turn", "get_turn", []any{"session_id", "s1", "idempotency_key", "never"}},
		{"unknown_run", "abort", []any{"session_id", "s1", "run_id", "run_1"}},
		{"unsupported_resume_engine", "chat_input", []any{"session_id", "s1", "text", "hi", "resume", frame{"engine": "e", "token": "t"}}},
		{"sequence_conflict", "record_events", []any{"session_id", "s1", "events", events("custom"), "expected_sequence", 5}},
		{"invalid_event", "record_events", []any{"session_id", "s1", "events", events("custom", "stage_started")}},
		{"invalid_event", "record_events", []any{"session_id", "s1", "events", []any{frame{}}}},
		{"forbidden_event", "record_events", []any{"session_id", "s1", "events", []frame{{"type": "steering_note_added", "content": "x"}}}},
		{"forbidden_event", "record_events", []any{"session_id", "s1", "events", events("steering_note_added")}},
	} {
		f := c.refused(tt.code, tt.kind, tt.fields...)
		require.NotEmpty(t, f.text("message"), tt.kind)
		require.Equal(t, false, f["retryable"], tt.kind)
	}
	require.Contains(t, c.refused("invalid_event", "record_events", "session_id", "s1",
		"events", events("custom", "stage_started")).text("message"), "events[1]")
	require.Contains(t, c.refused("forbidden_event", "record_events", "session_id", "s1",
		"events", []any{frame{"type": "custom"}, frame{"type": "steering_note_added", "type_version": 99, "payload_base64": ""}}).text("message"), "events[1]")
	require.EqualValues(t, 0, s.state("s1").number("event_sequence"), "nothing of a refused batch is recorded")
	c.sendRaw(`{"type":`)
	require.Equal(t, "bad_frame", c.expect("error").text("code"))
	c.sendRaw(`[]`)
	require.Equal(t, "bad_frame", c.expect("error").text("code"))
	c.sendRaw(strings.Repeat(`{"a":`, 30_00) + "1" + strings.Repeat("}", 30_00))
	require.Equal(t, "bad_frame", c.expect("error").text("code"))
	c.goesOn(t)
}

func TestIdempotencyConflictAndFullQueue(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.session.Core.QueueLimit = 1 })
	gate := make(chan struct{})
	s.model.Call(testkit.WaitFor(gate))
	c := s.dial()
	c.ask("chat_input", "session_id", "s1", "text", "hi", "idempotency_key", "k")
	c.refused("idempotency_conflict", "chat_input", "session_id", "s1", "text", "other", "idempotency_key", "k")
	require.Equal(t, "queued", c.ask("chat_input", "session_id", "s1", "text", "second").text("disposition"))
	full := c.refused("queue_full", "chat_input", "session_id", "s1", "text", "third")
	require.Equal(t, true, full["retryable"])
	c.goesOn(t)
	close(gate)
}

func TestTooManySubscriptionsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.gateway.MaxSubscriptions = 2 })
	c := s.dial()
	c.ask("subscribe", "session_id", "other")
	c.ask("subscribe", "session_id", "s1")
	c.ask("subscribe", "session_id", "s1")
	c.refused("rate_limited", "subscribe", "session_id", "s2")
	c.refused("rate_limited", "chat_input", "session_id", "s2", "text", "hi")
	c.goesOn(t)
	c.ask("unsubscribe", "session_id", "s1")
	require.Equal(t, "subscribed", c.ask("subscribe", "session_id", "s2").kind())
	c.refused("rate_limited", "subscribe", "session_id", "s1")
	c.ask("unsubscribe", "session_id", "s2")
	c.refused("empty_input", "chat_input", "session_id", "s3", "text", " ")
	c.refused("input_too_large", "chat_input", "session_id", "s3", "text", strings.Repeat("x", 40_000))
	require.Equal(t, "subscribed", c.ask("subscribe", "session_id", "s1").kind(), "a refused turn takes no place")
}

func TestJournalTroubleIsOfOneSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	c.goesOn(t)
	s.journal.FailNext(1, persistence.ErrFull)
	require.Equal(t, true, c.refused("unavailable", "chat_input", "session_id", "s1", "text", "hi")["retryable"])
	require.Equal(t, "turn_accepted", c.ask("chat_input", "session_id", "s1", "text", "hi").kind())
	c.until("router_response")

	s.journal.FailClaims(1, &persistence.CorruptError{Key: messages.NewKey("bad"), Seq: 1, Reason: "test"})
	c.refused("quarantined", "chat_input", "session_id", "bad", "text", "hi")

	key := messages.NewKey("gone")
	claim, err := s.journal.Claim(t.Context(), key, persistence.Owner{})
	require.NoError(t, err)
	done := make(chan error, 1)
	s.journal.Append(key, persistence.Expect{Epoch: claim.Epoch}, persistence.Batch{Records: []messages.Record{{
		ID: messages.NewRecordID(), Stream: messages.StreamEvents, Type: "foreign_event", Version: 1, Time: time.Now(),
	}}}, func(_ persistence.Appended, err error) { done <- err })
	require.NoError(t, <-done)
	require.NoError(t, s.journal.Delete(t.Context(), key, persistence.Expect{Epoch: claim.Epoch, EventHead: 1}))
	c.refused("session_deleted", "chat_input", "session_id", "gone", "text", "hi")
	status, body, _ := s.call(http.MethodGet, "/v1/sessions/gone/events", "")
	require.Equal(t, http.StatusGone, status)
	require.Equal(t, "session_deleted", body.code())
	c.goesOn(t)
}

func TestDrainingRefusesTurnsAndServesTheRest(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	accepted := c.ask("chat_input", "session_id", "s1", "text", "hi")
	c.until("router_response")
	status, _, _ := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, status)
	s.gateway.Drain()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.dir.Drain(ctx, ctx))
	require.Equal(t, true, c.refused("draining", "chat_input", "session_id", "s1", "text", "hi")["retryable"])
	require.Equal(t, "answered", c.ask("get_turn", "session_id", "s1", "turn_id", accepted["turn_id"]).text("state"))
	status, body, header := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "draining", body.code())
	require.NotEmpty(t, header.Get("Retry-After"))
	status, _, _ = s.call(http.MethodGet, "/healthz", "")
	require.Equal(t, http.StatusOK, status)
	status, body, _ = s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi"}`)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "draining", body.code())
}
