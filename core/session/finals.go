package session

import (
	"slices"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Finals is the list of unacknowledged answers: adding one is O(1), and old values stay as they are.
type Finals struct {
	newest *final
	count  int
}

type final struct {
	run  *messages.RunEnded
	prev *final
}

// Len is the number of answers.
func (f Finals) Len() int { return f.count }

// add appends the newest answer.
func (f Finals) add(run *messages.RunEnded) Finals {
	return Finals{newest: &final{run: run, prev: f.newest}, count: f.count + 1}
}

// After gives the answers with a number greater than seq that ended after oldest, in order.
func (f Finals) After(seq uint64, oldest time.Time) []*messages.RunEnded {
	var out []*messages.RunEnded
	for n := f.newest; n != nil && n.run.GetFinalSeq() > seq; n = n.prev {
		if n.run.GetEndedAt().AsTime().Before(oldest) {
			break
		}
		out = append(out, n.run)
	}
	slices.Reverse(out)
	return out
}

// keep gives the newest limit answers with a number greater than seq that ended after oldest.
func (f Finals) keep(seq uint64, oldest time.Time, limit int) Finals {
	runs := f.After(seq, oldest)
	if len(runs) > limit {
		runs = runs[len(runs)-limit:]
	}
	var kept Finals
	for _, run := range runs {
		kept = kept.add(run)
	}
	return kept
}

// acked says whether acknowledging up to seq would remove an answer.
func (f Finals) acked(seq uint64) bool {
	for n := f.newest; n != nil; n = n.prev {
		if n.run.GetFinalSeq() <= seq {
			return true
		}
	}
	return false
}
