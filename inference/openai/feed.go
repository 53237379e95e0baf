package openai

import (
	"bytes"
	"errors"
	"io"
)

// errBodyTooBig ends a stream that exceeds Config.MaxBodyBytes.
var errBodyTooBig = errors.New("the stream exceeds its size limit")

// errStray ends a stream in which an error stands outside of any event; feed.stray holds it.
var errStray = errors.New("the stream holds an error without framing")

// maxStray bounds what is kept of JSON that stands outside of any event.
const maxStray = 16 << 10

// feed stands between the body and the SSE parser, and gives the parser what it can read in linear time and bounded memory:
// line ends as LF, no comments, no blank lines but those that end an event, and at least one whole event at a time (the
// parser scans an unfinished event again whenever it gets more of it: without this a server that writes single bytes
// costs quadratic time).
//
// It is also where life is seen: whatever bytes come, alive is called unless they gave an event.
type feed struct {
	body io.Reader
	// alive is told of bytes without an event; an error ends the stream.
	alive func() error
	// left is what remains of the size limit, count what has come.
	left, count int64
	// quiet: an event was handed over of which the reader of the events has seen nothing yet.
	quiet bool
	// err ended the body; unterminated: the last event lacked its blank line, and feed adds it (ending, what remains of it).
	err          error
	unterminated bool
	ending       string
	// stray collects lines that start with a brace: some servers write an error without any framing into their stream.
	stray []byte

	// State of the current line, and whether the current event has a line.
	kind     lineKind
	afterCR  bool
	hasLines bool
}

type lineKind uint8

const (
	lineEmpty lineKind = iota
	lineField
	lineComment
	lineStray
)

// Read implements io.Reader. It returns with whole events, or with a full p.
func (f *feed) Read(p []byte) (int, error) {
	if f.quiet {
		f.quiet = false
		if err := f.alive(); err != nil {
			return 0, err
		}
	}
	n, idle := 0, 0
	for n < len(p) {
		if f.err != nil {
			return f.end(p, n)
		}
		got, err := f.body.Read(p[n:])
		f.count += int64(got)
		if f.left -= int64(got); f.left < 0 {
			got, err = max(got+int(f.left), 0), errBodyTooBig
		}
		kept, whole := f.lines(p[n : n+got])
		n += kept
		if f.err == nil {
			f.err = err
		}
		if whole {
			f.quiet = true
			return n, nil
		}
		if got > 0 {
			if err := f.alive(); err != nil {
				return 0, err
			}
		} else if idle++; idle > 100 {
			f.err = io.ErrNoProgress
		}
	}
	return n, nil
}

// end hands over the last event even if the body ended before its blank line: it may well be whole.
func (f *feed) end(p []byte, n int) (int, error) {
	if f.kind == lineField || f.hasLines {
		f.kind, f.hasLines, f.unterminated = lineEmpty, false, true
		f.ending = "\n\n"
	}
	if f.ending == "" {
		return n, f.err
	}
	copied := copy(p[n:], f.ending)
	f.ending = f.ending[copied:]
	return n + copied, nil
}

// lines rewrites b in place; whole: it held the end of an event. It stops at an error outside of any event.
func (f *feed) lines(b []byte) (kept int, whole bool) {
	for i := 0; i < len(b) && f.err == nil; i++ {
		c := b[i]
		if c == '\n' && f.afterCR {
			f.afterCR = false
			continue
		}
		f.afterCR = c == '\r'
		if c == '\n' || c == '\r' {
			if f.endLine() {
				b[kept] = '\n'
				kept++
				whole = whole || f.kind == lineEmpty
			}
			f.kind = lineEmpty
			continue
		}
		if f.kind == lineEmpty {
			f.kind = f.startLine(c)
		}
		switch f.kind {
		case lineField:
			run := plain(b[i:])
			kept += copy(b[kept:], b[i:i+run])
			i += run - 1
		case lineStray:
			f.keepStray(c)
		case lineComment, lineEmpty:
		}
	}
	return kept, whole
}

// plain is how many bytes of b are before its first line end. It looks only so far ahead that lines of a few bytes cost
// little more than their length.
func plain(b []byte) int {
	const ahead = 512
	b = b[:min(len(b), ahead)]
	for _, end := range []byte{'\n', '\r'} {
		if n := bytes.IndexByte(b, end); n >= 0 {
			b = b[:n]
		}
	}
	return len(b)
}

func (f *feed) startLine(c byte) lineKind {
	switch {
	case c == ':':
		return lineComment
	case c == '{' || len(f.stray) > 0 && !f.hasLines && !fieldStart(c):
		return lineStray
	}
	return lineField
}

// fieldStart says whether a line of the stream's grammar can start so; other lines go on with a stray document.
func fieldStart(c byte) bool { return c == 'd' || c == 'e' || c == 'i' || c == 'r' }

func (f *feed) keepStray(c byte) {
	if len(f.stray) < maxStray {
		f.stray = append(f.stray, c)
	}
}

// endLine says whether the line that ends here has an end that the parser should see.
func (f *feed) endLine() bool {
	switch f.kind {
	case lineField:
		f.hasLines = true
		return true
	case lineEmpty:
		had := f.hasLines
		f.hasLines = false
		return had
	case lineStray:
		if _, ok := problemIn(f.stray); ok {
			f.err = errStray
		}
		f.keepStray(' ')
	case lineComment:
	}
	return false
}
