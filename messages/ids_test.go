package messages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDsAreValidated(t *testing.T) {
	t.Parallel()
	valid := []string{
		"a", "0", ".", "_", "~", ":", "-", "AZaz09._~:-", "agent:main:main", "sess_0198", strings.Repeat("x", 200),
	}
	invalid := []string{
		"", strings.Repeat("x", 201), " ", "a b", "a/b", "a\x00", "a\n", "ä", "a\xff", "a%20", "a@b", "a+b", "[", "`", "{", "@",
	}
	for _, s := range valid {
		id, err := ParseSessionID(s)
		require.NoError(t, err, "%q", s)
		require.Equal(t, SessionID(s), id)
		require.NoError(t, Key{Tenant: TenantID(s), Session: SessionID(s)}.Validate())
	}
	for _, s := range invalid {
		_, err := ParseSessionID(s)
		require.ErrorIs(t, err, ErrInvalidID, "%q", s)
		require.ErrorIs(t, Key{Tenant: "t", Session: SessionID(s)}.Validate(), ErrInvalidID, "%q", s)
		require.ErrorIs(t, Key{Tenant: TenantID(s), Session: "s"}.Validate(), ErrInvalidID, "%q", s)
	}
}

func TestEveryByteIsJudged(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		_, err := ParseSessionID(string([]byte{byte(b)}))
		allowed := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~:-", byte(b)) >= 0
		require.Equal(t, allowed, err == nil, "byte %#x", b)
	}
}

func TestErrorsSayWhichPartOfAKeyIsWrong(t *testing.T) {
	t.Parallel()
	err := Key{}.Validate()
	require.ErrorContains(t, err, "tenant id is empty")
	require.ErrorContains(t, err, "session id is empty")
	require.ErrorContains(t, Key{Tenant: "t", Session: "a b"}.Validate(), `byte ' ' at 1`)
}

func TestMadeIDsAreValidAndShareTheirUUID(t *testing.T) {
	t.Parallel()
	require.NoError(t, NewKey(NewSessionID()).Validate())
	require.Equal(t, "default/s", NewKey("s").String())
	older, turn := NewTurnID(), NewTurnID()
	require.Less(t, older, turn, "later ids sort later")
	run := RunIDOf(turn)
	require.Equal(t, "run_"+strings.TrimPrefix(turn, "turn_"), run)
	back, ok := TurnIDOf(run)
	require.True(t, ok)
	require.Equal(t, turn, back)
	for _, s := range []string{"", "run_", "turn_1", "x"} {
		_, ok := TurnIDOf(s)
		require.False(t, ok, "%q", s)
	}
}

func TestEnumsKnowTheirValues(t *testing.T) {
	t.Parallel()
	require.True(t, ChatModeSteering.Valid() && QueueSteerBacklog.Valid() && OutcomeIncomplete.Valid() && TurnExpired.Valid() &&
		PhaseAborted.Valid() && DispositionDuplicate.Valid() && RoleRouter.Valid() && UsageUnknown.Valid() && AbortSession.Valid())
	require.False(t, ChatMode("chat").Valid() || QueueMode("").Valid() || Outcome("answered").Valid() || TurnState("").Valid() ||
		Phase("x").Valid() || Disposition("").Valid() || Role("user").Valid() || UsageSource("").Valid() || AbortScope("").Valid())
	for _, s := range []TurnState{"", TurnQueued, TurnOffered, TurnRunning} {
		require.False(t, s.Ended(), s)
	}
	for _, o := range []Outcome{OutcomeCompleted, OutcomeFailed, OutcomeCancelled, OutcomeInterrupted, OutcomeIncomplete} {
		require.True(t, o.TurnState().Valid() && o.TurnState().Ended(), o)
	}
	require.Equal(t, TurnAnswered, OutcomeCompleted.TurnState())
}

func TestFailuresAreErrors(t *testing.T) {
	t.Parallel()
	var err error = FailRetryable(CodeQueueFull, "20 turns wait")
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.True(t, f.GetRetryable())
	require.EqualError(t, err, "queue_full: 20 turns wait")
	require.False(t, Fail(CodeInternal, "").GetRetryable())
}
