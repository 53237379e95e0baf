package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// tabStop is the distance of tab stops.
	tabStop = 4
	// maxCluster bounds the bytes of one character: the longest emoji needs 41, and without a bound marks pile up over lines.
	maxCluster = 64
)

// clean neutralizes what a terminal would obey: control characters become their pictures, so that a reader sees that they were
// there; marks that turn the direction of writing are replaced, those that are invisible dropped. Line ends and tabs stay.
func clean(s string) string {
	if !suspicious(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // a byte that is no UTF-8 arrives as U+FFFD
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		case r >= 0x80 && r < 0xa0, turns(r):
			b.WriteRune(utf8.RuneError)
		case r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case invisible(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// suspicious says whether s may hold anything that clean changes.
func suspicious(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return true
		}
	}
	return false
}

// turns says whether r changes the direction of the text around it.
func turns(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

// invisible says whether r has no width, or none that terminals agree on, and is not needed to write any language.
func invisible(r rune) bool {
	return r == '\u00ad' || r == '\u180e' || r == '\u200b' || r == '\ufeff' ||
		r >= '\u2060' && r <= '\u2065' || r >= '\u206a' && r <= '\u206f' || r >= '\ufff9' && r <= '\ufffb'
}

// oneLine is clean for a place that has one line.
func oneLine(s string) string {
	return strings.Join(strings.Fields(clean(s)), " ")
}

// cluster gives the first character of s as a reader counts them, its length in bytes, and its width in columns at col.
// Terminals that know no clusters draw each part of it; the width is the larger one, so no line is ever too long.
func cluster(s string, col int) (text string, size, width int) {
	switch c := s[0]; {
	case c == '\t':
		n := tabStop - col%tabStop
		return strings.Repeat(" ", n), 1, n
	case c == '\n':
		return "", 1, 0
	case c < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf):
		return s[:1], 1, 1
	}
	text, width = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	size = len(text)
	if size > maxCluster {
		text = text[:maxCluster]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		width = ansi.StringWidth(text)
	}
	return text, size, max(width, ansi.StringWidthWc(text))
}

// textWidth is the width of a clean line.
func textWidth(s string) int {
	col := 0
	for s != "" {
		_, size, width := cluster(s, col)
		s, col = s[size:], col+width
	}
	return col
}

// cut shortens a clean line to a width; what is left out shows as an ellipsis.
func cut(s string, width int) string {
	if textWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	var b strings.Builder
	for col := 0; s != ""; {
		text, size, w := cluster(s, col)
		if col+w > width-1 {
			break
		}
		b.WriteString(text)
		s, col = s[size:], col+w
	}
	return b.String() + "…"
}

// wrap breaks one paragraph into lines of at most width columns, at spaces if it can. What continues an item of a list or an
// indented line stays under its text. A character that is wider than a whole line gets a line of its own.
func wrap(paragraph string, width int) []string {
	w := wrapper{width: max(width, 1)}
	rest := clean(strings.TrimSuffix(paragraph, "\r"))
	w.hang = hangOf(rest, w.width)
	for rest != "" {
		text, size, columns := cluster(rest, w.col)
		rest = rest[size:]
		w.add(text, columns)
	}
	return append(w.lines, strings.TrimRight(string(w.line), " "))
}

// wrapper is a paragraph on its way into lines.
type wrapper struct {
	width, hang int
	lines       []string
	line        []byte
	col         int
	// breakAt is where the line may end: bytes and columns before it; 0 = nowhere yet.
	breakAt, breakCol int
}

func (w *wrapper) add(text string, columns int) {
	space := text[0] == ' '
	if space && len(w.lines) > 0 && len(w.line) == w.hang {
		return // the spaces at which a line was broken belong to neither
	}
	if columns > 1 && !space && len(w.line) > 0 { // ideographs and emoji need no space between them
		w.breakAt, w.breakCol = len(w.line), w.col
	}
	for w.col+columns > w.width && len(w.line) > w.hang {
		switch {
		case space:
			w.end(len(w.line), w.col)
			return
		case w.breakAt > w.hang:
			w.end(w.breakAt, w.breakCol)
		default:
			w.end(len(w.line), w.col)
		}
	}
	w.line, w.col = append(w.line, text...), w.col+columns
	if space && strings.TrimLeft(string(w.line), " ") != "" {
		w.breakAt, w.breakCol = len(w.line), w.col
	}
}

// end closes the line before a place and carries what is behind it into the next one.
func (w *wrapper) end(at, col int) {
	w.lines = append(w.lines, strings.TrimRight(string(w.line[:at]), " "))
	rest := w.line[at:]
	w.line = append([]byte(strings.Repeat(" ", w.hang)), rest...)
	w.col = w.hang + w.col - col
	w.breakAt, w.breakCol = 0, 0
}

// hangOf is the column where continued lines of a paragraph begin.
func hangOf(s string, width int) int {
	body := strings.TrimLeft(s, " ")
	hang := len(s) - len(body)
	digits := 0
	for digits < len(body) && body[digits] >= '0' && body[digits] <= '9' {
		digits++
	}
	switch {
	case strings.HasPrefix(body, "- "), strings.HasPrefix(body, "* "), strings.HasPrefix(body, "• "):
		hang += 2
	case digits > 0 && digits < 4 && strings.HasPrefix(body[digits:], ". "):
		hang += digits + 2
	}
	if hang > width/2 {
		return 0
	}
	return hang
}
