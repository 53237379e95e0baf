package protocol

import (
	"encoding/json"
	"time"
)

var (
	sampleTime = time.Date(2027, 1, 15, 8, 0, 0, 123_456_789, time.UTC)
	sampleItem = Item{SessionID: "s1", Seq: 42}
)

const (
	sampleTurn  = "turn_01980000-0000-7000-8000-000000000001"
	sampleTurn2 = "turn_01980000-0000-7000-8000-000000000002"
	sampleTurn3 = "turn_01980000-0000-7000-8000-000000000003"
	sampleTurn4 = "turn_01980000-0000-7000-8000-000000000004"
	sampleRun   = "run_01980000-0000-7000-8000-000000000001"
)

func sampleState() *State {
	return &State{
		SessionID: "s1", WorkflowStatus: "RUNNING", CurrentStageID: "deploy",
		L2Memory: List[Stage]{{StageID: "build", Summary: "built in 3 s", Outcome: "SUCCESS", Timestamp: sampleTime}}, L2Total: 1,
		ConversationHistory: List[HistoryEntry]{
			{Role: "USER", Content: "how far are we?", Timestamp: sampleTime},
			{Role: "ROUTER", Content: "The build is", Timestamp: sampleTime, Partial: true},
		},
		EventSequence: 3,
		ActiveRun:     &ActiveRun{RunID: sampleRun, TurnIDs: List[string]{sampleTurn}, Phase: "streaming", Attempt: 1},
		Queue: List[QueuedTurn]{{
			TurnID: sampleTurn2, MergedTurnIDs: List[string]{sampleTurn3}, QueueMode: "followup", Mode: "CHAT", AcceptedAt: sampleTime,
		}},
		PendingSteers:     List[PendingSteer]{{TurnID: sampleTurn4, RunID: sampleRun}},
		Resume:            &Resume{Engine: "host"},
		PendingCompaction: &PendingCompaction{Reason: "context_overflow"},
		Epoch:             2, Node: "n1",
	}
}

func emptyState() *State {
	return &State{
		SessionID: "s1", WorkflowStatus: "IDLE", L2Memory: List[Stage]{}, ConversationHistory: List[HistoryEntry]{},
		Queue: List[QueuedTurn]{}, PendingSteers: List[PendingSteer]{},
	}
}

// clientSamples has one frame of each type; the golden files show them.
func clientSamples() []ClientFrame {
	return []ClientFrame{
		&StartSession{ID: "1", SessionID: "s1", Config: &SessionConfig{
			Model: "gpt-5-mini", QueueMode: "followup", ConversationKeepLast: new(uint32(6)), TokenBudget: new(uint32(4096)),
		}},
		&ChatInput{
			ID: "2", SessionID: "s1", Text: "stop before <deploy> & tell me", Mode: ModeSteering, QueueMode: "steer", IdempotencyKey: "k-1",
			Resume: &ResumeToken{Engine: "host", Token: "t-1"}, Sender: "ada", Model: "gpt-5-mini",
			Attachments: []Attachment{{Name: "a.txt", MediaType: "text/plain", Data: []byte("hi")}},
		},
		&Explain{ChatInput: ChatInput{
			ID: "11", SessionID: "s1", Text: "stop before <deploy> & tell me", Mode: ModeSteering, QueueMode: "interrupt", IdempotencyKey: "k-1",
			Resume: &ResumeToken{Engine: "host", Token: "t-1"}, Sender: "ada", Model: "gpt-5-mini",
			Attachments: []Attachment{{Name: "a.txt", MediaType: "text/plain", Data: []byte("hi")}},
		}},
		&Subscribe{ID: "3", SessionID: "s1", AfterSeq: new(uint64(0)), Events: true, AfterEvent: new(uint64(3))},
		&Unsubscribe{ID: "4", SessionID: "s1"},
		&Abort{ID: "5", SessionID: "s1", Scope: ScopeTurn, TurnID: sampleTurn, RunID: sampleRun, Reason: "not needed"},
		&KeepRunAlive{ID: "13", SessionID: "s1", RunID: sampleRun, Decision: DecisionContinue},
		&Withdraw{ID: "12", SessionID: "s1", TurnID: sampleTurn},
		&GetTurn{ID: "6", SessionID: "s1", TurnID: sampleTurn},
		&GetSession{ID: "7", SessionID: "s1"},
		&RecordEvents{ID: "8", SessionID: "s1", Events: []json.RawMessage{
			json.RawMessage(`{"type":"stage_started","stage_id":"build"}`),
			json.RawMessage(`{"type":"deploy.approved","by":"ada","score":1.50}`),
		}, ExpectedSequence: new(uint64(0))},
		&Ack{ID: "9", SessionID: "s1", Seq: 42},
		&Ping{ID: "10"},
	}
}

// serverSamples has one frame of each type; the golden files show them.
func serverSamples() []ServerFrame {
	return []ServerFrame{
		&Hello{Protocol: Name, Server: "0.1.0", Node: "n1", MaxFrameBytes: 65536, HeartbeatMS: 30000},
		&SessionStarted{ID: "1", SessionID: "s1", State: emptyState()},
		&TurnAccepted{ID: "2", SessionID: "s1", TurnID: sampleTurn, RunID: sampleRun, Disposition: "merged", MergedInto: sampleTurn2, State: "queued"},
		&Explanation{ID: "11", Disposition: "merged", Position: 1, MergedInto: sampleTurn2, QueueMode: "followup", Reason: "it joins the followup that waits"},
		&Subscribed{ID: "3", SessionID: "s1", NextSeq: 43, PendingFinals: 1, State: sampleState()},
		&Unsubscribed{ID: "4", SessionID: "s1"},
		&Aborted{ID: "5", SessionID: "s1", TurnIDs: List[string]{sampleTurn}, RunIDs: List[string]{}},
		&OK{ID: "13"},
		&Withdrawn{ID: "12", TurnID: sampleTurn, Withdrawn: true, State: "withdrawn"},
		&Turn{
			ID: "6", TurnID: sampleTurn, State: "merged", Reason: "joined", Position: new(uint32(0)), RunID: sampleRun,
			MergedInto: sampleTurn2, SteeredInto: sampleRun, Content: "done", Outcome: "completed",
		},
		&Session{ID: "7", State: sampleState()},
		&EventsRecorded{ID: "8", SessionID: "s1", FirstSequence: 1, LastSequence: 2},
		&Pong{ID: "10"},
		&Error{ID: "2", SessionID: "s1", Code: CodeQueueFull, Message: "20 turns wait", Retryable: true, TurnID: sampleTurn},
		&RunPhase{Item: sampleItem, RunID: sampleRun, TurnIDs: List[string]{sampleTurn}, Phase: "streaming", PreviousPhase: "starting_engine", Attempt: 1, Reason: "first token"},
		&StreamDelta{Item: sampleItem, RunID: sampleRun, Attempt: 1, Offset: 12, Text: "<b>done</b> & \"well\""},
		&StreamSnapshot{Item: sampleItem, RunID: sampleRun, Attempt: 1, Text: "The build is done"},
		&StreamFinalize{Item: sampleItem, RunID: sampleRun, Attempt: 1, Text: "The build is done.", Outcome: "completed"},
		&TurnState{Item: sampleItem, TurnID: sampleTurn, State: "merged", Reason: "joined", RunID: sampleRun, MergedInto: sampleTurn2, SteeredInto: sampleRun, SteeringEmitted: true},
		&RouterResponse{
			Item: sampleItem, RunID: sampleRun, TurnID: sampleTurn, TurnIDs: List[string]{sampleTurn, sampleTurn2}, Content: "The build is done.",
			SteeringEmitted: true, Outcome: "failed", FinishReason: "stop",
			Usage:       &Usage{InputTokens: new(uint64(900)), OutputTokens: new(uint64(0)), Source: "reported"},
			Attachments: List[AttachmentRef]{{ID: "a1", Name: "plan.pdf", MediaType: "application/pdf", Size: 1024}},
			Error:       &Failure{Code: CodeProviderOverloaded, Message: "the provider is overloaded", Retryable: true},
		},
		&ToolStatus{Item: sampleItem, RunID: sampleRun, Actions: List[Action]{
			{ID: "call_1", Kind: "tool", Title: "echo", Phase: "completed", OK: new(true)},
			{ID: "call_2", ParentID: "call_1", Kind: "tool", Title: "deploy", Phase: "completed", OK: new(false), Error: &ActionError{
				ErrorType: "timeout", Tool: "deploy", TimeoutMS: 5000, ExitCode: new(int32(1)), Exception: "exec.ExitError", Status: "killed",
				Reason: "timeout", Message: "it took too long", ValidationErrors: List[string]{"env: missing"},
			}},
		}, Final: true},
		&WatchdogPrompt{Item: sampleItem, RunID: sampleRun, Text: "the run shows no life: go on?"},
		&Notice{Item: sampleItem, RunID: sampleRun, Text: "trying again"},
		&SessionEvent{SessionID: "s1", Sequence: 3, RecordedAt: sampleTime, Event: json.RawMessage(`{"type":"deploy.approved","by":"ada","score":1.50}`)},
		&Gap{SessionID: "s1", FromSeq: 1, ToSeq: 40},
		&Resync{SessionID: "s1", UpToSeq: 40, State: sampleState(), RunID: sampleRun, Attempt: 1, Text: "The build"},
	}
}

// bodySamples has one of each HTTP body, by the name of its golden file.
func bodySamples() map[string]Body {
	return map[string]Body{
		"error": (&Error{Code: CodeUnknownTurn, Message: "no such turn"}).Body(),
		"sessions": &SessionsPage{
			Sessions: List[SessionSummary]{
				{SessionID: "s1", State: SessionBusy, SessionRow: &SessionRow{
					EventSequence: 3, Epoch: 2, Running: true, Waiting: 2, UpdatedAt: sampleTime,
				}},
				{SessionID: "s2", State: SessionQuarantined},
			},
			Next: "s2",
		},
		"events": &EventsPage{Events: List[StoredEvent]{{
			SessionID: "s1", Sequence: 1, RecordedAt: sampleTime, Event: json.RawMessage(`{"type":"stage_started","stage_id":"build"}`),
		}}, Next: 1},
		"stored_event": &StoredEvent{SessionID: "s1", Sequence: 1, RecordedAt: sampleTime, Event: json.RawMessage(`{"type":"workflow_completed"}`)},
		"stages": &StagesPage{Stages: List[Stage]{{
			StageID: "build", Summary: "built in 3 s", Outcome: "SUCCESS", Timestamp: sampleTime,
		}}, Next: 1},
		"context": &ContextPack{
			Entries: List[ContextEntry]{{Layer: "L0", Role: "system", Content: "You are <the router>.", Tokens: 8, Kept: true, Reason: "never dropped"}},
			Budget:  4096, Tokens: 8, Tokenizer: "o200k_base",
		},
	}
}
