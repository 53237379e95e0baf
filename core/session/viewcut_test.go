package session

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
)

func TestViewBoundsEachEntryOfTheHistory(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("é", viewContent)
	s := New(messages.NewKey("s"))
	s.Ledger.History = []Entry{{Role: "USER", Content: "short"}, {Role: "ROUTER", Content: huge, Partial: true, TurnID: "t"}}
	history := s.View().GetConversationHistory()
	require.Equal(t, "short", history[0].GetContent())
	require.LessOrEqual(t, len(history[1].GetContent()), viewContent+len("…"))
	require.True(t, strings.HasSuffix(history[1].GetContent(), "…"))
	require.True(t, utf8.ValidString(history[1].GetContent()))
	require.True(t, history[1].GetPartial())
	require.Equal(t, huge, s.Ledger.History[1].Content, "the state keeps all")
	require.Equal(t, huge, s.Conversation()[1].Content, "and so does the prompt")
}
