// Package rope keeps a text as it grows. Appending costs the piece and not the whole, old values stay as they are, and what was
// added since a position is read without reading what stands before it: so an answer that comes in a hundred thousand pieces
// costs its length and nothing more.
package rope

// Text is an immutable text of UTF-8 bytes. The zero value is empty.
type Text struct {
	last *piece
	size int
}

type piece struct {
	text string
	prev *piece
}

// Append gives the text with s at its end.
func (t Text) Append(s string) Text {
	if s == "" {
		return t
	}
	return Text{last: &piece{text: s, prev: t.last}, size: t.size + len(s)}
}

// Len is the size in bytes.
func (t Text) Len() int { return t.size }

// String joins the pieces.
func (t Text) String() string { return t.From(0) }

// From gives what stands behind the first offset bytes: everything if offset is negative, nothing if it is past the end. It
// costs as much as it gives.
func (t Text) From(offset int) string {
	size := t.size - max(offset, 0)
	if size <= 0 {
		return ""
	}
	if len(t.last.text) >= size {
		return t.last.text[len(t.last.text)-size:]
	}
	buf := make([]byte, size)
	for p := t.last; size > 0; p = p.prev {
		text := p.text
		if len(text) > size {
			text = text[len(text)-size:]
		}
		size -= len(text)
		copy(buf[size:], text)
	}
	return string(buf)
}

// Last gives at most the last n bytes, wherever they begin.
func (t Text) Last(n int) string { return t.From(t.size - max(n, 0)) }
