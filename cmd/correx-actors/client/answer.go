package client

import (
	"strings"

	"github.com/correx/correx-actors/messages/protocol"
)

// Answer is the text of one run as far as a reader has seen it, for outputs that can only add, such as a terminal's lines. The
// zero value has seen nothing.
type Answer struct {
	attempt uint32
	// text of the attempt so far; printed is what the reader has. They differ while a new attempt repeats the old one's words.
	text    string
	printed string
	// torn: a part of text is missing, so only a whole text can be compared.
	torn bool
}

// Show gives what to add so that the reader has all that frame tells; again says that what was printed before does not hold
// any more and the answer begins anew. Frames that carry no text of an answer give "".
func (a *Answer) Show(frame protocol.ServerFrame) (add string, again bool) {
	switch f := any(frame).(type) { // all others carry no text
	case *protocol.StreamDelta:
		return a.delta(f)
	case *protocol.StreamSnapshot:
		return a.soFar(f.Attempt, f.Text)
	case *protocol.StreamFinalize:
		return a.whole(f.Attempt, f.Text)
	case *protocol.RouterResponse:
		return a.whole(a.attempt, f.Content)
	case *protocol.Resync:
		if f.RunID != "" {
			return a.soFar(f.Attempt, f.Text)
		}
	}
	return "", false
}

// Whole shows a text that was learned in another way.
func (a *Answer) Whole(text string) (add string, again bool) { return a.whole(a.attempt, text) }

// Started says whether anything was printed.
func (a *Answer) Started() bool { return a.printed != "" }

func (a *Answer) delta(f *protocol.StreamDelta) (add string, again bool) {
	if f.Attempt != a.attempt {
		a.attempt, a.text, a.torn = f.Attempt, "", false
	}
	have := uint64(len(a.text))
	switch {
	case a.torn, f.Offset > have:
		// Something is missing; what comes is shown, and the whole text will tell.
		a.torn = true
		a.printed += f.Text
		return f.Text, false
	case f.Offset+uint64(len(f.Text)) <= have:
		return "", false
	}
	a.text = a.text[:f.Offset] + f.Text
	return a.catchUp(false)
}

// soFar takes all of a text that may still grow.
func (a *Answer) soFar(attempt uint32, text string) (add string, again bool) {
	torn := a.torn
	a.attempt, a.text, a.torn = attempt, text, false
	return a.catchUp(torn)
}

func (a *Answer) whole(attempt uint32, text string) (add string, again bool) {
	a.attempt, a.text, a.torn = attempt, text, false
	return a.catchUp(true)
}

// catchUp compares the text with what was printed. One that is not whole may still grow into it.
func (a *Answer) catchUp(whole bool) (add string, again bool) {
	if rest, ok := strings.CutPrefix(a.text, a.printed); ok {
		a.printed = a.text
		return rest, false
	}
	if !whole && strings.HasPrefix(a.printed, a.text) {
		return "", false
	}
	a.printed = a.text
	return a.text, true
}
