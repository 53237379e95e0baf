package media_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/media"
)

func TestW27DirectiveLinesAreStripped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer, visible string
		paths                 []string
	}{
		{"nothing to do", "a\n\n b \n\n", "a\n\n b \n\n", nil},
		{"empty", "", "", nil},
		{"between lines", "a\nMEDIA:x.png\nb", "a\nb", []string{"x.png"}},
		{"at the beginning", "MEDIA:x.png\nb", "b", []string{"x.png"}},
		{"at the end, with the blank lines before it", "a\n \n\nMEDIA:x.png\n", "a", []string{"x.png"}},
		{"blank lines before text stay", "MEDIA:x\n\n\nb", "\n\nb", []string{"x"}},
		{"alone", " \n\tMEDIA: x.png \n ", "", []string{"x.png"}},
		{"inline is none", "see MEDIA:x.png", "see MEDIA:x.png", nil},
		{"inline beside a directive", "see MEDIA:x\nMEDIA:y", "see MEDIA:x", []string{"y"}},
		{"case counts", "media:x\nMedia:y", "media:x\nMedia:y", nil},
		{"the mark in pieces", "MEDIA\nMEDIA :x\nMEDIA", "MEDIA\nMEDIA :x\nMEDIA", nil},
		{"quotes", "MEDIA:`a b`\nMEDIA: \"c\"\nMEDIA:'d'\nMEDIA:\"e'", "", []string{"a b", "c", "d", "\"e'"}},
		{"duplicates are merged", "MEDIA:`a`\nMEDIA:\"a\"\nMEDIA: a", "", []string{"a"}},
		{"without a path", "x\nMEDIA:\nMEDIA: `` \nMEDIA:\"", "x", []string{"\""}},
		{"CRLF", "a\r\nMEDIA:x\r\nb\r\n", "a\r\nb", []string{"x"}},
		{"CR alone", "a\rMEDIA:x\rb", "a\rb", []string{"x"}},
		{"ends of lines of Unicode", "a\u2028MEDIA:x\u2029b\u0085MEDIA:y\vc", "a\u2028b\u0085c", []string{"x", "y"}},
		{"blanks of Unicode", "\u00A0\u3000MEDIA:x", "", []string{"x"}},
		{"a path of Unicode", "MEDIA: Überblick 図.png", "", []string{"Überblick 図.png"}},
		{"a path that is too long", "a\nMEDIA:" + strings.Repeat("x", 9000), "a", nil},
		{"broken characters stay", "\xE2\x80\nMEDIA:x\n\xff", "\xE2\x80\n\xff", []string{"x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			visible, requests := media.Strip(tt.answer)
			require.Equal(t, tt.visible, visible)
			require.Equal(t, tt.paths, paths(requests))
			for _, r := range requests {
				require.Equal(t, media.SourceDirective, r.Source)
			}
		})
	}
}

func paths(requests []media.Request) []string {
	var found []string
	for _, r := range requests {
		found = append(found, r.Path)
	}
	return found
}

// twin strips as the rule says it: the lines one by one, and at the end what is blank.
func twin(answer string) (string, []string) {
	var ended []string // lines with their ends
	for rest := answer; rest != ""; {
		at := strings.IndexAny(rest, "\n\v\f\r\u0085\u2028\u2029")
		if at < 0 {
			ended = append(ended, rest)
			break
		}
		end := len(string([]rune(rest[at:])[:1]))
		if strings.HasPrefix(rest[at:], "\r\n") {
			end = 2
		}
		ended, rest = append(ended, rest[:at+end]), rest[at+end:]
	}
	var visible strings.Builder
	var found []string
	dropped := false
	for _, line := range ended {
		path, directive := strings.CutPrefix(strings.TrimSpace(line), "MEDIA:")
		if !directive {
			visible.WriteString(line)
			continue
		}
		dropped = true
		path = strings.TrimSpace(path)
		if n := len(path); n > 1 && path[0] == path[n-1] && strings.IndexByte("`'\"", path[0]) >= 0 {
			path = path[1 : n-1]
		}
		known := false
		for _, f := range found {
			known = known || f == path
		}
		if strings.TrimSpace(path) != "" && !known && len(found) < media.MaxRequests {
			found = append(found, path)
		}
	}
	text := visible.String()
	for dropped { // blank lines at the end, the end of the last text included
		at := strings.LastIndexAny(text, "\n\v\f\r\u0085\u2028\u2029")
		if text != "" && at < 0 && strings.TrimSpace(text) == "" {
			text = ""
		}
		if at < 0 || strings.TrimSpace(text[at:]) != "" {
			break
		}
		text = text[:at]
	}
	return text, found
}

// answers are made of what matters to the rule.
func answers() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"MEDIA:", "MEDIA:", "MED", "IA:", "M", ":", "a.png", "b", " ", "  ", "\n", "\n", "\r\n", "\r", "\t", "`", "\"", "'", "é", "図",
		"\u2028", "\u0085", "\u00A0", "\u3000", "\v", "👩‍👩‍👧",
	})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(t, "pieces"), "") })
}

// cuts splits a text anywhere, also inside characters.
func cuts(t *rapid.T, text string) []string {
	var pieces []string
	for text != "" {
		n := rapid.IntRange(1, len(text)).Draw(t, "cut")
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

func TestStripIsItsPlainTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		answer := answers().Draw(t, "answer")
		visible, requests := media.Strip(answer)
		want, wantPaths := twin(answer)
		require.Equal(t, want, visible, "%q", answer)
		require.Equal(t, wantPaths, paths(requests), "%q", answer)
	})
}

// However an answer is cut, what comes through is the same; and at no time does anything come through that is not in the end.
func TestW27CutsChangeNothingOfWhatIsVisible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		answer := answers().Draw(t, "answer")
		requireCuts(t, answer, cuts(t, answer))
	})
}

func requireCuts(t require.TestingT, answer string, pieces []string) {
	want, requests := media.Strip(answer)
	var screen media.Screen
	var seen, shown string
	for _, piece := range pieces {
		before := screen
		screen, shown = screen.Write(piece)
		_, again := before.Write(piece)
		require.Equal(t, shown, again, "a step changed the screen before it")
		seen += shown
		require.True(t, strings.HasPrefix(want, seen), "%q came through of %q", seen, pieces)
	}
	screen, shown = screen.Close()
	require.Equal(t, want, seen+shown, "%q", pieces)
	require.Equal(t, requests, screen.Requests(), "%q", pieces)
}

func FuzzStrip(f *testing.F) {
	f.Add("a\nMEDIA:x\r\nb", uint8(1))
	f.Add("\u2028 MEDIA:`x`", uint8(2))
	f.Add("\xE2\x80\xC2MEDIA:\xff\n", uint8(3))
	f.Fuzz(func(t *testing.T, answer string, size uint8) {
		visible, requests := media.Strip(answer)
		require.LessOrEqual(t, len(visible), len(answer))
		again, more := media.Strip(visible)
		require.Equal(t, visible, again, "a directive is left")
		require.Empty(t, more)
		for _, r := range requests {
			require.NotEmpty(t, strings.TrimSpace(r.Path))
		}
		var pieces []string
		for rest := answer; rest != ""; {
			n := min(len(rest), int(size%7)+1)
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		requireCuts(t, answer, pieces)
	})
}

func TestW29RequestsOfAnAnswerAreBounded(t *testing.T) {
	t.Parallel()
	var answer strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&answer, "MEDIA:%d\n", i)
	}
	visible, requests := media.Strip(answer.String())
	require.Empty(t, visible)
	require.Len(t, requests, media.MaxRequests)
}

// Scenarios 99 and 100, and W51: what a failed action names is not sent.
func TestW51FilesOfFailedActionsAreNotSent(t *testing.T) {
	t.Parallel()
	changes := []media.Change{
		{Path: "a.PNG", Kind: "added"},
		{Path: "a.txt", Kind: "added"},
		{Path: "b.jpg", Kind: "deleted"},
		{Path: "c.heif", Kind: "modified"},
		{Path: "a.PNG", Kind: "modified"},
		{Path: "png", Kind: "added"},
		{Path: " ", Kind: "added"},
		{Path: "d.gif", Kind: "remove"},
	}
	files := []media.Request{
		{Path: "r/report.pdf", Source: media.SourceDirective},
		{Path: "r/report.pdf", Name: "report.pdf"},
		{Path: "r/report.pdf", Name: "other.pdf"},
		{Path: ""},
		{Path: "made.svg", Source: media.SourceGenerated},
	}
	failed := media.Wishes{}.Add(media.Outcome{OK: false, Files: files, Changes: changes})
	require.Equal(t, media.Wishes{}, failed)

	wishes := failed.Add(media.Outcome{OK: true, Files: files, Changes: changes})
	require.Equal(t, []string{"a.PNG", "c.heif"}, paths(wishes.Generated))
	require.Equal(t, []media.Request{
		{Path: "r/report.pdf", Source: media.SourceTool},
		{Path: "r/report.pdf", Name: "other.pdf", Source: media.SourceTool},
		{Path: "made.svg", Source: media.SourceGenerated},
	}, wishes.Tools)
	require.Equal(t, wishes, wishes.Add(media.Outcome{OK: true, Files: files, Changes: changes}), "each once")
}

// Scenarios 101 to 103.
func TestExplicitRequestsGoBeforeGeneratedOnes(t *testing.T) {
	t.Parallel()
	tool := media.Request{Path: "d/a.png", Name: "first.png", Source: media.SourceTool}
	line := media.Request{Path: "d/a.png", Source: media.SourceDirective}
	made := media.Request{Path: "d/a.png", Source: media.SourceGenerated}
	other := media.Request{Path: "b.png", Source: media.SourceGenerated}
	require.Equal(t, []media.Request{tool, line, other}, media.Merge([]media.Request{tool}, []media.Request{line}, []media.Request{other, made}))
	require.Empty(t, media.Merge(nil, nil, nil))
}

func TestSourcesAreClosed(t *testing.T) {
	t.Parallel()
	require.True(t, media.SourceTool.Valid() && media.SourceDirective.Valid() && media.SourceGenerated.Valid())
	require.False(t, media.Source("").Valid())
}
