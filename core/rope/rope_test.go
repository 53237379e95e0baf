package rope_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/rope"
)

func TestRopeIsAString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var text rope.Text
		var plain string
		var older []rope.Text
		var olderPlain []string
		for _, piece := range rapid.SliceOfN(rapid.StringN(0, 5, -1), 0, 12).Draw(t, "pieces") {
			older, olderPlain = append(older, text), append(olderPlain, plain)
			text, plain = text.Append(piece), plain+piece
		}
		require.Equal(t, plain, text.String())
		require.Equal(t, len(plain), text.Len())
		n := rapid.IntRange(-2, len(plain)+2).Draw(t, "n")
		require.Equal(t, plain[min(max(n, 0), len(plain)):], text.From(n))
		require.Equal(t, plain[len(plain)-min(max(n, 0), len(plain)):], text.Last(n))
		for i := range older {
			_ = older[i].Append("other")
			require.Equal(t, olderPlain[i], older[i].String(), "texts that share a past do not see each other")
		}
	})
}
