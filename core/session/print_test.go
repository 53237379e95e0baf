package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// printResult prints one command's records, reply, effects and the state after it, one a line.
func printResult(r testkit.Result) string {
	var b strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&b, "event   %s\n", printEvent(e))
	}
	for _, record := range r.Ledger {
		fmt.Fprintf(&b, "ledger  %s\n", printRecord(record))
	}
	if r.Reply != nil {
		fmt.Fprintf(&b, "reply   %s\n", printReply(r.Reply))
	}
	for _, effect := range r.Effects {
		fmt.Fprintln(&b, printEffect(effect))
	}
	return b.String() + printState(r.State)
}

func printEvent(e messages.Event) string {
	if note, ok := e.(*messages.SteeringNoteAdded); ok {
		return fmt.Sprintf("%s %s %q", e.EventType(), note.GetTurnId(), note.GetContent())
	}
	return e.EventType()
}

func printRecord(record messages.LedgerRecord) string {
	switch r := record.(type) {
	case *messages.SessionConfigured:
		return "session_configured" + printConfig(r.GetConfig())
	case *messages.TurnAdmitted:
		return fmt.Sprintf("turn_admitted %s %s %s%s", r.GetTurn().GetTurnId(), r.GetTurn().GetMode(), r.GetTurn().GetQueueMode(),
			printPlace(r.GetPlacement(), r.GetMergedInto()))
	case *messages.TurnReturned:
		return fmt.Sprintf("turn_returned %s%s, %s", r.GetTurnId(), printPlace(r.GetPlacement(), r.GetMergedInto()), r.GetReason())
	case *messages.TurnInjected:
		return fmt.Sprintf("turn_injected %s into %s before call %d, item %d", r.GetTurnId(), r.GetRunId(), r.GetBeforeCall(), r.GetSeq())
	case *messages.RunStarted:
		return fmt.Sprintf("run_started %s %v attempt %d, recoveries %d", r.GetRunId(), r.GetTurnIds(), r.GetAttempt(), r.GetRecoveries())
	case *messages.SlotAwaited:
		return "slot_awaited " + r.GetRunId()
	case *messages.ToolsLaunched:
		return fmt.Sprintf("tools_launched %s attempt %d %v", r.GetRunId(), r.GetAttempt(), r.GetCallIds())
	case *messages.RunSuspended:
		return "run_suspended " + r.GetRunId()
	case *messages.RunEnded:
		return fmt.Sprintf("run_ended %s %v %s, items %d-%d%s", r.GetRunId(), r.GetTurnIds(), r.GetOutcome(), r.GetFirstSeq(), r.GetFinalSeq(),
			list(", notes of ", r.GetSteeredTurnIds())+text(", resume ", r.GetResume().GetToken())+text(" of ", r.GetResumeLineage())+flag(", resume lost", r.GetResumeLost()))
	case *messages.TurnEnded:
		return fmt.Sprintf("turn_ended %s %s, item %d%s", r.GetTurnId(), r.GetState(), r.GetSeq(), text(", ", r.GetReason()))
	case *messages.AbortRequested:
		if r.GetInterrupt() {
			return "abort_requested " + r.GetRunId() + " by an interrupt"
		}
		return "abort_requested " + r.GetRunId() + text(" ", r.GetReason())
	case *messages.OutputReserved:
		return fmt.Sprintf("output_reserved up to %d", r.GetUpTo())
	case *messages.SessionAlive:
		return fmt.Sprintf("session_alive at +%s", r.GetAt().AsTime().Sub(start))
	case *messages.FinalsAcked:
		return fmt.Sprintf("finals_acked up to %d", r.GetUpTo())
	case *messages.LedgerCheckpoint:
		return fmt.Sprintf("ledger_checkpoint open %d, active %q, history %d, finals %d, reserved %d", len(r.GetOpenTurns()),
			r.GetActive().GetRunId(), len(r.GetHistory()), len(r.GetFinals()), r.GetOutputReserved())
	}
	return fmt.Sprintf("%T", record)
}

// printPlace prints where a turn went, unless that is the back of the queue.
func printPlace(place, into string) string {
	switch place {
	case "", "back":
		return ""
	case "merged":
		return " merged into " + into
	}
	return " " + place
}

func printReply(reply messages.Reply) string {
	switch r := reply.(type) {
	case *messages.Failure:
		retry := ""
		if r.GetRetryable() {
			retry = " (retryable)"
		}
		return fmt.Sprintf("%s%s: %s", r.GetCode(), retry, r.GetMessage())
	case *messages.TurnAccepted:
		return fmt.Sprintf("turn_accepted %s %s %s, %s, position %d%s", r.GetTurnId(), r.GetRunId(), r.GetDisposition(), r.GetState(),
			r.GetPosition(), text(", merged into ", r.GetMergedInto()))
	case *messages.Explanation:
		return fmt.Sprintf("would be %s as %s, position %d%s: %s", r.GetDisposition(), r.GetQueueMode(), r.GetPosition(),
			text(", merged into ", r.GetMergedInto()), r.GetReason())
	case *messages.Withdrawn:
		return fmt.Sprintf("withdrawn %s %t, %s", r.GetTurnId(), r.GetWithdrawn(), r.GetState())
	case *messages.EventsRecorded:
		return fmt.Sprintf("events_recorded %d-%d", r.GetFirstSequence(), r.GetLastSequence())
	case *messages.Aborted:
		return fmt.Sprintf("aborted turns %v runs %v", r.GetTurnIds(), r.GetRunIds())
	case *messages.SessionStarted:
		return "session_started " + r.GetState().GetSessionId()
	case *messages.Done:
		return "done"
	case *messages.Subscribed, *messages.Unsubscribed, *messages.SessionState, *messages.TurnFound, *messages.ContextExplained:
	}
	return fmt.Sprintf("%T", reply)
}

func printEffect(effect session.Effect) string {
	switch e := effect.(type) {
	case session.Publish:
		return fmt.Sprintf("output  %d %s", e.Seq, printIntent(e.Intent))
	case session.StartRun:
		last := e.Order.Turns[len(e.Order.Turns)-1]
		return fmt.Sprintf("effect  start_run %s attempt %d %v, model %q, event %d, history %d ending with %q%s", e.Order.RunID, e.Order.Attempt,
			e.Order.TurnIDs, e.Order.Model, e.Order.Router.EventSequence, len(e.Order.Turns), last.Content,
			printResume(e.Order))
	case session.AskSlot:
		return fmt.Sprintf("effect  ask_slot %s model %q%s%s", e.RunID, e.Needs.Model, text(", lease ", e.Needs.Lease), flag(", interrupts", e.Needs.Interrupts))
	case session.DropSlot:
		return "effect  drop_slot"
	case session.ArmSlot:
		return fmt.Sprintf("effect  arm_slot %s, ask %d after %s", e.RunID, e.Ask, e.After)
	case session.ArmSettle:
		return fmt.Sprintf("effect  arm_settle after %s", e.After)
	case session.ArmStart:
		return fmt.Sprintf("effect  arm_start %s attempt %d after %s", e.RunID, e.Attempt, e.After)
	case session.CancelRun:
		return fmt.Sprintf("effect  cancel_run %s attempt %d: %s", e.RunID, e.Attempt, e.Cause)
	case session.ArmGrace:
		return fmt.Sprintf("effect  arm_grace %s attempt %d after %s", e.RunID, e.Attempt, e.After)
	case session.AckRunner:
		return fmt.Sprintf("effect  ack_runner %s attempt %d", e.RunID, e.Attempt)
	case session.OfferSteer:
		return fmt.Sprintf("effect  offer_steer %s attempt %d %s %q", e.RunID, e.Attempt, e.TurnID, e.Text)
	case session.ArmOffer:
		return fmt.Sprintf("effect  arm_offer %s after %s", e.TurnID, e.After)
	case session.LaunchTools:
		return fmt.Sprintf("effect  launch_tools %s attempt %d %v", e.RunID, e.Attempt, e.CallIDs)
	case session.RefuseSteer:
		return fmt.Sprintf("effect  refuse_steer %s attempt %d %s", e.RunID, e.Attempt, e.TurnID)
	case session.Inject:
		return fmt.Sprintf("effect  inject %s attempt %d %s", e.RunID, e.Attempt, e.TurnID)
	case session.AnnounceEvents:
		return fmt.Sprintf("effect  announce_events %d", e.Head)
	}
	return fmt.Sprintf("%T", effect)
}

func printIntent(intent messages.Intent) string {
	switch i := intent.(type) {
	case *messages.RunPhaseChanged:
		from := i.GetPreviousPhase()
		if from == "" {
			from = "·"
		}
		return fmt.Sprintf("run_phase %s/%d %s -> %s%s", i.GetRunId(), i.GetAttempt(), from, i.GetPhase(), text(", ", i.GetReason()))
	case *messages.StreamDelta:
		return fmt.Sprintf("stream_delta %s/%d at %d %q", i.GetRunId(), i.GetAttempt(), i.GetOffset(), i.GetText())
	case *messages.StreamSnapshot:
		return fmt.Sprintf("stream_snapshot %s/%d %q", i.GetRunId(), i.GetAttempt(), i.GetText())
	case *messages.ToolStatus:
		var parts []string
		for _, a := range i.GetActions() {
			parts = append(parts, a.GetId()+" "+a.GetPhase()+flag(" failed", a.Ok != nil && !a.GetOk()))
		}
		return fmt.Sprintf("tool_status %s %v%s", i.GetRunId(), parts, flag(", final", i.GetFinal()))
	case *messages.StreamFinalize:
		return fmt.Sprintf("stream_finalize %s/%d %s %q", i.GetRunId(), i.GetAttempt(), i.GetOutcome(), i.GetText())
	case *messages.TurnStateChanged:
		steered := ""
		if i.GetSteeringEmitted() {
			steered = ", steering emitted"
		}
		return fmt.Sprintf("turn_state %s %s%s%s%s%s", i.GetTurnId(), i.GetState(), text(" into ", i.GetMergedInto()),
			text(" into ", i.GetSteeredInto()), steered, text(", ", i.GetReason()))
	case *messages.RouterResponse:
		return "router_response " + printResponse(i)
	case *messages.Notice:
		return "notice " + i.GetText()
	}
	return fmt.Sprintf("%T", intent)
}

func printResponse(r *messages.RouterResponse) string {
	line := fmt.Sprintf("%s %s %q", r.GetRunId(), r.GetOutcome(), r.GetContent())
	if r.GetSteeringEmitted() {
		line += ", steering emitted"
	}
	if usage := r.GetUsage(); usage.InputTokens != nil {
		line += fmt.Sprintf(", %d+%d tokens %s", usage.GetInputTokens(), usage.GetOutputTokens(), usage.GetSource())
	} else {
		line += ", usage " + usage.GetSource()
	}
	if r.GetError() != nil {
		line += ", error " + r.GetError().GetCode()
	}
	return line + text(", finish ", r.GetFinishReason())
}

func printState(s session.State) string {
	parts := []string{"idle"}
	if run := s.Ledger.Active; run != nil {
		parts[0] = fmt.Sprintf("%s/%d %s", run.ID, run.Attempt, s.Live.Phase)
		if run.Aborted {
			parts[0] += " aborted"
		}
		if run.Suspended {
			parts[0] += " suspended"
		}
	}
	if asked := s.Live.Asked.RunID; asked != "" {
		parts = append(parts, asked+" waits for a slot")
	}
	if s.Live.Held {
		parts = append(parts, "held")
	}
	if s.Live.Settling {
		parts = append(parts, "settling")
	}
	if s.Live.Draining {
		parts = append(parts, "draining")
	}
	var queue []string
	for _, entry := range s.Ledger.Queue.Waiting {
		queue = append(queue, joined(entry.Turns))
	}
	if len(queue) > 5 {
		queue = []string{fmt.Sprintf("%d turns", len(queue))}
	}
	if offered := s.Ledger.Queue.Offered; len(offered) > 0 {
		parts = append(parts, "offered "+strings.ReplaceAll(joined(offered), "+", " "))
	}
	parts = append(parts, fmt.Sprintf("queue %v", queue), fmt.Sprintf("history %d", len(s.Ledger.History)),
		fmt.Sprintf("finals %d", s.Ledger.Finals.Len()), fmt.Sprintf("event %d", s.Router.EventSequence))
	return "state   " + strings.Join(parts, ", ") + "\n"
}

func joined(turns []*messages.Turn) string {
	ids := make([]string, len(turns))
	for i, turn := range turns {
		ids[i] = turn.GetTurnId()
	}
	return strings.Join(ids, "+")
}

func printStatus(s *messages.TurnStatus) string {
	line := fmt.Sprintf("%s %s of %s%s%s", s.GetTurnId(), s.GetState(), s.GetRunId(), text(", merged into ", s.GetMergedInto()),
		text(", steered into ", s.GetSteeredInto()))
	if s.Position != nil {
		line += fmt.Sprintf(", position %d", s.GetPosition())
	}
	if s.GetContent() != "" {
		line += fmt.Sprintf(", content %q", s.GetContent())
	}
	if s.GetSteeringEmitted() {
		line += ", steering emitted"
	}
	return line + text(", outcome ", s.GetOutcome()) + text(", reason ", s.GetReason()) + text(", key ", s.GetIdempotencyKey()) + "\n"
}

func printHistory(s session.State) string {
	var b strings.Builder
	for _, turn := range s.Conversation() {
		partial := ""
		if turn.Partial {
			partial = " (partial)"
		}
		fmt.Fprintf(&b, "%s %q%s\n", turn.Role, turn.Content, partial)
	}
	return b.String()
}

func printResume(order session.RunOrder) string {
	if order.Resume == nil {
		return ""
	}
	return fmt.Sprintf(", resumes %s after %d", order.Resume.GetToken(), order.Known) + text(", on ", order.Engine)
}

func printFinals(finals []*messages.RunEnded) string {
	var b strings.Builder
	for _, run := range finals {
		fmt.Fprintf(&b, "%d %s\n", run.GetFinalSeq(), printResponse(session.Response(run)))
	}
	return b.String()
}

func printStored(t *testing.T, records []messages.Record) string {
	t.Helper()
	var b strings.Builder
	for _, rec := range records {
		record, err := messages.DecodeLedger(rec.Type, rec.Version, rec.Payload)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%d %s\n", rec.Seq, printRecord(record))
	}
	return b.String()
}

func printSettings(kit *testkit.SessionKit) string {
	keepLast, budget, model := kit.State().PackSettings(kit.Config())
	return fmt.Sprintf("keep_last %d, token_budget %d, model %q\nown:%s\n", keepLast, budget, model, printConfig(kit.State().Ledger.Config))
}

func printConfig(c *messages.SessionConfig) string {
	if c == nil {
		return " nothing"
	}
	var parts []string
	if c.Model != nil {
		parts = append(parts, fmt.Sprintf("model %q", c.GetModel()))
	}
	if c.QueueMode != nil {
		parts = append(parts, "queue_mode "+c.GetQueueMode())
	}
	if c.ConversationKeepLast != nil {
		parts = append(parts, fmt.Sprintf("keep_last %d", c.GetConversationKeepLast()))
	}
	if c.TokenBudget != nil {
		parts = append(parts, fmt.Sprintf("token_budget %d", c.GetTokenBudget()))
	}
	return " {" + strings.Join(parts, ", ") + "}"
}

func printView(v *messages.SessionView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s %s, stage %q, event %d, epoch %d\n", v.GetTenantId(), v.GetSessionId(), v.GetWorkflowStatus(), v.GetCurrentStageId(),
		v.GetEventSequence(), v.GetEpoch())
	for _, e := range v.GetL2Memory() {
		fmt.Fprintf(&b, "l2 %s %s %q\n", e.GetStageId(), e.GetOutcome(), e.GetSummary())
	}
	fmt.Fprintf(&b, "l2 %d of %d\n", len(v.GetL2Memory()), v.GetL2Total())
	for _, h := range v.GetConversationHistory() {
		fmt.Fprintf(&b, "history %s %q of %s at +%s\n", h.GetRole(), h.GetContent(), h.GetTurnId(), h.GetTimestamp().AsTime().Sub(start))
	}
	if run := v.GetActiveRun(); run != nil {
		fmt.Fprintf(&b, "active %s/%d %v %s\n", run.GetRunId(), run.GetAttempt(), run.GetTurnIds(), run.GetPhase())
	}
	for _, q := range v.GetQueue() {
		fmt.Fprintf(&b, "queue %s %s %s at +%s%s\n", q.GetTurnId(), q.GetMode(), q.GetQueueMode(), q.GetAcceptedAt().AsTime().Sub(start),
			list(", merged ", q.GetMergedTurnIds()))
	}
	for _, steer := range v.GetPendingSteers() {
		fmt.Fprintf(&b, "steer %s for %s\n", steer.GetTurnId(), steer.GetRunId())
	}
	return b.String()
}

func text(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func list(before string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return before + strings.Join(slices.Clone(items), " ")
}

func flag(text string, set bool) string {
	if set {
		return text
	}
	return ""
}

// actions reads "id state, …": started, ok or failed.
func actions(d *datadriven.TestData) []*messages.ToolAction {
	var out []*messages.ToolAction
	for part := range strings.SplitSeq(str(d, "actions"), ",") {
		id, state, _ := strings.Cut(strings.TrimSpace(part), " ")
		a := &messages.ToolAction{Id: id, Kind: "tool", Title: "echo", Phase: "started"}
		if state != "started" {
			ok := state == "ok"
			a.Phase, a.Ok = "completed", &ok
		}
		out = append(out, a)
	}
	return out
}
