package testkit

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// Every promise of the queue modes can be seen broken, too.
func TestSessionKitSeesEachBrokenPromiseOfTheQueueModes(t *testing.T) {
	t.Parallel()
	finish := session.RunFinished{RunID: "run_1", Attempt: 1, Outcome: messages.OutcomeCompleted, Content: "1"}
	asked := session.SteerAsked{RunID: "run_1", Attempt: 1, TurnID: "turn_2", BeforeCall: 2}
	submit := func(mode messages.QueueMode) session.Submit {
		return session.Submit{Request: &messages.SubmitTurn{Text: "more", QueueMode: string(mode)}, TurnID: "turn_5"}
	}
	for want, c := range map[string]struct {
		cmd   session.Command
		spoil func(r *Result)
	}{
		"a turn of mode collect is placed front": {submit("collect"), func(r *Result) {
			change(r, func(a *messages.TurnAdmitted) { a.Placement = "front" })
		}},
		"is back into \"\", the rules say into \"turn_3\"": {submit("followup"), func(r *Result) {
			change(r, func(a *messages.TurnAdmitted) { a.Placement, a.MergedInto = "back", "" })
		}},
		"is merged into \"turn_1\", the rules say into": {submit("followup"), func(r *Result) {
			change(r, func(a *messages.TurnAdmitted) { a.MergedInto = "turn_1" })
		}},
		"explain says": {submit("collect"), func(r *Result) {
			accepted, _ := r.Reply.(*messages.TurnAccepted)
			accepted = proto.CloneOf(accepted)
			accepted.Position++
			r.Reply = accepted
		}},
		"the ledger says [offer turn_5 deadline turn_5], the effects do [offer turn_5]": {submit("steer"), func(r *Result) {
			r.Effects = slices.DeleteFunc(r.Effects, func(e session.Effect) bool { _, ok := e.(session.ArmOffer); return ok })
		}},
		"the ledger says [inject turn_2], the effects do []": {asked, func(r *Result) {
			r.Effects = slices.DeleteFunc(r.Effects, func(e session.Effect) bool { _, ok := e.(session.Inject); return ok })
		}},
		"turn turn_2 is not offered, it neither steers nor falls back": {asked, func(r *Result) {
			add(r, &messages.TurnReturned{TurnId: "turn_2", Placement: "back"})
		}},
		"turn turn_2 steers run_9": {asked, func(r *Result) {
			change(r, func(i *messages.TurnInjected) { i.RunId = "run_9" })
		}},
		"I2: turn turn_2 is STEERING and ends with a note false": {asked, func(r *Result) { r.Events = nil }},
		"I7: turn turn_2 ended as steered, and nobody is told":   {asked, func(r *Result) { silence(r, "turn_2") }},
		"run run_3 takes [turn_3], waiting are [turn_3 turn_4 turn_2]": {finish, func(r *Result) {
			change(r, func(s *messages.RunStarted) { s.TurnIds = s.GetTurnIds()[:1] })
		}},
		"run run_3 starts before [turn_2] went back": {finish, func(r *Result) {
			r.Ledger = slices.DeleteFunc(r.Ledger, func(l messages.LedgerRecord) bool { _, ok := l.(*messages.TurnReturned); return ok })
		}},
		"I7: turn turn_4 ended as merged, and nobody is told": {finish, func(r *Result) { silence(r, "turn_4") }},
		"I9: run_3 wants a slot before the final of run_1": {finish, func(r *Result) {
			drop(r, func(i messages.Intent) bool { _, ok := i.(*messages.RouterResponse); return ok })
		}},
		"turn turn_4 led an entry: true, its run is announced: false": {session.Withdraw{TurnID: "turn_3"}, func(r *Result) {
			drop(r, func(i messages.Intent) bool {
				phase, ok := i.(*messages.RunPhaseChanged)
				return ok && phase.GetRunId() == "run_4"
			})
		}},
		"its run stays in phase queued_in_session": {session.Withdraw{TurnID: "turn_3"}, func(r *Result) {
			drop(r, func(i messages.Intent) bool {
				phase, ok := i.(*messages.RunPhaseChanged)
				return ok && phase.GetPhase() == string(messages.PhaseAborted)
			})
		}},
		"falls back at its deadline, but the run has accepted it": {session.OfferOver{TurnID: "turn_2"}, func(r *Result) {
			add(r, &messages.TurnReturned{TurnId: "turn_2", Placement: "back"})
		}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			k := NewSessionKit(t)
			mode := func(mode messages.QueueMode) func(*messages.SubmitTurn) {
				return func(r *messages.SubmitTurn) { r.QueueMode = string(mode) }
			}
			k.Submit("one")
			k.Submit("two", mode(messages.QueueSteer), func(r *messages.SubmitTurn) { r.Mode = "STEERING" })
			k.Submit("three", mode(messages.QueueFollowup))
			k.Submit("four", mode(messages.QueueFollowup))
			k.Run(session.SteerAnswered{TurnID: "turn_2", Accepted: true})
			twin, before := cloneCheck(k.check), k.state
			r := k.Run(c.cmd)
			r.Effects, r.Ledger = slices.Clone(r.Effects), slices.Clone(r.Ledger)
			c.spoil(&r)
			require.ErrorContains(t, twin.after(k, c.cmd, before, r), want)
		})
	}
}

// change edits a copy of the first record of its type.
func change[R interface {
	messages.LedgerRecord
	proto.Message
}](r *Result, edit func(R)) {
	for i, record := range r.Ledger {
		if found, ok := record.(R); ok {
			found = proto.CloneOf(found)
			edit(found)
			r.Ledger[i] = found
			return
		}
	}
}

// silence takes away what tells of a turn's end.
func silence(r *Result, turn string) {
	drop(r, func(intent messages.Intent) bool {
		end, ok := intent.(*messages.TurnStateChanged)
		return ok && end.GetTurnId() == turn
	})
}

// drop takes items away and leaves no hole in the numbers.
func drop(r *Result, gone func(messages.Intent) bool) {
	seq := r.Published()[0].Seq
	var left []session.Effect
	for _, effect := range r.Effects {
		p, ok := effect.(session.Publish)
		switch {
		case !ok:
			left = append(left, effect)
		case !gone(p.Intent):
			p.Seq = seq
			seq++
			left = append(left, p)
		}
	}
	r.Effects, r.State.Live.NextSeq = left, seq
}
