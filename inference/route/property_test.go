package route

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/inference"
)

var allKinds = []inference.Kind{
	inference.KindCanceled, inference.KindTimeout, inference.KindRateLimited, inference.KindOverloaded, inference.KindAuth,
	inference.KindQuota, inference.KindBadRequest, inference.KindContextOverflow, inference.KindContentFiltered,
	inference.KindTruncated, inference.KindUnavailable, inference.KindConfig, inference.KindProvider,
}

// outcome is how one call of a story ends; "" is a success.
type outcome struct {
	kind    inference.Kind
	visible bool
	after   time.Duration
}

// story is a run whose calls end as written, in their order, at providers of which some are paused all the while.
type story struct {
	retries int
	replace bool
	paused  []bool
	ends    []outcome
}

func drawStory(t *rapid.T) story {
	return story{
		retries: rapid.IntRange(0, 3).Draw(t, "retries"),
		replace: rapid.Bool().Draw(t, "replace"),
		paused:  rapid.SliceOfN(rapid.Bool(), 1, 4).Draw(t, "paused"),
		ends: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) outcome {
			return outcome{
				kind:    rapid.SampledFrom(append([]inference.Kind{""}, allKinds...)).Draw(t, "kind"),
				visible: rapid.Bool().Draw(t, "visible"),
				after:   rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second, time.Hour}).Draw(t, "after"),
			}
		}), 64, 64).Draw(t, "ends"),
	}
}

// twin says which providers a story calls, as a person would write it down: provider by provider, with loops. It shares
// nothing with the course but the kinds.
func (s story) twin() (calls []int, answered bool) {
	ends, halved := s.ends, false
	for at, paused := range s.paused {
		if paused {
			continue
		}
		for further := s.retries; ; {
			end := ends[0]
			ends, calls = ends[1:], append(calls, at)
			if end.kind == "" {
				return calls, true
			}
			if end.visible && !s.replace {
				return calls, false
			}
			again := false
			switch {
			case end.kind == "canceled", end.kind == "bad_request", end.kind == "content_filtered":
				return calls, false
			case end.kind == "context_overflow":
				if halved || end.visible {
					return calls, false
				}
				halved, again = true, true
			case end.kind == "auth", end.kind == "quota", end.kind == "config":
			case further > 0 && end.after <= 30*time.Second:
				again = true
				if further--; end.visible {
					further = 0
				}
			}
			if !again {
				break
			}
		}
	}
	return calls, false
}

// played is what a course makes of a story.
func (s story) played(t require.TestingT) (calls []int, err error) {
	var targets []target
	for i := range s.paused {
		targets = append(targets, target{provider: fmt.Sprint("p", i)})
	}
	rules, _ := Standard()
	rules.Retries = s.retries
	c, now, ends := newCourse(rules, s.replace, targets), time.Unix(0, 0), s.ends
	look := func(at int) gate {
		if s.paused[at] {
			return gate{paused: time.Minute}
		}
		return gate{}
	}
	for {
		m := c.next(now, look)
		switch {
		case m.wait > 0:
			require.LessOrEqual(t, m.wait, rules.MaxWait)
			require.NotEmpty(t, m.reason)
			now = now.Add(m.wait)
		case m.call:
			calls = append(calls, c.at)
			c.called()
			var failure *inference.Error
			if end := ends[0]; end.kind != "" {
				failure = &inference.Error{Kind: end.kind, Provider: targets[c.at].provider, RetryAfter: end.after}
			}
			c.ended(now, failure, ends[0].visible, 25*time.Second)
			ends = ends[1:]
		default:
			return calls, m.err
		}
	}
}

func TestCourseCallsAsItsPlainTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		want, answered := s.twin()
		got, err := s.played(t)
		require.Equal(t, want, got)
		require.Equal(t, answered, err == nil)
	})
}

func TestCourseIsBoundedAndTellsWhyItEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		calls, err := s.played(t)
		// One call more for the halved prompt.
		require.LessOrEqual(t, len(calls), len(s.paused)*(1+s.retries)+1)
		if err == nil {
			return
		}
		var failure *inference.Error
		require.ErrorAs(t, err, &failure)
		require.True(t, failure.Kind.Valid())
		require.LessOrEqual(t, len(failure.Message), inference.MessageLimit)
		if len(calls) == 0 {
			require.Equal(t, inference.KindUnavailable, failure.Kind)
			require.Equal(t, time.Minute, failure.RetryAfter)
		} else {
			require.Equal(t, s.ends[len(calls)-1].kind, failure.Kind, "the last failure is told")
		}
	})
}
