package session

// Text is an answer as it grows: appending costs the piece, not the whole, and old values stay as they are.
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

// Len is the size in bytes of UTF-8.
func (t Text) Len() int { return t.size }

// String joins the pieces.
func (t Text) String() string {
	buf := make([]byte, t.size)
	end := t.size
	for p := t.last; p != nil; p = p.prev {
		end -= len(p.text)
		copy(buf[end:], p.text)
	}
	return string(buf)
}
