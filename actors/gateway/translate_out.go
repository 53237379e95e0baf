package gateway

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/persistence"
)

// answerFrame gives the direct answer to a client's frame.
func answerFrame(id string, key messages.Key, reply messages.Reply) protocol.ServerFrame {
	session := string(key.Session)
	switch m := reply.(type) {
	case *messages.SessionStarted:
		return &protocol.SessionStarted{ID: id, SessionID: session, State: stateOf(m.GetState())}
	case *messages.TurnAccepted:
		f := acceptedFrame(key, m)
		f.ID = id
		return f
	case *messages.Explanation:
		return &protocol.Explanation{
			ID: id, Disposition: m.GetDisposition(), Position: m.GetPosition(), MergedInto: m.GetMergedInto(),
			QueueMode: m.GetQueueMode(), Reason: m.GetReason(),
		}
	case *messages.EventsRecorded:
		return &protocol.EventsRecorded{
			ID: id, SessionID: session, FirstSequence: m.GetFirstSequence(), LastSequence: m.GetLastSequence(),
		}
	case *messages.Subscribed:
		return &protocol.Subscribed{
			ID: id, SessionID: session, NextSeq: m.GetNextSeq(), PendingFinals: m.GetPendingFinals(), State: stateOf(m.GetState()),
		}
	case *messages.Unsubscribed:
		return &protocol.Unsubscribed{ID: id, SessionID: session}
	case *messages.SessionState:
		return &protocol.Session{ID: id, State: stateOf(m.GetState())}
	case *messages.TurnFound:
		f := turnFrame(m.GetTurn())
		f.ID = id
		return f
	case *messages.Aborted:
		return &protocol.Aborted{ID: id, SessionID: session, TurnIDs: m.GetTurnIds(), RunIDs: m.GetRunIds()}
	case *messages.Withdrawn:
		return &protocol.Withdrawn{ID: id, TurnID: m.GetTurnId(), Withdrawn: m.GetWithdrawn(), State: m.GetState()}
	case *messages.Done:
		return &protocol.OK{ID: id}
	case *messages.Failure:
		return failureFrame(id, key, m)
	case *messages.ContextExplained: // nobody asks for it here
	}
	return failureFrame(id, key, messages.Fail(messages.CodeInternal, fmt.Sprintf("unexpected answer %T", reply)))
}

func acceptedFrame(key messages.Key, m *messages.TurnAccepted) *protocol.TurnAccepted {
	return &protocol.TurnAccepted{
		SessionID: string(key.Session), TurnID: m.GetTurnId(), RunID: m.GetRunId(),
		Disposition: m.GetDisposition(), Position: m.GetPosition(), MergedInto: m.GetMergedInto(), State: m.GetState(),
	}
}

func turnFrame(t *messages.TurnStatus) *protocol.Turn {
	f := &protocol.Turn{
		TurnID: t.GetTurnId(), State: t.GetState(), Reason: t.GetReason(), RunID: t.GetRunId(),
		MergedInto: t.GetMergedInto(), SteeredInto: t.GetSteeredInto(), Content: t.GetContent(), Outcome: t.GetOutcome(),
	}
	if t != nil {
		f.Position = t.Position
	}
	return f
}

func failureFrame(id string, key messages.Key, f *messages.Failure) *protocol.Error {
	return &protocol.Error{
		ID: id, SessionID: string(key.Session), Code: f.GetCode(), Message: f.GetMessage(), Retryable: f.GetRetryable(),
		TurnID: f.GetTurnId(),
	}
}

// itemFrame gives the frame of a numbered item; nil if it has no body, which no session sends.
func itemFrame(m *messages.DeliveryIntent) protocol.ServerFrame {
	item := protocol.Item{SessionID: m.GetSessionId(), Seq: m.GetSeq()}
	switch body := m.GetBody().(type) {
	case *messages.DeliveryIntent_StreamDelta:
		b := body.StreamDelta
		return &protocol.StreamDelta{Item: item, RunID: b.GetRunId(), Attempt: b.GetAttempt(), Offset: b.GetOffset(), Text: b.GetText()}
	case *messages.DeliveryIntent_RunPhase:
		b := body.RunPhase
		return &protocol.RunPhase{
			Item: item, RunID: b.GetRunId(), TurnIDs: b.GetTurnIds(), Phase: b.GetPhase(), PreviousPhase: b.GetPreviousPhase(),
			Attempt: b.GetAttempt(), Reason: b.GetReason(),
		}
	case *messages.DeliveryIntent_StreamSnapshot:
		b := body.StreamSnapshot
		return &protocol.StreamSnapshot{Item: item, RunID: b.GetRunId(), Attempt: b.GetAttempt(), Text: b.GetText()}
	case *messages.DeliveryIntent_StreamFinalize:
		b := body.StreamFinalize
		return &protocol.StreamFinalize{
			Item: item, RunID: b.GetRunId(), Attempt: b.GetAttempt(), Text: b.GetText(), Outcome: b.GetOutcome(),
		}
	case *messages.DeliveryIntent_TurnState:
		b := body.TurnState
		return &protocol.TurnState{
			Item: item, TurnID: b.GetTurnId(), State: b.GetState(), Reason: b.GetReason(), RunID: b.GetRunId(),
			MergedInto: b.GetMergedInto(), SteeredInto: b.GetSteeredInto(), SteeringEmitted: b.GetSteeringEmitted(),
		}
	case *messages.DeliveryIntent_RouterResponse:
		return responseFrame(item, body.RouterResponse)
	case *messages.DeliveryIntent_Notice:
		return &protocol.Notice{Item: item, RunID: body.Notice.GetRunId(), Text: body.Notice.GetText()}
	case *messages.DeliveryIntent_ToolStatus:
		b := body.ToolStatus
		return &protocol.ToolStatus{Item: item, RunID: b.GetRunId(), Actions: actionsOf(b.GetActions()), Final: b.GetFinal()}
	case *messages.DeliveryIntent_WatchdogPrompt:
		return &protocol.WatchdogPrompt{Item: item, RunID: body.WatchdogPrompt.GetRunId(), Text: body.WatchdogPrompt.GetText()}
	}
	return nil
}

func actionsOf(actions []*messages.ToolAction) []protocol.Action {
	out := make([]protocol.Action, len(actions))
	for i, a := range actions {
		out[i] = protocol.Action{
			ID: a.GetId(), ParentID: a.GetParentId(), Kind: a.GetKind(), Title: a.GetTitle(), Phase: a.GetPhase(), OK: a.Ok,
		}
		if e := a.GetError(); e != nil {
			out[i].Error = &protocol.ActionError{
				ErrorType: e.GetErrorType(), Tool: e.GetTool(), TimeoutMS: e.GetTimeoutMs(), ExitCode: e.ExitCode,
				Exception: e.GetException(), Status: e.GetStatus(), Reason: e.GetReason(), Message: e.GetMessage(),
				ValidationErrors: e.GetValidationErrors(),
			}
		}
	}
	return out
}

func responseFrame(item protocol.Item, b *messages.RouterResponse) *protocol.RouterResponse {
	f := &protocol.RouterResponse{
		Item: item, RunID: b.GetRunId(), TurnID: b.GetTurnId(), TurnIDs: b.GetTurnIds(), Content: b.GetContent(),
		SteeringEmitted: b.GetSteeringEmitted(), Outcome: b.GetOutcome(), FinishReason: b.GetFinishReason(),
	}
	if u := b.GetUsage(); u != nil {
		f.Usage = &protocol.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Source: u.GetSource()}
	}
	for _, a := range b.GetAttachments() {
		f.Attachments = append(f.Attachments, protocol.AttachmentRef{
			ID: a.GetId(), Name: a.GetName(), MediaType: a.GetMediaType(), Size: a.GetSize(),
		})
	}
	if e := b.GetError(); e != nil {
		f.Error = &protocol.Failure{Code: e.GetCode(), Message: e.GetMessage(), Retryable: e.GetRetryable()}
	}
	return f
}

func resyncFrame(m *messages.Resync) *protocol.Resync {
	return &protocol.Resync{
		SessionID: m.GetSessionId(), UpToSeq: m.GetUpToSeq(), State: stateOf(m.GetState()),
		RunID: m.GetRunId(), Attempt: m.GetAttempt(), Text: m.GetText(),
	}
}

func stateOf(v *messages.SessionView) *protocol.State {
	if v == nil {
		return nil
	}
	s := &protocol.State{
		SessionID: v.GetSessionId(), WorkflowStatus: v.GetWorkflowStatus(), CurrentStageID: v.GetCurrentStageId(),
		L2Total: v.GetL2Total(), EventSequence: v.GetEventSequence(), Epoch: v.GetEpoch(), Node: v.GetNode(), Held: v.GetHeld(),
	}
	for _, e := range v.GetL2Memory() {
		s.L2Memory = append(s.L2Memory, protocol.Stage{
			StageID: e.GetStageId(), Summary: e.GetSummary(), Outcome: e.GetOutcome(), Timestamp: timeOf(e.GetTimestamp()),
		})
	}
	for _, e := range v.GetConversationHistory() {
		s.ConversationHistory = append(s.ConversationHistory, protocol.HistoryEntry{
			Role: e.GetRole(), Content: e.GetContent(), Timestamp: timeOf(e.GetTimestamp()), Partial: e.GetPartial(),
		})
	}
	for _, t := range v.GetQueue() {
		s.Queue = append(s.Queue, protocol.QueuedTurn{
			TurnID: t.GetTurnId(), MergedTurnIDs: t.GetMergedTurnIds(), QueueMode: t.GetQueueMode(), Mode: t.GetMode(),
			AcceptedAt: timeOf(t.GetAcceptedAt()),
		})
	}
	for _, t := range v.GetPendingSteers() {
		s.PendingSteers = append(s.PendingSteers, protocol.PendingSteer{TurnID: t.GetTurnId(), RunID: t.GetRunId()})
	}
	if engine := v.GetResumeEngine(); engine != "" {
		s.Resume = &protocol.Resume{Engine: engine}
	}
	if run := v.GetActiveRun(); run != nil {
		s.ActiveRun = &protocol.ActiveRun{
			RunID: run.GetRunId(), TurnIDs: run.GetTurnIds(), Phase: run.GetPhase(), Attempt: run.GetAttempt(),
		}
	}
	return s
}

// timeOf gives the zero time for an unknown one, which is absent on the wire.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// eventFrame gives the frame of a stored event.
func eventFrame(stored *messages.StoredEvent) (*protocol.SessionEvent, error) {
	s, err := storedEvent(stored)
	if err != nil {
		return nil, err
	}
	return &protocol.SessionEvent{SessionID: s.SessionID, Sequence: s.Sequence, RecordedAt: s.RecordedAt, Event: s.Event}, nil
}

func storedEvent(stored *messages.StoredEvent) (*protocol.StoredEvent, error) {
	encoded := stored.GetEvent()
	e, err := messages.DecodeEvent(encoded.GetType(), encoded.GetVersion(), encoded.GetPayload())
	if err != nil {
		return nil, fmt.Errorf("event %d: %w: %w", stored.GetSequence(), persistence.ErrCorrupt, err)
	}
	raw, err := messages.EventToJSON(e)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w: %w", stored.GetSequence(), persistence.ErrCorrupt, err)
	}
	return &protocol.StoredEvent{
		SessionID: stored.GetSessionId(), Sequence: stored.GetSequence(), RecordedAt: timeOf(stored.GetRecordedAt()), Event: raw,
	}, nil
}

func contextPack(p *messages.PackView) *protocol.ContextPack {
	pack := &protocol.ContextPack{
		Budget: p.GetBudget(), Tokens: p.GetTokens(), OverBudget: p.GetOverBudget(), Tokenizer: p.GetTokenizer(),
	}
	for _, e := range p.GetEntries() {
		pack.Entries = append(pack.Entries, protocol.ContextEntry{
			Layer: e.GetLayer(), Role: e.GetRole(), Content: e.GetContent(), Tokens: e.GetTokens(), Kept: e.GetKept(), Reason: e.GetReason(),
		})
	}
	return pack
}

func summaryOf(s actors.SessionSummary) protocol.SessionSummary {
	summary := protocol.SessionSummary{SessionID: string(s.Key.Session), State: string(s.State)}
	if !s.Damaged {
		summary.SessionRow = &protocol.SessionRow{
			EventSequence: s.EventHead, Epoch: s.Epoch, Running: s.Work.Running, Waiting: s.Work.Waiting, UpdatedAt: s.LastAppend.UTC(),
		}
	}
	return summary
}

// storeFailure says in a client's words what an error of the journal means.
func storeFailure(err error) *messages.Failure {
	switch {
	case errors.Is(err, persistence.ErrUnknownSession):
		return messages.Fail(messages.CodeUnknownSession, "no such session")
	case errors.Is(err, persistence.ErrDeleted):
		return messages.Fail(messages.CodeSessionDeleted, "the session was deleted")
	case errors.Is(err, persistence.ErrCorrupt):
		return messages.Fail(messages.CodeQuarantined, "a record of the session is damaged; it is not served until it is repaired")
	}
	return messages.FailRetryable(messages.CodeUnavailable, "the journal cannot be read now; try again")
}
