package tui

import (
	"strings"

	"github.com/correx/correx-actors/messages/protocol"
)

// kind is what an entry of the transcript is.
type kind string

const (
	kindUser    kind = "user"
	kindAnswer  kind = "answer"
	kindNote    kind = "note"
	kindFailure kind = "failure"
)

// entry is one piece of the transcript.
type entry struct {
	kind kind
	text string
	// key of an own input; "" = it was not typed here.
	key string
	// turn that the input became; "" = it is not accepted.
	turn string
	// run that answers the input, or that the answer is of.
	run string
	// steer: the input is also a steering note.
	steer bool
	// stage of an own input's way.
	stage stage
	// remark and failure are shown under the text.
	remark, failure string

	// Of an answer. Open: more may come.
	open    bool
	attempt uint32
	// torn: text begins behind the answer's beginning.
	torn bool

	layout layout
}

// stage is how far an own input has come; it only rises.
type stage int

const (
	stageUnsent stage = iota
	stageQueued
	stageBegun
	stageEnded
)

// layout is an entry's text in lines. While the text grows, only its last paragraph is wrapped again.
type layout struct {
	width int
	text  string
	// done bytes of text lie in the first fixed lines; they are whole paragraphs.
	done, fixed int
	lines       []string
}

func (l *layout) update(text string, width int) {
	switch {
	case l.width == width && l.text == text && l.lines != nil:
		return
	case l.width != width || !strings.HasPrefix(text, l.text[:l.done]):
		*l = layout{}
	}
	l.width, l.text, l.lines = width, text, l.lines[:l.fixed]
	for {
		n := strings.IndexByte(text[l.done:], '\n')
		if n < 0 {
			break
		}
		l.lines = append(l.lines, wrap(text[l.done:l.done+n], width)...)
		l.done, l.fixed = l.done+n+1, len(l.lines)
	}
	l.lines = append(l.lines, wrap(text[l.done:], width)...)
}

// transcript is the conversation from its oldest shown entry to its newest. An answer stands under the inputs that it answers.
type transcript struct{ entries []*entry }

// maxEntries bounds what a chat that stays open for weeks holds.
const maxEntries = 5000

func (t *transcript) insert(at int, e *entry) {
	t.entries = append(t.entries, nil)
	copy(t.entries[at+1:], t.entries[at:])
	t.entries[at] = e
	if over := len(t.entries) - maxEntries; over > 0 {
		t.entries = append([]*entry(nil), t.entries[over:]...)
	}
}

func (t *transcript) add(e *entry) { t.insert(len(t.entries), e) }

func (t *transcript) note(text string) { t.add(&entry{kind: kindNote, text: text}) }

func (t *transcript) fail(text string) { t.add(&entry{kind: kindFailure, text: text}) }

// input finds an own input.
func (t *transcript) input(key string) *entry {
	for i := len(t.entries) - 1; i >= 0 && key != ""; i-- {
		if e := t.entries[i]; e.kind == kindUser && e.key == key {
			return e
		}
	}
	return nil
}

// inputOfTurn finds the own input that became a turn.
func (t *transcript) inputOfTurn(turn string) *entry {
	for _, e := range t.entries {
		if e.turn == turn && turn != "" {
			return e
		}
	}
	return nil
}

// waiting finds the newest own input that waits in the server's queue.
func (t *transcript) waiting() *entry {
	for i := len(t.entries) - 1; i >= 0; i-- {
		if e := t.entries[i]; e.waits() && e.turn != "" {
			return e
		}
	}
	return nil
}

// inputsOf gives the inputs that a run answers.
func (t *transcript) inputsOf(run string) []*entry {
	var found []*entry
	for _, e := range t.entries {
		if e.kind == kindUser && e.run == run && run != "" {
			found = append(found, e)
		}
	}
	return found
}

// openEnd is the place before the own inputs that wait for their turn.
func (t *transcript) openEnd() int {
	for i, e := range t.entries {
		if e.waits() {
			return i
		}
	}
	return len(t.entries)
}

// waits: an own input that no run has taken.
func (e *entry) waits() bool { return e.kind == kindUser && e.key != "" && e.stage < stageBegun }

// answer finds the answer of a run, or begins it under the inputs that it answers.
func (t *transcript) answer(run string) *entry {
	at := -1
	for i := len(t.entries) - 1; i >= 0; i-- {
		e := t.entries[i]
		if e.run != run {
			continue
		}
		if e.kind == kindAnswer {
			return e
		}
		if at < 0 {
			at = i + 1
		}
	}
	if at < 0 {
		at = t.openEnd()
	}
	e := &entry{kind: kindAnswer, run: run, open: true}
	t.insert(at, e)
	return e
}

// delta adds text to an answer. What was shown already is not shown twice; what is missing is known to be missing.
func (e *entry) delta(f *protocol.StreamDelta) {
	if !e.open {
		return
	}
	if f.Attempt != e.attempt {
		e.attempt, e.text, e.torn = f.Attempt, "", false
	}
	have := uint64(len(e.text))
	switch {
	case e.torn, f.Offset > have:
		e.torn = true
		e.text += f.Text
	case f.Offset+uint64(len(f.Text)) > have:
		e.text = e.text[:f.Offset] + f.Text
	}
}

// whole replaces an answer's text.
func (e *entry) whole(attempt uint32, text string) {
	e.attempt, e.text, e.torn = attempt, text, false
}

// finish closes an answer with its final text; an outcome without one keeps what was streamed.
func (e *entry) finish(content, outcome string) {
	if content != "" || outcome == outcomeCompleted {
		e.whole(e.attempt, content)
	}
	e.open, e.remark = false, ""
	if outcome != outcomeCompleted {
		e.remark = outcome
		if e.text != "" {
			e.remark = "partial answer, " + outcome
		}
	}
}

// outcomeCompleted is the one outcome of a run that needs no remark.
const outcomeCompleted = "completed"
