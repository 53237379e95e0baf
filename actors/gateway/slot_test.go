package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/testkit"
)

// A turn that gets no slot in time fails without a run: whoever waits for its answer, by any door, is told at once.
func TestTurnWithoutASlotEndsForWhoeverWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.HangUntilCancel())
		holder := s.dial()
		holder.say("first", "session_id", "busy")
		synctest.Wait()

		c := s.dial()
		accepted := c.say("second")
		require.Equal(t, "queued", accepted.text("disposition"))
		ended, before := c.until("turn_state")
		require.Equal(t, "failed", ended.text("state"))
		require.Equal(t, "slot_timeout", ended.text("reason"))
		require.Equal(t, accepted["turn_id"], ended["turn_id"])
		require.Contains(t, phasesOf(before), "waiting_for_slot")

		begun := time.Now()
		status, waited, _ := s.call(http.MethodPost, "/v1/sessions/s2/turns?wait=5m", `{"text":"third"}`)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "turn", waited.kind(), "%v", waited)
		require.Equal(t, "failed", waited.text("state"))
		require.Equal(t, "slot_timeout", waited.text("reason"))
		require.Equal(t, 10*time.Second, time.Since(begun))
	}, func(set *settings) {
		set.session.Slots = slots.New(set.session.Kernel, slots.Config{Max: 1})
		set.session.Core = core.DefaultConfig()
		set.session.Core.SlotTimeout = 10 * time.Second
	})
}

func phasesOf(frames []frame) string {
	var phases []string
	for _, f := range frames {
		phases = append(phases, f.text("phase"))
	}
	return strings.Join(phases, " ")
}

func TestKeepRunAliveIsForRunsThatWaitForAWord(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	unknown := c.ask("keep_run_alive", "session_id", "s1", "run_id", "run_x", "decision", "continue")
	require.Equal(t, "unknown_session", unknown.text("code"))
	s.model.Call(testkit.HangUntilCancel())
	accepted := c.say("hi")
	run := accepted.text("run_id")
	require.Equal(t, "ok", c.ask("keep_run_alive", "session_id", "s1", "run_id", run, "decision", "continue").kind())
	require.Equal(t, "unknown_run", c.ask("keep_run_alive", "session_id", "s1", "run_id", "run_x", "decision", "continue").text("code"))
	require.Equal(t, "invalid_field", c.ask("keep_run_alive", "session_id", "s1", "run_id", run, "decision", "cancel").text("code"),
		"it is no second way to abort what waits for no word")
	require.Equal(t, "running", c.turn(accepted["turn_id"]).text("state"))
}

func TestSpentBudgetIsToldWithTheTimeOfTheNextOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"first"}`)
		require.Equal(t, http.StatusOK, status)
		status, refused, header := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"second"}`)
		require.Equal(t, http.StatusTooManyRequests, status)
		failure, _ := refused["error"].(map[string]any)
		require.Equal(t, "budget_exceeded", failure["code"])
		seconds, err := strconv.Atoi(header.Get("Retry-After"))
		require.NoError(t, err)
		time.Sleep(time.Duration(seconds) * time.Second)
		status, _, _ = s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=30s", `{"text":"third"}`)
		require.Equal(t, http.StatusOK, status)
	}, func(set *settings) { set.session.Core.TokensPerDay = 2 })
}
