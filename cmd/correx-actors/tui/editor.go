package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// editor is the input: a text and a cursor in it, which stands between whole characters.
type editor struct {
	text string
	// at is the cursor, in bytes.
	at int
	// goal is the column that moving up and down keeps to; -1 = the cursor's own.
	goal int
}

// row is a line as it is drawn: the text from start to end, without a line end.
type row struct{ start, end int }

// typed makes a pasted or typed text fit for an input: one kind of line end, no control characters.
func typed(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func (e *editor) set(text string) { e.text, e.at, e.goal = text, len(text), -1 }

func (e *editor) insert(s string) {
	s = typed(s)
	e.text, e.at, e.goal = e.text[:e.at]+s+e.text[e.at:], e.at+len(s), -1
	e.settle()
}

// settle moves a cursor that stands inside of a character behind it: marks join what was typed before them.
func (e *editor) settle() {
	at := e.lineStart()
	for at < e.at {
		at = e.next(at)
	}
	e.at = at
}

// erase removes the text between two places and leaves the cursor there.
func (e *editor) erase(from, to int) {
	e.text, e.at, e.goal = e.text[:from]+e.text[to:], from, -1
	e.settle()
}

func (e *editor) backspace() { e.erase(e.before(e.at), e.at) }
func (e *editor) del()       { e.erase(e.at, e.next(e.at)) }

func (e *editor) move(to int) {
	e.at, e.goal = to, -1
	e.settle()
}

// next is the place behind the character at a place.
func (e *editor) next(at int) int {
	if at >= len(e.text) {
		return len(e.text)
	}
	_, size, _ := cluster(e.text[at:], 0)
	return at + size
}

// before is the place of the character before a place.
func (e *editor) before(at int) int {
	if at == 0 {
		return 0
	}
	if e.text[at-1] == '\n' {
		return at - 1
	}
	prev := strings.LastIndexByte(e.text[:at], '\n') + 1
	for to := e.next(prev); to < at; to = e.next(prev) {
		prev = to
	}
	return prev
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *editor) lineEnd() int {
	if n := strings.IndexByte(e.text[e.at:], '\n'); n >= 0 {
		return e.at + n
	}
	return len(e.text)
}

// wordBefore is the start of the word before the cursor.
func (e *editor) wordBefore() int {
	head := strings.TrimRightFunc(e.text[:e.at], unicode.IsSpace)
	i := strings.LastIndexFunc(head, unicode.IsSpace)
	if i < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(head[i:])
	return i + size
}

// wordAfter is the end of the word behind the cursor.
func (e *editor) wordAfter() int {
	tail := strings.TrimLeftFunc(e.text[e.at:], unicode.IsSpace)
	from := len(e.text) - len(tail)
	if i := strings.IndexFunc(tail, unicode.IsSpace); i >= 0 {
		return from + i
	}
	return len(e.text)
}

// glyph is cluster for a text that is not clean: what is drawn for the first character.
func glyph(s string, col int) (drawn string, size, width int) {
	drawn, size, width = cluster(s, col)
	if suspicious(drawn) {
		drawn = clean(drawn)
		width = textWidth(drawn)
	}
	return drawn, size, width
}

// rows lays the text out; there is at least one. The cursor has room behind the last character of each.
func (e *editor) rows(width int) []row {
	var rows []row
	start, col := 0, 0
	for at := 0; at < len(e.text); {
		if e.text[at] == '\n' {
			rows = append(rows, row{start, at})
			at++
			start, col = at, 0
			continue
		}
		_, size, w := glyph(e.text[at:], col)
		if col+w >= width && at > start {
			rows = append(rows, row{start, at})
			start, col = at, 0
			_, size, w = glyph(e.text[at:], col)
		}
		at, col = at+size, col+w
	}
	return append(rows, row{start, len(e.text)})
}

// cursor is the cursor's place in rows.
func (e *editor) cursor(rows []row) (line, col int) {
	for line = len(rows) - 1; line > 0 && rows[line].start > e.at; line-- {
	}
	return line, e.column(rows[line], e.at)
}

// column is where a terminal that knows characters draws a place of a row.
func (e *editor) column(r row, at int) int {
	col := 0
	for i := r.start; i < at; {
		text, size, _ := glyph(e.text[i:], col)
		i, col = i+size, col+ansi.StringWidth(text)
	}
	return col
}

// climb moves the cursor up or down by rows; false if there is no such row.
func (e *editor) climb(by, width int) bool {
	rows := e.rows(width)
	line, col := e.cursor(rows)
	if line+by < 0 || line+by >= len(rows) {
		return false
	}
	if e.goal < 0 {
		e.goal = col
	}
	target := rows[line+by]
	at := target.start
	for x := 0; at < target.end; {
		_, size, w := glyph(e.text[at:], x)
		if x+w > e.goal || at+size == target.end && line+by < len(rows)-1 && rows[line+by+1].start == target.end {
			break // the place behind the last character of a broken line is the next row's
		}
		at, x = at+size, x+w
	}
	e.at = at
	return true
}

// draw gives the text of a row.
func (e *editor) draw(r row) string {
	var b strings.Builder
	for i, col := r.start, 0; i < r.end; {
		text, size, w := glyph(e.text[i:], col)
		b.WriteString(text)
		i, col = i+size, col+w
	}
	return b.String()
}

// recall is the list of earlier inputs, and where in it the reader is.
type recall struct {
	inputs []string
	// at is the input that is shown; len(inputs) = the draft.
	at    int
	draft string
}

const maxRecall = 500

// add remembers an input and ends the reading.
func (r *recall) add(text string) {
	if n := len(r.inputs); n == 0 || r.inputs[n-1] != text {
		r.inputs = append(r.inputs, text)
	}
	r.inputs = r.inputs[max(0, len(r.inputs)-maxRecall):]
	r.at, r.draft = len(r.inputs), ""
}

// step goes back (-1) or forth (1) from the shown text; false at the ends.
func (r *recall) step(by int, shown string) (text string, ok bool) {
	if r.at+by < 0 || r.at+by > len(r.inputs) {
		return "", false
	}
	if r.at == len(r.inputs) {
		r.draft = shown
	}
	r.at += by
	if r.at == len(r.inputs) {
		return r.draft, true
	}
	return r.inputs[r.at], true
}
