package coalesce

import (
	"time"
	"unicode/utf8"

	"github.com/correx/correx-actors/core/media"
	"github.com/correx/correx-actors/core/rope"
)

// Answer is the text of a run's current attempt as it is streamed. Text in, text out, fewer and larger pieces: joined they are
// the beginning of what Final gives, and no MEDIA: line is in them. It expects UTF-8; a character may come in two pieces, and is
// published whole.
//
// The zero value is an answer that has not begun.
type Answer struct {
	attempt uint32
	screen  media.Screen
	visible rope.Text
	// sent bytes of visible are published; chars counts the characters behind them.
	sent  int
	chars int
	pace  pace
	// ended: the final text is told, and whatever comes later is too late.
	ended bool
}

// Step is what an input asks of the caller. The zero value asks for nothing.
type Step struct {
	// Text to publish, empty for none, and the visible bytes that stand before it.
	Text   string
	Offset int
	// Timer to arm.
	Timer Timer
}

// Final is a whole answer.
type Final struct {
	// Text without its MEDIA: lines. Empty if there is nothing to show: an answer of directives alone says nothing, and is not
	// an empty one.
	Text string
	// Requests of its MEDIA: lines.
	Requests []media.Request
	// Streamed: a part of this attempt's text was published before.
	Streamed bool
}

// Attempt begins the text anew if n is higher than the attempt so far; what was not published of the older one never is.
func (a Answer) Attempt(n uint32) Answer {
	if n <= a.attempt {
		return a
	}
	return Answer{attempt: n, pace: a.pace.reset()}
}

// Delta takes the next piece of the attempt's text.
func (a Answer) Delta(cfg Config, text string, now time.Time) (Answer, Step) {
	if a.ended || text == "" {
		return a, Step{}
	}
	var shown string
	if a.screen, shown = a.screen.Write(text); shown == "" {
		return a, Step{}
	}
	a.visible, a.chars = a.visible.Append(shown), a.chars+utf8.RuneCountInString(shown)
	a.pace = a.pace.touch(now)
	if a.chars >= cfg.MinChars {
		return a.Flush()
	}
	return a.publish(cfg, now)
}

// Timer takes a timer that was asked for. One of another generation is stale and does nothing.
func (a Answer) Timer(cfg Config, generation uint64, now time.Time) (Answer, Step) {
	var due bool
	if a.pace, due = a.pace.fired(generation); !due {
		return a, Step{}
	}
	return a.publish(cfg, now)
}

// publish gives what waits if its time has come, and otherwise sees to a timer.
func (a Answer) publish(cfg Config, now time.Time) (Answer, Step) {
	left := a.pace.left(now, cfg.Idle, cfg.Latency)
	if left <= 0 {
		return a.Flush()
	}
	var step Step
	a.pace, step.Timer = a.pace.arm(left)
	return a, step
}

// Flush gives what waits without regard to thresholds: so that text stands before what comes next, such as a tool's call. What
// may yet become a MEDIA: line is held back nevertheless.
func (a Answer) Flush() (Answer, Step) {
	if a.ended || a.sent == a.visible.Len() {
		return a, Step{}
	}
	step := Step{Text: a.visible.From(a.sent), Offset: a.sent}
	a.sent, a.chars, a.pace = a.visible.Len(), 0, a.pace.rest()
	return a, step
}

// Final ends the answer. A whole text that is not empty counts instead of the streamed one: it is what the provider says at its
// end. Later pieces and timers do nothing, so that no flush comes behind the final.
func (a Answer) Final(whole string) (Answer, Final) {
	final := Final{Streamed: a.sent > 0}
	if !a.ended {
		var rest string
		a.screen, rest = a.screen.Close()
		a.visible, a.ended, a.pace = a.visible.Append(rest), true, a.pace.rest()
	}
	if whole != "" {
		final.Text, final.Requests = media.Strip(whole)
		return a, final
	}
	final.Text, final.Requests = a.visible.String(), a.screen.Requests()
	return a, final
}

// Published is the text that was given out so far: what a client that joins late must see before the next piece, which goes on
// where it ends.
func (a Answer) Published() string { return a.visible.String()[:a.sent] }

// Text is the visible text so far, published or not.
func (a Answer) Text() string { return a.visible.String() }

// Len is the length of Text in bytes.
func (a Answer) Len() int { return a.visible.Len() }

// Snapshot is the end of the published text, at most limit bytes, as Tail cuts it. It costs as much as it gives.
func (a Answer) Snapshot(limit int) string {
	from := max(a.sent-max(limit, 0)-reach, 0)
	return Tail(a.visible.From(from)[:a.sent-from], limit)
}
