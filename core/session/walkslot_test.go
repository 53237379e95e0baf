package session_test

import (
	"strings"
	"time"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// slots does what the shell does with waits of all kinds, at any time.
func (w *walk) slots() {
	w.t.Helper()
	run, _ := w.heldRun()
	switch w.pick(9) {
	case 0:
		w.taken = !w.taken
		w.kit.TakeSlots(w.taken)
	case 1, 2:
		w.run(session.SlotGranted{RunID: w.staleRun()})
	case 3:
		w.run(session.SlotOver{RunID: w.staleRun(), Ask: 1})
	case 4:
		w.run(session.SettleOver{})
	case 5:
		w.run(session.LeaseWanted{RunID: w.staleRun()})
	case 6:
		w.run(session.KeepAlive{RunID: run, Decision: w.one("continue", "continue", "cancel", "perhaps")})
	case 7:
		w.run(session.StartFailed{RunID: w.staleRun(), Attempt: 1})
	default:
		w.run(session.StartAgain{RunID: w.staleRun(), Attempt: 1})
	}
}

// settles says whether the first turn of an idle session waits for more.
func (w *walk) settles(req *messages.SubmitTurn) bool {
	mode := w.mode(req)
	return w.kit.Config().Settle > 0 && !req.GetTaskResult() && (mode == "followup" || mode == "steer")
}

// unpaid says whether the budget of the day is used up.
func (w *walk) unpaid(now time.Time) bool {
	limit, spent := w.kit.Config().TokensPerDay, w.kit.State().Ledger.Spent
	return limit > 0 && spent.Day == now.Unix()/86400 && spent.Tokens >= limit
}

// heldRun is the run that a user's word would be about, and whether the session waits for that word.
func (w *walk) heldRun() (run string, held bool) {
	s := w.kit.State()
	if len(w.twin.open) > 0 {
		run = strings.Replace(w.twin.open[0], "turn_", "run_", 1)
	}
	switch {
	case s.Ledger.Active != nil:
		run = s.Ledger.Active.ID
	case len(s.Ledger.Queue.Waiting) > 0:
		run = s.Ledger.Queue.Waiting[0].Lead().GetRunId()
	}
	return run, s.Live.Held
}
