package media

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/correx/correx-actors/core/rope"
)

// mark begins a directive, behind blanks.
const mark = "MEDIA:"

// maxLine bounds what is kept of a directive's line: a longer one is dropped all the same, but it names no file.
const maxLine = 8 << 10

// Strip takes the MEDIA: lines out of a whole answer. The other lines stay as they are, but blank lines at the end go if there
// was a directive; an answer without one is not changed. A line ends where a client may show an end: besides \n at \r, \v, \f
// and the ends that Unicode knows. It costs linear time.
func Strip(answer string) (visible string, requests []Request) {
	if !strings.Contains(answer, mark) {
		return answer, nil
	}
	s, head := Screen{}.Write(answer)
	s, rest := s.Close()
	return head + rest, s.Requests()
}

// Screen lets an answer through as it is streamed, without its MEDIA: lines. What Write and Close give, joined, is what Strip
// leaves of the whole, however the text was cut, also inside a character. It holds back what it cannot decide yet: the beginning
// of a line that may become a directive, line ends and blank lines (they go if only directives follow), and an incomplete
// character.
//
// It is immutable: every step gives a new one. The zero value is ready.
type Screen struct {
	state state
	// gap holds line ends and blank lines behind the last visible text.
	gap rope.Text
	// head is the beginning of the current line, blanks and a part of the mark; in a directive, what follows the mark.
	head rope.Text
	// matched bytes of the mark.
	matched int
	// part of a character, at most three bytes.
	part string
	// afterCR: the directive's line ended with \r, and a \n that follows belongs to that end.
	afterCR bool
	// dropped: there was a directive.
	dropped bool
	found   []Request
}

// state says what the current line is.
type state uint8

const (
	// stateHead: only blanks and a part of the mark so far.
	stateHead state = iota
	// stateText: visible.
	stateText
	// stateDirective: behind a mark.
	stateDirective
)

// Requests are the files that the directives asked for so far, each path once.
func (s Screen) Requests() []Request { return s.found }

// Write takes the next piece and gives what has become visible.
func (s Screen) Write(piece string) (Screen, string) {
	text := s.part + piece
	n := partial(text)
	s.part, text = text[len(text)-n:], text[:len(text)-n]
	if s.state == stateText && lineEnd(text) == len(text) {
		return s, text
	}
	var out strings.Builder
	s.pass(text, &out)
	return s, out.String()
}

// Close ends the text and gives the rest that is visible. The Screen is spent: only its Requests are of use.
func (s Screen) Close() (Screen, string) {
	var out strings.Builder
	if s.part != "" {
		s.pass(s.part, &out)
		s.part = ""
	}
	switch s.state {
	case stateDirective:
		s.directive()
	case stateHead:
		if s.matched > 0 || !s.dropped {
			s.reveal(&out)
		}
	case stateText:
	}
	s.gap, s.head = rope.Text{}, rope.Text{}
	return s, out.String()
}

// pass runs text, whole characters, through the states.
func (s *Screen) pass(text string, out *strings.Builder) {
	for text != "" {
		if s.afterCR {
			s.afterCR = false
			if text[0] == '\n' {
				text = text[1:]
				continue
			}
		}
		switch s.state {
		case stateHead:
			text = s.passHead(text, out)
		case stateText:
			n := lineEnd(text)
			out.WriteString(text[:n])
			text = text[n:]
			if text != "" {
				s.state = stateHead // which puts the line's end into the gap
			}
		case stateDirective:
			n := lineEnd(text)
			if s.head.Len() <= maxLine {
				s.head = s.head.Append(text[:n])
			}
			if text = text[n:]; text != "" {
				_, size := utf8.DecodeRuneInString(text)
				s.afterCR = text[0] == '\r'
				s.directive()
				text = text[size:]
			}
		}
	}
}

// passHead reads the beginning of a line as far as it decides what the line is, and gives what is left.
func (s *Screen) passHead(text string, out *strings.Builder) string {
	for at := 0; at < len(text); {
		if s.matched < len(mark) && text[at] == mark[s.matched] {
			at++
			if s.matched++; s.matched == len(mark) {
				s.state, s.head = stateDirective, rope.Text{}
				return text[at:]
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case s.matched == 0 && lineEnd(text[at:at+size]) == 0:
			at += size
			s.gap = s.gap.Append(s.head.String()).Append(text[:at])
			s.head = rope.Text{}
			return text[at:]
		case s.matched == 0 && unicode.IsSpace(r):
			at += size
		default:
			s.head = s.head.Append(text[:at])
			s.reveal(out)
			return text[at:]
		}
	}
	s.head = s.head.Append(text)
	return ""
}

// reveal makes what was held back visible: the line is none of ours.
func (s *Screen) reveal(out *strings.Builder) {
	out.WriteString(s.gap.String())
	out.WriteString(s.head.String())
	s.state, s.gap, s.head, s.matched = stateText, rope.Text{}, rope.Text{}, 0
}

// directive ends the line of one.
func (s *Screen) directive() {
	if s.head.Len() <= maxLine {
		if path := unquote(strings.TrimSpace(s.head.String())); strings.TrimSpace(path) != "" {
			s.found = add(s.found, Request{Path: path, Source: SourceDirective})
		}
	}
	s.state, s.head, s.matched, s.dropped = stateHead, rope.Text{}, 0, true
}

// unquote takes away one pair of quotes around a path.
func unquote(path string) string {
	if n := len(path); n >= 2 && strings.IndexByte("`\"'", path[0]) >= 0 && path[0] == path[n-1] {
		return path[1 : n-1]
	}
	return path
}

// lineEnd finds the first end of a line: its position, or the length of text.
func lineEnd(text string) int {
	for i := range len(text) {
		switch text[i] {
		case '\n', '\v', '\f', '\r':
			return i
		case 0xC2: // U+0085
			if i+1 < len(text) && text[i+1] == 0x85 {
				return i
			}
		case 0xE2: // U+2028, U+2029
			if i+2 < len(text) && text[i+1] == 0x80 && text[i+2]&^1 == 0xA8 {
				return i
			}
		}
	}
	return len(text)
}

// partial counts the bytes at the end of text that begin a character and do not end it.
func partial(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
