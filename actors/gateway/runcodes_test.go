package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit"
)

// TestEachCodeOfAFailedRunReachesTheSocket provokes every code that a run can end with; the connection, the session and another
// session go on.
func TestEachCodeOfAFailedRunReachesTheSocket(t *testing.T) {
	t.Parallel()
	quick := func(set *settings) { set.session.Runner.Limits.FirstToken = 20 * time.Millisecond }
	small := func(set *settings) { set.session.Runner.Window = 8 }
	for _, row := range []struct {
		code   string
		steps  []testkit.Step
		change func(*settings)
	}{
		{"provider_auth", testkit.Script(testkit.Fail(inference.KindAuth)), nil},
		{"provider_quota", testkit.Script(testkit.Fail(inference.KindQuota)), nil},
		{"provider_rate_limited", testkit.Script(testkit.Fail(inference.KindRateLimited)), nil},
		{"provider_overloaded", testkit.Script(testkit.Fail(inference.KindOverloaded)), nil},
		{"provider_unavailable", testkit.Script(testkit.Fail(inference.KindUnavailable)), nil},
		{"provider_timeout", testkit.Script(testkit.HangUntilCancel()), quick},
		{"provider_bad_request", testkit.Script(testkit.Fail(inference.KindBadRequest)), nil},
		{"provider_error", testkit.Script(testkit.Fail(inference.KindProvider)), nil},
		{"context_overflow", testkit.Script(testkit.Fail(inference.KindContextOverflow)), nil},
		{"context_overflow", nil, small},
		{"content_filtered", testkit.Script(testkit.Fail(inference.KindContentFiltered)), nil},
		{"truncated", testkit.Script(testkit.Fail(inference.KindTruncated)), nil},
		{"config_error", testkit.Script(testkit.Fail(inference.KindConfig)), nil},
		{"internal", testkit.Script(testkit.Panic("boom")), nil},
	} {
		t.Run(row.code, func(t *testing.T) {
			t.Parallel()
			var changes []func(*settings)
			if row.change != nil {
				changes = append(changes, row.change)
			}
			s := start(t, changes...)
			c := s.dial()
			overflows := row.steps == nil // no call is made
			if !overflows {
				s.model.Call(row.steps...)
			}
			for _, session := range []string{"s1", "s1", "s2"} {
				require.Equal(t, "turn_accepted", c.ask("chat_input", "session_id", session, "text", "hi").kind())
				response, _ := c.until("router_response")
				if session == "s1" && len(s.model.Calls()) <= 1 || overflows {
					require.Equal(t, "failed", response.text("outcome"))
					require.Equal(t, row.code, response.code())
					continue
				}
				require.Equal(t, "completed", response.text("outcome"))
			}
		})
	}
}
