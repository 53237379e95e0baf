package session

import (
	"fmt"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Spending is what a session's runs used on one day.
type Spending struct {
	// Day since 1970, in UTC.
	Day int64
	// Tokens of prompts and answers: as providers reported them, else as estimated.
	Tokens uint64
}

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) int64 { return t.Unix() / secondsPerDay }

// on gives what was spent on a day.
func (s Spending) on(day int64) uint64 {
	if s.Day != day {
		return 0
	}
	return s.Tokens
}

// bytesPerToken stands in where nobody counted: a run must not be free because its provider keeps silent.
const bytesPerToken = 4

// add counts a run that ended. What a later day's run spent is not counted with an earlier day's: clocks may differ a little
// between nodes, and days only go forward.
func (s Spending) add(r *messages.RunEnded) Spending {
	day := max(dayOf(r.GetEndedAt().AsTime()), s.Day)
	return Spending{Day: day, Tokens: s.on(day) + r.GetSpentTokens()}
}

// spent is what a run used: as its runner counted it. Where it could not say, the prompt is taken for what the run was asked and
// remembered, and the answer for what came of it; a run that never came to a call used nothing.
func (d *draft) spent(e ending) uint64 {
	told := e.usage.GetInputTokens() + e.usage.GetOutputTokens()
	switch at := d.s.Live.Phase; {
	case e.counted:
		return e.spent
	case told > 0:
		return told
	case at == messages.PhaseDispatched:
		return 0
	}
	size := len(e.content)
	for _, entry := range d.s.Ledger.History {
		size += len(entry.Content)
	}
	return uint64(size+bytesPerToken-1) / bytesPerToken //nolint:gosec // a length
}

// overBudget refuses what a session whose budget of the day is used up would have to pay for; nil = it may.
func (d *draft) overBudget() *messages.Failure {
	limit, spent := d.cfg.TokensPerDay, d.s.Ledger.Spent.on(dayOf(d.now))
	if limit == 0 || spent < limit {
		return nil
	}
	return messages.FailRetryable(messages.CodeBudgetExceeded, fmt.Sprintf(
		"the session has used %d tokens today, its budget is %d; it begins anew at midnight UTC", spent, limit))
}

// endUnpaid ends a waiting entry that the budget does not allow to start, each part by itself.
func (d *draft) endUnpaid(turns []*messages.Turn) {
	for i := range turns { // the last part first: no part leads for a moment only to end as well
		d.endWaiting(turns[len(turns)-1-i], messages.TurnFailed, string(messages.CodeBudgetExceeded), nil)
	}
}
