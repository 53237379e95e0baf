package intake_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/messages"
)

func token(engine, value string) *messages.ResumeToken {
	return &messages.ResumeToken{Engine: engine, Token: value}
}

// W46: keys of any bytes lead back to what they were made of, and no two conversations share one.
func TestConversationKeysRoundTripAnyBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := intake.Conversation{Engine: rapid.String().Draw(rt, "engine"), Token: rapid.String().Draw(rt, "token")}
		back, err := intake.ParseConversation(a.String())
		require.NoError(rt, err)
		require.Equal(rt, a, back)
		b := intake.Conversation{Engine: rapid.String().Draw(rt, "engine"), Token: rapid.String().Draw(rt, "token")}
		require.Equal(rt, a == b, a.String() == b.String())
	})
}

func TestConversationKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, "session:s1", intake.ConversationOf(nil, "s1").String())
	require.Equal(t, "resume:codex:a~3Ab", intake.ConversationOf(token("codex", "a:b"), "s1").String())
	for _, bad := range []string{"", "session:", "session:a:b", "resume:a", "resume:a:b:c", "resume:a:~3a", "run:a", "resume:a b:c"} {
		_, err := intake.ParseConversation(bad)
		require.ErrorIs(t, err, intake.ErrInvalidKey, bad)
	}
}

func TestExplicitTokenOfAnUnknownEngineIsRefused(t *testing.T) {
	t.Parallel()
	engines := []string{"codex"}
	require.Nil(t, intake.CheckResume(nil, engines))
	require.Nil(t, intake.CheckResume(token("codex", "t"), engines))
	require.Equal(t, string(messages.CodeUnsupportedResume), intake.CheckResume(token("other", "t"), engines).GetCode())
	require.Equal(t, string(messages.CodeInvalidField), intake.CheckResume(token("codex", ""), engines).GetCode())
}

// The stored token of an engine that is gone is ignored; an explicit one wins over the stored one.
func TestResumeResolves(t *testing.T) {
	t.Parallel()
	engines := []string{"codex"}
	stored := intake.Continue("", token("codex", "t1"))
	require.Equal(t, "resume:codex:t1", stored.Lineage)
	next := intake.Continue(stored.Lineage, token("codex", "t2"))

	got, lineage := intake.Resume(nil, next, engines)
	require.Equal(t, "t2", got.GetToken())
	require.Equal(t, "resume:codex:t1", lineage, "a new token goes on with the lineage")

	got, lineage = intake.Resume(token("codex", "x"), next, engines)
	require.Equal(t, "x", got.GetToken())
	require.Equal(t, "resume:codex:x", lineage)

	_, lineage = intake.Resume(token("codex", "t2"), next, engines)
	require.Equal(t, "resume:codex:t1", lineage, "the session's own token has its lineage, explicit or not")

	got, lineage = intake.Resume(nil, next, nil)
	require.Nil(t, got)
	require.Empty(t, lineage)
}
