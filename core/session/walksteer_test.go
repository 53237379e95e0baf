package session_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// turnID is mostly of an open turn.
func (w *walk) turnID() string {
	if len(w.twin.open) > 0 && w.chance(80) {
		return w.twin.open[w.pick(len(w.twin.open))]
	}
	return fmt.Sprintf("turn_%d", 1+w.pick(20))
}

func (w *walk) withdraw() {
	w.t.Helper()
	id := w.turnID()
	want := "unknown_turn"
	if status, ok := w.kit.State().Turn(id); ok {
		want = status.GetState()
		if want == "queued" || want == "offered" {
			want = "withdrawn"
		}
	} else if status, ok := w.kit.Turn(id); ok {
		want = status.GetState()
	}
	switch reply := w.run(session.Withdraw{TurnID: id}).Reply.(type) {
	case *messages.Withdrawn:
		require.Equal(w.t, want, reply.GetState())
		require.Equal(w.t, want == "withdrawn", reply.GetWithdrawn())
	case *messages.Failure:
		require.Equal(w.t, want, reply.GetCode())
	default:
		require.Fail(w.t, "withdraw", "%T", reply)
	}
}

// steer does what a run does with an offer, in any order, and for turns that are not offered too.
func (w *walk) steer() {
	w.t.Helper()
	id := w.turnID()
	if offered := w.kit.State().Ledger.Queue.Offered; len(offered) > 0 && w.chance(80) {
		id = offered[w.pick(len(offered))].GetTurnId()
	}
	switch w.pick(4) {
	case 0:
		w.run(session.SteerAnswered{RunID: w.staleRun(), Attempt: 1, TurnID: id, Accepted: true})
	case 1:
		w.run(session.SteerAnswered{RunID: w.staleRun(), Attempt: 1, TurnID: id, Reason: "no boundary"})
	case 2:
		w.run(session.SteerAsked{RunID: w.staleRun(), Attempt: 1, TurnID: id, BeforeCall: 2})
	default:
		w.run(session.OfferOver{TurnID: id})
	}
}
