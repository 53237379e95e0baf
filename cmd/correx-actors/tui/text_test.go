package tui

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWrapBreaksWhereAReaderWould(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		width    int
		want     []string
	}{
		{"nothing", "", 10, []string{""}},
		{"short", "a b", 10, []string{"a b"}},
		{"at a space", "hello big world", 9, []string{"hello big", "world"}},
		{"a space at the edge", "hello  world", 5, []string{"hello", "world"}},
		{"a long word", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"a long word behind a short one", "a bcdefghij", 4, []string{"a", "bcde", "fghi", "j"}},
		{"an item of a list", "- one two three", 9, []string{"- one two", "  three"}},
		{"a numbered item", "10. one two", 8, []string{"10. one", "    two"}},
		{"an indented line", "    if a then b", 11, []string{"    if a", "    then b"}},
		{"ideographs", "日本語日本語", 5, []string{"日本", "語日", "本語"}},
		{"ideographs behind a word", "ab日本語", 5, []string{"ab日", "本語"}},
		{"emoji stay whole", "👍🏽👍🏽🇩🇪", 4, []string{"👍🏽", "👍🏽", "🇩🇪"}},
		{"wider than the line", "日a", 1, []string{"日", "a"}},
		{"a tab", "a\tb", 10, []string{"a   b"}},
		{"a line end of Windows", "a\r", 10, []string{"a"}},
	}
	for _, test := range tests {
		require.Equal(t, test.want, wrap(test.in, test.width), test.name)
	}
}

// hostile draws texts that try everything a terminal might obey or miscount.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			" ", "  ", "\t", "a", "word", "- ", "12. ", "日本", "👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "❤️", "e\u0301", "\u0301", "\u200d", "\ufe0f",
			"\x1b[2J", "\x1b]0;x\a", "\x9b1m", "\u009b", "\r", "\x7f", "\u202e", "\u2028", "\ufeff", "\xff\xfe", "स्ते", "ทดสอบ",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
}

func TestNothingThatATerminalObeysIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := hostile().Draw(t, "text")
		for _, shown := range []string{clean(text), oneLine(text), strings.Join(wrap(strings.ReplaceAll(text, "\n", ""), 20), "\n")} {
			require.True(t, utf8.ValidString(shown))
			require.Equal(t, shown, ansi.Strip(shown), "%q", shown)
			for _, r := range shown {
				require.False(t, r != '\n' && r != '\t' && unicode.IsControl(r) || turns(r), "%q", shown)
			}
		}
	})
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(hostile().Draw(t, "text"), "\n", " ")
		// A character may be wider than what is left; eight columns are the widest that is drawn here.
		width := rapid.IntRange(16, 60).Draw(t, "width")
		for _, line := range wrap(text, width) {
			require.LessOrEqual(t, ansi.StringWidth(line), width, "%q", line)
			require.LessOrEqual(t, ansi.StringWidthWc(line), width, "%q", line)
		}
		require.LessOrEqual(t, textWidth(cut(oneLine(text), width)), width)
	})
}

// TestGrowingTextIsLaidOutAsIfItWereNew: the layout that is kept while an answer grows is the one of the whole text.
func TestGrowingTextIsLaidOutAsIfItWereNew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var kept layout
		text := ""
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "anew") == 0 {
				text = ""
			}
			text += rapid.SampledFrom([]string{"word ", "\n", "\n\n", "- item", "\r\n", "日本語"}).Draw(t, "more") + hostile().Draw(t, "text")
			width := rapid.SampledFrom([]int{20, 20, 20, 33}).Draw(t, "width")
			kept.update(text, width)
			var fresh layout
			fresh.update(text, width)
			require.Equal(t, fresh.lines, kept.lines)
		}
	})
}

// TestTheCursorStandsBetweenCharacters edits at random: the cursor never stands inside of a character, and every character has
// exactly one place on the screen.
func TestTheCursorStandsBetweenCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e editor
		e.set("")
		edits := []func(){
			func() { e.insert(hostile().Draw(t, "text")) },
			func() { e.insert("\n") },
			func() { e.backspace() },
			func() { e.del() },
			func() { e.move(e.before(e.at)) },
			func() { e.move(e.next(e.at)) },
			func() { e.move(e.wordBefore()) },
			func() { e.move(e.wordAfter()) },
			func() { e.erase(e.wordBefore(), e.at) },
			func() { e.climb(-1, 17) },
			func() { e.climb(1, 17) },
			func() { e.move(e.lineStart()) },
			func() { e.move(e.lineEnd()) },
		}
		for range rapid.IntRange(1, 30).Draw(t, "edits") {
			rapid.SampledFrom(edits).Draw(t, "edit")()
			require.True(t, utf8.ValidString(e.text))
			require.True(t, e.at == e.lineStart() || e.next(e.before(e.at)) == e.at, "%q at %d", e.text, e.at)
			end := 0
			rows := e.rows(17)
			for _, r := range rows {
				require.LessOrEqual(t, end, r.start)
				require.Empty(t, strings.Trim(e.text[end:r.start], "\n"))
				require.LessOrEqual(t, ansi.StringWidth(e.draw(r)), 17)
				end = r.end
			}
			require.Equal(t, len(e.text), end)
			line, col := e.cursor(rows)
			require.True(t, rows[line].start <= e.at && e.at <= rows[line].end)
			require.LessOrEqual(t, col, 17)
		}
	})
}

func TestRecallKeepsTheDraft(t *testing.T) {
	t.Parallel()
	var r recall
	r.add("one")
	r.add("two")
	r.add("two")
	text, ok := r.step(-1, "draft")
	require.True(t, ok)
	require.Equal(t, "two", text)
	text, ok = r.step(-1, text)
	require.True(t, ok)
	require.Equal(t, "one", text)
	_, ok = r.step(-1, text)
	require.False(t, ok)
	_, _ = r.step(1, text)
	text, ok = r.step(1, text)
	require.True(t, ok)
	require.Equal(t, "draft", text)
	_, ok = r.step(1, text)
	require.False(t, ok)
}
