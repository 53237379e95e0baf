package tools

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// ResultLimit is the length in bytes that the Text of an Answer does not exceed.
const ResultLimit = 64 << 10

// Answer is what became of one call. It is for the model that asked and for nothing that outlives the run (I3).
type Answer struct {
	Call Call
	// Text is what the model is told: valid UTF-8, never empty (chat APIs refuse that), at most ResultLimit bytes.
	Text string
	// Cut says that Text is not all; it says so itself too.
	Cut bool
	// Failure is nil if the call gave a result.
	Failure *Failure
	// Took is how long it ran; 0 = it did not.
	Took time.Duration
}

// OK says whether the call gave a result.
func (a Answer) OK() bool { return a.Failure == nil }

func failed(call Call, failure *Failure) Answer {
	answer := answered(call, Result{Text: failure.Error()})
	answer.Failure = failure
	return answer
}

func answered(call Call, result Result) Answer {
	text, cut := cutText(result.Text, ResultLimit)
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	return Answer{Call: call, Text: text, Cut: cut}
}

// cutText bounds a text on a rune border, and says in the text that it did.
func cutText(text string, limit int) (string, bool) {
	whole := len(text)
	if whole > limit {
		// Before the bytes are looked at: a tool may give gigabytes. What is added back below is at most what is invalid here.
		text = text[:limit]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if whole <= limit && len(text) <= limit {
		return text, false
	}
	mark := fmt.Sprintf("\n[cut: the result has %d bytes]", whole)
	end := min(len(text), limit-len(mark))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark, true
}
