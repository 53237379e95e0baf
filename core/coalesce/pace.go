// Package coalesce decides when output that comes in small pieces is published: the text of an answer, and the status of the
// tools that a run uses. Both are pure machines. Time is an argument, timers are asked for and come back with the number that
// they were armed with, and what is to be published is handed to the caller; who sends it where, and how a channel renders it,
// is not known here.
//
// A machine is immutable: every step gives a new one, and the old stays as it is.
package coalesce

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the thresholds. A threshold of 0 is off: what it would hold back passes at once.
type Config struct {
	// MinChars of an answer, in characters (code points), are published without waiting. Default 200.
	MinChars int
	// Idle publishes an answer's text when nothing was added for so long. Default 800 ms.
	Idle time.Duration
	// Latency is the longest that an answer's text waits. Default 3 s.
	Latency time.Duration
	// ToolIdle publishes the status of tools when it did not change for so long. Default 400 ms.
	ToolIdle time.Duration
	// ToolLatency is the longest that a status waits. Default 1.2 s.
	ToolLatency time.Duration
	// ToolActions bounds the actions that are kept of a run. Default 50.
	ToolActions int
}

// DefaultConfig has the defaults.
func DefaultConfig() Config {
	return Config{
		MinChars: 200, Idle: 800 * time.Millisecond, Latency: 3 * time.Second,
		ToolIdle: 400 * time.Millisecond, ToolLatency: 1200 * time.Millisecond, ToolActions: 50,
	}
}

// Validate tells everything that is wrong.
func (c Config) Validate() error {
	var wrong []error
	for _, v := range []struct {
		name  string
		value int64
		least int64
	}{
		{"output.min_chars", int64(c.MinChars), 0},
		{"output.idle", int64(c.Idle), 0},
		{"output.latency", int64(c.Latency), 0},
		{"output.tool_idle", int64(c.ToolIdle), 0},
		{"output.tool_latency", int64(c.ToolLatency), 0},
		{"output.tool_actions", int64(c.ToolActions), 1},
	} {
		if v.value < v.least {
			wrong = append(wrong, fmt.Errorf("%s: must be at least %d", v.name, v.least))
		}
	}
	return errors.Join(wrong...)
}

// Timer asks for one call of the machine's Timer, After from now, with its Generation. The zero value asks for nothing. One that
// comes although it is of no use any more does no harm, so none needs to be stopped.
type Timer struct {
	Generation uint64
	After      time.Duration
}

// pace knows since when something waits. It has at most one timer at a time: text that comes meanwhile arms no other, the timer
// finds out when it fires that it has to wait on. It never fires too late, since what is due moves only away.
type pace struct {
	// waits: there is something to publish, the oldest since first, the newest since last.
	waits       bool
	first, last time.Time
	// generation of the newest timer. It only rises, also over attempts.
	generation uint64
	armed      bool
}

// touch notes that something more waits.
func (p pace) touch(now time.Time) pace {
	if !p.waits {
		p.waits, p.first = true, now
	}
	p.last = now
	return p
}

// rest notes that nothing waits. An armed timer stays armed.
func (p pace) rest() pace {
	p.waits = false
	return p
}

// reset forgets everything but the generation, so that the armed timer counts no more.
func (p pace) reset() pace { return pace{generation: p.generation} }

// left is how long what waits may wait on; 0 or less: no longer.
func (p pace) left(now time.Time, idle, latency time.Duration) time.Duration {
	return min(idle-now.Sub(p.last), latency-now.Sub(p.first))
}

// arm asks for a timer, unless there is one.
func (p pace) arm(after time.Duration) (pace, Timer) {
	if p.armed {
		return p, Timer{}
	}
	p.generation++
	p.armed = true
	return p, Timer{Generation: p.generation, After: after}
}

// fired takes a timer's coming, and says whether something waits for it.
func (p pace) fired(generation uint64) (pace, bool) {
	if !p.armed || generation != p.generation {
		return p, false
	}
	p.armed = false
	return p, p.waits
}
