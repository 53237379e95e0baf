package route

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

// Rules of a course.
type Rules struct {
	// Retries are the further calls that one provider gets before the next one takes over.
	Retries int
	// MaxWait bounds what is waited before a call: for a Retry-After, a limit or the back-off. Who asks for more is passed over.
	MaxWait time.Duration
}

// gate is what stands between a course and a provider at one moment.
type gate struct {
	// paused: calls are refused for that long, after failures.
	paused time.Duration
	// full: it has as many calls as it may; nobody knows for how long.
	full bool
	// wait for a limit. Why names the limit, also that of full.
	wait time.Duration
	why  string
}

// fullAgain is how soon a full provider is looked at again.
const fullAgain = time.Second

// move is what a course does next: one of call, wait and stop.
type move struct {
	call bool
	// wait > 0 is a wait.
	wait   time.Duration
	reason string
	halve  bool
	// err of a stop; nil after a call that completed.
	err error
}

// course is one run on its way through its targets. It is pure: what time it is, how long to back off and what stands before a
// provider are given to it.
type course struct {
	rules   Rules
	replace bool
	targets []target

	// at is the target at hand; len(targets) = none is left.
	at int
	// left are the further calls that it may get, calls those that it got.
	left, calls int
	// due is when it may be called again, and why not now.
	due time.Time
	why string
	// full is since when it is full.
	full time.Time
	// halve: the next call sends half; halved: one did.
	halve, halved bool
	// anew: a call was made again without its resume token.
	anew bool

	// last failure, and what is told of the targets before.
	last  *inference.Error
	trail []string
	// soonest is when a target that was passed over may be called; paused: one of them is, after failures.
	soonest time.Time
	paused  bool
	over    bool
}

func newCourse(rules Rules, replace bool, targets []target) *course {
	return &course{rules: rules, replace: replace, targets: targets, left: rules.Retries}
}

// next says what to do at a moment. Look tells what stands before a target; it is asked only of the one at hand.
func (c *course) next(now time.Time, look func(at int) gate) move {
	for ; !c.over && c.at < len(c.targets); c.pass() {
		g := look(c.at)
		switch {
		case g.paused > 0:
			c.paused = true
			c.passedOver(now.Add(g.paused), fmt.Sprintf("paused after failures, next try in %s", told(g.paused)))
			continue
		case g.wait > c.rules.MaxWait:
			c.passedOver(now.Add(g.wait), fmt.Sprintf("%s, free in %s", g.why, told(g.wait)))
			continue
		case g.full && !c.full.IsZero() && now.Sub(c.full) >= c.rules.MaxWait:
			c.passedOver(now.Add(fullAgain), g.why)
			continue
		case g.full:
			if c.full.IsZero() {
				c.full = now
			}
			wait := max(min(fullAgain, c.full.Add(c.rules.MaxWait).Sub(now)), time.Millisecond)
			return move{wait: wait, reason: fmt.Sprintf("provider %s: %s", c.targets[c.at].provider, g.why)}
		}
		wait, why := c.due.Sub(now), c.why
		if g.wait > wait {
			wait, why = g.wait, g.why
		}
		if wait > 0 {
			return move{wait: wait, reason: fmt.Sprintf("provider %s: %s, next call in %s", c.targets[c.at].provider, why, told(wait))}
		}
		return move{call: true, reason: c.reason(), halve: c.halve}
	}
	return move{err: c.failure(now)}
}

// called says that the call which next gave is being made.
func (c *course) called() {
	c.calls++
	c.halved = c.halved || c.halve
	c.halve, c.full = false, time.Time{}
}

// ended takes the end of a call; nil = it completed. Pause is the back-off before a further call to the same provider.
func (c *course) ended(now time.Time, failure *inference.Error, visible bool, pause time.Duration) {
	c.last = failure
	if failure == nil {
		c.over = true
		return
	}
	way := reactionTo(failure)
	if visible && !c.replace {
		way = giveUp
	}
	switch way {
	case giveUp:
		c.over = true
	case shorten:
		if c.over = c.halved || visible; !c.over {
			c.halve = true
		}
	case startAnew:
		if c.anew {
			c.pass()
		}
		c.anew = true
	case goElsewhere:
		c.pass()
	case tryAgain:
		c.again(now, visible, pause)
	}
}

// again calls the provider once more, or the next one if this one has had its chances or asks for too long a wait.
func (c *course) again(now time.Time, visible bool, pause time.Duration) {
	asked := c.last.RetryAfter
	if asked > 0 {
		c.soonest = earlier(c.soonest, now.Add(asked))
		pause += asked
	}
	if c.left == 0 || asked > c.rules.MaxWait {
		c.pass()
		return
	}
	c.left--
	if visible { // a cut text is replaced once; whatever comes of that, there is no third
		c.left = 0
	}
	c.due, c.why = now.Add(min(pause, c.rules.MaxWait)), because(c.last)
}

// pass goes to the next target. What is told of this one has been said by passedOver, or its last failure says it.
func (c *course) pass() {
	if c.calls > 0 && c.last != nil {
		text := fmt.Sprintf("%s: %s", c.targets[c.at].provider, because(c.last))
		if c.calls > 1 {
			text += fmt.Sprintf(", %d calls", c.calls)
		}
		c.trail = append(c.trail, text)
	}
	c.at++
	c.left, c.calls = c.rules.Retries, 0
	c.due, c.why, c.full = time.Time{}, "", time.Time{}
}

func (c *course) passedOver(until time.Time, why string) {
	c.soonest = earlier(c.soonest, until)
	c.trail = append(c.trail, c.targets[c.at].provider+": "+why)
}

// reason tells why the target at hand is called.
func (c *course) reason() string {
	t := c.targets[c.at]
	switch {
	case c.halve && c.calls > 0:
		return fmt.Sprintf("provider %s again with half the budget: %s", t.provider, because(c.last))
	case c.calls > 0:
		return fmt.Sprintf("provider %s again, call %d: %s", t.provider, c.calls+1, because(c.last))
	case c.at == 0:
		return t.how
	}
	return fmt.Sprintf("fallback to provider %s: %s", t, strings.Join(c.trail, "; "))
}

// failure tells how the course ended without an answer; nil = it did not.
func (c *course) failure(now time.Time) error {
	if c.last == nil {
		if c.over {
			return nil
		}
		return c.unreached(now)
	}
	var notes []string
	if c.last.RetryAfter > 0 {
		notes = append(notes, fmt.Sprintf("it asks for %s before the next call", told(c.last.RetryAfter)))
	}
	if len(c.trail) > 1 || len(c.trail) == 1 && c.calls > 0 {
		notes = append(notes, "all providers: "+strings.Join(c.trail, "; "))
	}
	if notes == nil {
		return c.last
	}
	whole := *c.last
	whole.Message = inference.Bound(strings.Join(append(nonEmpty(whole.Message), notes...), "; "), inference.MessageLimit)
	whole.Err = c.last
	return &whole
}

// unreached is the failure of a course that could call nobody.
func (c *course) unreached(now time.Time) error {
	kind := inference.KindRateLimited
	if c.paused {
		kind = inference.KindUnavailable
	}
	return &inference.Error{
		Kind:       kind,
		Message:    inference.Bound("no provider can be called now: "+strings.Join(c.trail, "; "), inference.MessageLimit),
		RetryAfter: max(c.soonest.Sub(now), 0),
		Err:        errUnreached,
	}
}

// errUnreached: nobody was called.
var errUnreached = errors.New("every provider is paused or at its limit")

// because names a failure shortly, with the provider's own words left out.
func because(e *inference.Error) string {
	if errors.Is(e, inference.ErrUnknownResume) {
		return "it does not know the conversation any more"
	}
	if e.Limit != "" {
		return fmt.Sprintf("%s (%s)", e.Kind, e.Limit)
	}
	return string(e.Kind)
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// told rounds a time for people.
func told(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return max(d.Round(time.Millisecond), time.Millisecond)
}
