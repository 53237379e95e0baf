package coalesce_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/coalesce"
)

// tail cuts as the rule says it: all characters from the beginning, and of them as many last ones as fit.
func tail(text string, limit int) string {
	for len(text) > limit {
		_, text, _, _ = uniseg.FirstGraphemeClusterInString(text, -1)
	}
	return text
}

// characters of one and of many code points, and code points that join what stands beside them.
func characters() []string {
	return []string{
		"a", "b ", "\n", "\r\n", "\r", "é", "e\u0301", "\u0301", "図", "한국", "\u1112\u1161\u11ab", "🇩🇪", "🇩", "🇪🇺🇫", "👩‍👩‍👧‍👦", "👍🏽", "🏽",
		"\u200d", "👩", "क्षि", "क", "\u094d", "नी", "ก็", "\ufe0f", "✈️", "\u0600", "ا", "\u00ad", "\ufeff", "1️⃣",
	}
}

func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom(characters())
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "") })
}

func TestTailIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		limit := rapid.IntRange(0, len(text)+1).Draw(t, "limit")
		require.Equal(t, tail(text, limit), coalesce.Tail(text, limit), "%q", text)
	})
}

func TestTailIsRightAtEveryByte(t *testing.T) {
	t.Parallel()
	text := strings.Join(characters(), "") + strings.Join(characters(), "x")
	for limit := range len(text) + 1 {
		require.Equal(t, tail(text, limit), coalesce.Tail(text, limit), "%d", limit)
	}
}

// Scenario 124: whatever comes, the end is kept, is valid, and is no longer than it may be.
func TestSnapshotIsTheEndOfALongAnswer(t *testing.T) {
	t.Parallel()
	cfg := coalesce.DefaultConfig()
	for _, text := range []string{"é", "👩‍👩‍👧‍👦", "word ", "図", "🇩🇪", "a\u0301\u0302", "क्षि", "\u0301"} {
		var answer coalesce.Answer
		all := strings.Repeat(text, 250_000/len(text))
		for rest := all; rest != ""; {
			n := min(len(rest), 1000)
			answer, _ = answer.Delta(cfg, rest[:n], start)
			rest = rest[n:]
		}
		answer, _ = answer.Flush()
		got := answer.Snapshot(coalesce.SnapshotBytes)
		require.True(t, utf8.ValidString(got), text)
		require.True(t, strings.HasSuffix(all, got))
		require.LessOrEqual(t, len(got), coalesce.SnapshotBytes)
		require.Greater(t, len(got), coalesce.SnapshotBytes-2*len(text))
		if text != "\u0301" { // one character without an end has no border to cut it at
			require.True(t, strings.HasPrefix(got, text), "%q is cut inside a character", text)
		}
	}
}
