package session

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/messages"
)

// viewL2 is how many L2 entries a view holds; the rest is paged.
const viewL2 = 50

// viewContent bounds the text of one history entry in a view, in bytes; what is cut ends with "…".
const viewContent = 64 << 10

// View is the state as others see it: RouterState, the conversation and the queue.
func (s State) View() *messages.SessionView {
	v := &messages.SessionView{
		SessionId:           string(s.Key.Session),
		TenantId:            string(s.Key.Tenant),
		WorkflowStatus:      string(s.Router.WorkflowStatus()),
		CurrentStageId:      s.Router.CurrentStageID,
		L2Total:             uint64(s.Router.L2.Len()), //nolint:gosec // a length
		ConversationHistory: viewHistory(s.Ledger.History),
		EventSequence:       s.Router.EventSequence,
		Epoch:               s.Live.Epoch,
		ResumeEngine:        s.Ledger.Resume.Token.GetEngine(),
		Held:                s.Live.Held,
	}
	for _, e := range s.Router.L2.Newest(viewL2) {
		v.L2Memory = append(v.L2Memory, &messages.StageEntry{
			StageId: e.StageID, Summary: e.Summary, Outcome: string(e.Outcome), Timestamp: timestamppb.New(e.Timestamp),
		})
	}
	if run := s.Ledger.Active; run != nil {
		v.ActiveRun = &messages.ActiveRun{RunId: run.ID, TurnIds: run.TurnIDs(), Phase: string(s.Live.Phase), Attempt: run.Attempt}
		switch {
		case s.Live.Asked.RunID == run.ID:
			v.ActiveRun.Phase = string(messages.PhaseWaitingForSlot)
		case s.Live.Phase == "": // it goes on after the start that is to come
			v.ActiveRun.Phase = string(messages.PhaseQueued)
		}
	}
	for _, e := range s.Ledger.Queue.Waiting {
		t := e.Lead()
		v.Queue = append(v.Queue, &messages.QueuedTurn{
			TurnId: t.GetTurnId(), MergedTurnIds: turnIDs(e.Turns[1:]), QueueMode: t.GetQueueMode(), Mode: t.GetMode(),
			AcceptedAt: t.GetAcceptedAt(),
		})
	}
	for _, t := range s.Ledger.Queue.Offered {
		v.PendingSteers = append(v.PendingSteers, &messages.PendingSteer{TurnId: t.GetTurnId(), RunId: v.GetActiveRun().GetRunId()})
	}
	return v
}

// viewHistory bounds each entry: a view goes to every subscriber, and a few huge answers must not make it too large to send. The
// whole text is in the run's final and in the turn's status.
func viewHistory(history []Entry) []*messages.HistoryEntry {
	out := records(history)
	for _, h := range out {
		h.Content = cutAt(h.GetContent(), viewContent)
	}
	return out
}

// Conversation gives the history in the form that a context pack takes.
func (s State) Conversation() []contextpack.Turn { return conversation(s.Ledger.History) }

// PackSettings gives what a context pack of this session is built with.
func (s State) PackSettings(cfg Config) (keepLast, tokenBudget int, model string) {
	set := s.settings(cfg)
	return set.keepLast, set.tokenBudget, set.model
}
