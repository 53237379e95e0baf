package session_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// Cases that other systems got wrong, through the session's rules alone; the kit checks the invariants after each command.

func inMode(mode messages.QueueMode) func(*messages.SubmitTurn) {
	return func(r *messages.SubmitTurn) { r.QueueMode = string(mode) }
}

func submitted(t *testing.T, r testkit.Result) *messages.TurnAccepted {
	t.Helper()
	accepted, ok := r.Reply.(*messages.TurnAccepted)
	require.True(t, ok, "%v", r.Reply)
	return accepted
}

// answers lets everything run to its end and gives what each run was asked, in order.
func answers(t *testing.T, kit *testkit.SessionKit) []string {
	t.Helper()
	var asked []string
	for n := 0; kit.State().Ledger.Active != nil; n++ {
		require.Less(t, n, 100, "it never ends")
		history := kit.State().Ledger.History
		asked = append(asked, history[len(history)-1].Content)
		kit.Answer("ok")
	}
	require.False(t, kit.State().Ledger.Open())
	return asked
}

// A burst while busy: one is refused and told so, the others are answered in order, and the depth goes back to 0.
func TestB01BurstOfCollectsIsAnsweredInOrderAndTheLastIsRefused(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	want := []string{"active"}
	for i := range kit.Config().QueueLimit {
		want = append(want, strconv.Itoa(i))
		require.Equal(t, uint32(i), submitted(t, kit.Submit(strconv.Itoa(i))).GetPosition()) //nolint:gosec // below the limit
	}
	failure, ok := kit.Submit("one too many").Reply.(*messages.Failure)
	require.True(t, ok)
	require.Equal(t, string(messages.CodeQueueFull), failure.GetCode())
	require.True(t, failure.GetRetryable())
	require.Equal(t, want, answers(t, kit))
	require.Zero(t, kit.State().Ledger.Queue.Len())
}

// The same burst as followups is one run, whose parts all know its answer.
func TestB01BurstOfFollowupsIsOneRun(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	for i := range 3 {
		kit.Submit(strconv.Itoa(i), inMode(messages.QueueFollowup))
		kit.Advance(400 * time.Millisecond)
	}
	require.Equal(t, []string{"active", "0\n1\n2"}, answers(t, kit))
	for _, id := range []string{"turn_2", "turn_3", "turn_4"} {
		status, ok := kit.Turn(id)
		require.True(t, ok)
		require.Equal(t, "ok", status.GetContent())
		require.Equal(t, "run_2", status.GetRunId())
	}
}

// No policy ever takes the running turn for a victim: at the limit it is the new one that is refused.
func TestB02RunningTurnIsNeverTheVictim(t *testing.T) {
	t.Parallel()
	cfg := session.DefaultConfig()
	cfg.QueueLimit = 1
	kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg))
	kit.Submit("running")
	kit.Submit("waiting")
	for _, mode := range []messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
	} {
		failure, ok := kit.Submit("more", inMode(mode)).Reply.(*messages.Failure)
		require.True(t, ok, mode)
		require.Equal(t, string(messages.CodeQueueFull), failure.GetCode())
	}
	require.False(t, kit.State().Ledger.Active.Aborted)
	require.Equal(t, []string{"running", "waiting"}, answers(t, kit))
}

// A message while a run is active neither stops it nor vanishes.
func TestB07MessageWhileRunningLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	for mode, want := range map[messages.QueueMode]string{
		"": "queued", messages.QueueCollect: "queued", messages.QueueFollowup: "queued",
		messages.QueueSteer: "steering", messages.QueueSteerBacklog: "steering",
	} {
		kit := testkit.NewSessionKit(t)
		kit.Submit("active")
		require.Equal(t, want, submitted(t, kit.Submit("more", inMode(mode))).GetDisposition())
		require.False(t, kit.State().Ledger.Active.Aborted)
		require.Equal(t, []string{"active", "more"}, answers(t, kit))
	}
}

// A steer that comes before the end of its run and is handled after it starts a turn of its own.
func TestB08SteerOfARunThatJustEndedRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []messages.QueueMode{messages.QueueSteer, messages.QueueSteerBacklog} {
		kit := testkit.NewSessionKit(t)
		kit.Submit("active")
		kit.Submit("steer", inMode(mode))
		r := kit.Answer("done")
		order, ok := r.Started()
		require.True(t, ok)
		require.Equal(t, "run_2", order.RunID)
		for _, late := range []session.Command{
			session.SteerAnswered{RunID: "run_1", Attempt: 1, TurnID: "turn_2", Accepted: true},
			session.SteerAsked{RunID: "run_1", Attempt: 1, TurnID: "turn_2", BeforeCall: 2},
			session.OfferOver{TurnID: "turn_2"},
		} {
			require.Empty(t, kit.Run(late).Records, "%T", late)
		}
		require.Equal(t, []string{"steer"}, answers(t, kit))
	}
}

// An accepted steer that was not put in when its run is aborted is in the state, goes back, and runs exactly once.
func TestB10AcceptedSteerOfAnAbortedRunRunsOnce(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	kit.Submit("steer", inMode(messages.QueueSteer))
	kit.Run(session.SteerAnswered{TurnID: "turn_2", Accepted: true})
	kit.Run(session.Abort{Request: &messages.Abort{}})
	require.Equal(t, "turn_2", kit.State().View().GetPendingSteers()[0].GetTurnId())
	require.Equal(t, []session.Effect{session.RefuseSteer{RunID: "run_1", Attempt: 1, TurnID: "turn_2"}},
		kit.Run(session.SteerAsked{TurnID: "turn_2", BeforeCall: 2}).Effects, "nothing is put into a run that is being stopped")
	kit.Run(session.GraceOver{})
	require.Empty(t, kit.State().View().GetPendingSteers(), "no ghost stays")
	require.Equal(t, []string{"steer"}, answers(t, kit))
}

// A steer is in the journal before it is handed over: a stop, or a crash at any moment, does not destroy it.
func TestB11SteerIsRecordedBeforeItIsHandedOver(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testkit.SessionKit){
		"abort": func(k *testkit.SessionKit) {
			k.Run(session.Abort{Request: &messages.Abort{}})
			k.Run(session.GraceOver{})
		},
		"crash":           func(k *testkit.SessionKit) { k.Restart() },
		"abort and crash": func(k *testkit.SessionKit) { k.Run(session.Abort{Request: &messages.Abort{}}); k.Restart() },
		"suspend":         func(k *testkit.SessionKit) { k.Run(session.Suspend{}); k.Restart() },
		"interrupt": func(k *testkit.SessionKit) {
			k.Submit("now", inMode(messages.QueueInterrupt))
			k.Run(session.GraceOver{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := testkit.NewSessionKit(t)
			kit.Submit("active")
			r := kit.Submit("steer", inMode(messages.QueueSteer))
			require.IsType(t, (*messages.TurnAdmitted)(nil), r.Ledger[0])
			require.IsType(t, session.OfferSteer{}, r.Effects[0], "the effects come after the append")
			stop(kit)
			asked := answers(t, kit)
			require.Equal(t, "steer", asked[len(asked)-1])
			status, ok := kit.Turn("turn_2")
			require.True(t, ok)
			require.Equal(t, "answered", status.GetState())
		})
	}
}

// A waiting turn is listed, can be taken back by its id, and never runs; both are idempotent.
func TestB13WithdrawnTurnNeverRuns(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	kit.Submit("keep")
	kit.Submit("take back")
	for range 2 {
		reply, ok := kit.Run(session.Withdraw{TurnID: "turn_3"}).Reply.(*messages.Withdrawn)
		require.True(t, ok)
		require.True(t, reply.GetWithdrawn())
		require.Equal(t, "withdrawn", reply.GetState())
		view := kit.State().View()
		require.Len(t, view.GetQueue(), 1)
		require.Equal(t, "turn_2", view.GetQueue()[0].GetTurnId())
		kit.Restart()
	}
	require.Equal(t, []string{"active", "keep"}, answers(t, kit))
}

// After an abort nothing is done under the aborted run's id; queued work is started by new runs only.
func TestB14AbortedRunTakesNothingMore(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	kit.Submit("steer", inMode(messages.QueueSteer))
	kit.Submit("followup", inMode(messages.QueueFollowup))
	kit.Run(session.SteerAnswered{TurnID: "turn_2", Accepted: true})
	kit.Run(session.Abort{Request: &messages.Abort{}})
	require.Equal(t, "queued", submitted(t, kit.Submit("late", inMode(messages.QueueSteerBacklog))).GetDisposition())
	kit.Run(session.RunFinished{Outcome: messages.OutcomeCompleted, Content: "too late to complete"})
	require.Equal(t, "run_3", kit.State().Ledger.Active.ID)
	status, ok := kit.Turn("turn_1")
	require.True(t, ok)
	require.Equal(t, "cancelled", status.GetState())
	require.Equal(t, []string{"followup", "late", "steer"}, answers(t, kit))
}

// Two copies of one message are one turn and one answer, wherever the first one is.
func TestB26CopiesOfAMessageAreOneAnswer(t *testing.T) {
	t.Parallel()
	for _, mode := range []messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
	} {
		kit := testkit.NewSessionKit(t)
		kit.Submit("active")
		kit.Submit("before", inMode(messages.QueueFollowup))
		copied := func(r *messages.SubmitTurn) { r.QueueMode, r.IdempotencyKey = string(mode), "m" }
		id := submitted(t, kit.Submit("hello", copied)).GetTurnId()
		again := func() {
			r := kit.Submit("hello", copied)
			require.Equal(t, "duplicate", submitted(t, r).GetDisposition(), mode)
			require.Equal(t, id, submitted(t, r).GetTurnId())
			require.Empty(t, r.Effects)
		}
		again()
		kit.Restart()
		again()
		for kit.State().Ledger.Active != nil {
			kit.Answer("ok")
			again()
		}
		require.LessOrEqual(t, kit.State().Ledger.Finals.Len(), 3)
	}
}

// Two results that come at the same instant are both admitted and both used.
func TestB28TwoResultsAtOneInstantAreBothUsed(t *testing.T) {
	t.Parallel()
	result := func(r *messages.SubmitTurn) { r.QueueMode, r.TaskResult = string(messages.QueueFollowup), true }
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	require.Equal(t, "turn_2", submitted(t, kit.Submit("timer 1", result)).GetTurnId())
	require.Equal(t, "turn_3", submitted(t, kit.Submit("timer 2", result)).GetTurnId())
	require.Equal(t, []string{"active", "timer 1", "timer 2"}, answers(t, kit))
}

// Later followups' choices are not lost, and different senders are never answered in one run.
func TestW3W15MergeKeepsTheNewerModelAndNeverCrossesSenders(t *testing.T) {
	t.Parallel()
	from := func(sender, model string) func(*messages.SubmitTurn) {
		return func(r *messages.SubmitTurn) { r.QueueMode, r.Sender, r.Model = "followup", sender, model }
	}
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	kit.Submit("one", from("ann", "old"))
	kit.Submit("two", from("ann", "new"))
	kit.Submit("three", from("ann", ""))
	kit.Submit("other", from("bob", ""))
	order, ok := kit.Answer("ok").Started()
	require.True(t, ok)
	require.Equal(t, "new", order.Model)
	require.Equal(t, []string{"one\ntwo\nthree", "other"}, answers(t, kit))
}

// Nobody waits for ever on a turn that steered or was merged: each end is announced once and get_turn tells the answer.
func TestW11SteeredAndMergedTurnsHaveAnEnd(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	kit.Submit("lead", inMode(messages.QueueFollowup))
	kit.Submit("part", inMode(messages.QueueFollowup))
	kit.Submit("steer", inMode(messages.QueueSteer))
	ends := make(map[string]string)
	note := func(r testkit.Result) {
		for _, p := range r.Published() {
			if end, ok := p.Intent.(*messages.TurnStateChanged); ok {
				ends[end.GetTurnId()] = end.GetState()
			}
		}
	}
	note(kit.Run(session.SteerAsked{TurnID: "turn_4", BeforeCall: 2}))
	note(kit.Answer("first"))
	note(kit.Answer("second"))
	require.Equal(t, map[string]string{"turn_1": "answered", "turn_2": "answered", "turn_3": "merged", "turn_4": "steered"}, ends)
	for id, content := range map[string]string{"turn_4": "first", "turn_3": "second"} {
		status, ok := kit.Turn(id)
		require.True(t, ok)
		require.Equal(t, content, status.GetContent())
	}
}

// An offer has a deadline; a run that never answers does not keep the message.
func TestW12UnansweredOfferHasADeadline(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("active")
	r := kit.Submit("steer", inMode(messages.QueueSteer))
	require.Contains(t, r.Effects, session.ArmOffer{TurnID: "turn_2", After: 2 * time.Second})
	kit.Run(session.OfferOver{TurnID: "turn_2"})
	require.Empty(t, kit.State().Ledger.Queue.Offered)
	require.Equal(t, 1, kit.State().Ledger.Queue.Len())
}

// There is a limit in every mode, and offers are no way around it.
func TestW18OffersAreBounded(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	limit := kit.Config().QueueLimit
	kit.Submit("active")
	for i := range 5 * limit {
		r := kit.Submit("steer", inMode(messages.QueueSteerBacklog))
		_, refused := r.Reply.(*messages.Failure)
		require.Equal(t, i >= limit, refused)
	}
	for _, turn := range kit.State().Ledger.Queue.Offered {
		kit.Run(session.SteerAnswered{TurnID: turn.GetTurnId(), Reason: "no boundary"})
	}
	_, refused := kit.Submit("steer", inMode(messages.QueueSteer)).Reply.(*messages.Failure)
	require.True(t, refused)
	require.Equal(t, limit, kit.State().Ledger.Queue.Len())
}

// A crash or an orderly stop after any command of a session that uses all modes: everything comes to its end all the same, and the
// kit sees to it that it is one end.
func TestW8StopAfterAnyCommandLosesNothing(t *testing.T) {
	t.Parallel()
	steps := []func(*testkit.SessionKit){
		func(k *testkit.SessionKit) { k.Submit("active") },
		func(k *testkit.SessionKit) { k.Submit("put in", inMode(messages.QueueSteer), steering) },
		func(k *testkit.SessionKit) { k.Submit("offered", inMode(messages.QueueSteer), steering) },
		func(k *testkit.SessionKit) { k.Submit("backlog", inMode(messages.QueueSteerBacklog)) },
		func(k *testkit.SessionKit) { k.Submit("lead", inMode(messages.QueueFollowup), steering) },
		func(k *testkit.SessionKit) { k.Submit("part", inMode(messages.QueueFollowup), steering) },
		func(k *testkit.SessionKit) { k.Run(session.SteerAnswered{TurnID: "turn_2", Accepted: true}) },
		func(k *testkit.SessionKit) { k.Run(session.SteerAsked{TurnID: "turn_2", BeforeCall: 2}) },
		func(k *testkit.SessionKit) { k.Run(session.SteerAnswered{TurnID: "turn_3", Accepted: true}) },
		func(k *testkit.SessionKit) { k.Run(session.OfferOver{TurnID: "turn_4"}) },
		func(k *testkit.SessionKit) { k.Run(session.Withdraw{TurnID: "turn_5"}) },
		func(k *testkit.SessionKit) { k.Submit("now", inMode(messages.QueueInterrupt)) },
		func(k *testkit.SessionKit) { k.Run(session.GraceOver{}) },
		func(k *testkit.SessionKit) { k.Submit("first", inMode(messages.QueueInterrupt)) },
		func(k *testkit.SessionKit) { k.Run(session.Abort{Request: &messages.Abort{Reason: "stop"}}) },
		func(k *testkit.SessionKit) { k.Run(session.GraceOver{}) },
	}
	stops := map[string]func(*testkit.SessionKit){
		"crash":       func(k *testkit.SessionKit) { k.Restart() },
		"two crashes": func(k *testkit.SessionKit) { k.Restart(); k.Restart() },
		"suspend":     func(k *testkit.SessionKit) { k.Run(session.Suspend{}); k.Restart() },
	}
	for name, stop := range stops {
		for at := range len(steps) + 1 {
			for _, checkpoints := range []int{1, 4, 512} {
				cfg := session.DefaultConfig()
				cfg.CheckpointEvery = checkpoints
				kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg))
				for i, step := range steps {
					if i == at {
						stop(kit)
					}
					step(kit)
				}
				if at == len(steps) {
					stop(kit)
				}
				answers(t, kit)
				for n := 1; n <= 8; n++ {
					status, ok := kit.Turn("turn_" + strconv.Itoa(n))
					require.True(t, ok, "%s before step %d: turn_%d", name, at, n)
					require.True(t, messages.TurnState(status.GetState()).Ended())
				}
			}
		}
	}
}

func steering(r *messages.SubmitTurn) { r.Mode = string(messages.ChatModeSteering) }
