package messages

import "google.golang.org/protobuf/proto"

// Event is a domain event: a recorded fact, never refused on replay.
//
//sumtype:decl
type Event interface {
	isEvent()
	// EventType is the name of the type on the wire and in the journal.
	EventType() string
}

// RouterEvent is what the router itself may write to the event log: the one type that implements it is the whole of I2's
// "writes only SteeringNoteAdded".
//
//sumtype:decl
type RouterEvent interface {
	Event
	isRouterEvent()
}

// LedgerRecord is a record of the turn ledger.
//
//sumtype:decl
type LedgerRecord interface {
	proto.Message
	isLedgerRecord()
}

// Command is a request to a session's actor; it may be refused with a Failure.
//
//sumtype:decl
type Command interface {
	proto.Message
	isCommand()
}

// Reply answers a Command.
//
//sumtype:decl
type Reply interface {
	proto.Message
	isReply()
}

// Intent is the body of a numbered DeliveryIntent.
//
//sumtype:decl
type Intent interface {
	proto.Message
	isIntent()
}

// Notification is what a subscriber gets beside numbered intents.
//
//sumtype:decl
type Notification interface {
	proto.Message
	isNotification()
}

func (*WorkflowStarted) isEvent()      {}
func (*WorkflowCompleted) isEvent()    {}
func (*WorkflowFailed) isEvent()       {}
func (*OrchestrationPaused) isEvent()  {}
func (*OrchestrationResumed) isEvent() {}
func (*StageStarted) isEvent()         {}
func (*StageCompleted) isEvent()       {}
func (*StageFailed) isEvent()          {}
func (*StageCancelled) isEvent()       {}
func (*SteeringNoteAdded) isEvent()    {}
func (*ForeignEvent) isEvent()         {}
func (*UnknownEvent) isEvent()         {}

func (*SteeringNoteAdded) isRouterEvent() {}

func (*SessionConfigured) isLedgerRecord() {}
func (*TurnAdmitted) isLedgerRecord()      {}
func (*TurnReturned) isLedgerRecord()      {}
func (*TurnInjected) isLedgerRecord()      {}
func (*SlotAwaited) isLedgerRecord()       {}
func (*RunStarted) isLedgerRecord()        {}
func (*ToolsLaunched) isLedgerRecord()     {}
func (*RunSuspended) isLedgerRecord()      {}
func (*RunEnded) isLedgerRecord()          {}
func (*TurnEnded) isLedgerRecord()         {}
func (*AbortRequested) isLedgerRecord()    {}
func (*OutputReserved) isLedgerRecord()    {}
func (*SessionAlive) isLedgerRecord()      {}
func (*FinalsAcked) isLedgerRecord()       {}
func (*LedgerCheckpoint) isLedgerRecord()  {}

func (*StartSession) isCommand() {}
func (*SubmitTurn) isCommand()   {}
func (*RecordEvents) isCommand() {}
func (*Subscribe) isCommand()    {}
func (*Unsubscribe) isCommand()  {}
func (*GetSession) isCommand()   {}
func (*GetTurn) isCommand()      {}
func (*Abort) isCommand()        {}
func (*Explain) isCommand()      {}
func (*Withdraw) isCommand()     {}
func (*AckFinals) isCommand()    {}
func (*GetContext) isCommand()   {}
func (*KeepRunAlive) isCommand() {}

func (*SessionStarted) isReply()   {}
func (*TurnAccepted) isReply()     {}
func (*EventsRecorded) isReply()   {}
func (*Subscribed) isReply()       {}
func (*Unsubscribed) isReply()     {}
func (*SessionState) isReply()     {}
func (*TurnFound) isReply()        {}
func (*Aborted) isReply()          {}
func (*Explanation) isReply()      {}
func (*Withdrawn) isReply()        {}
func (*ContextExplained) isReply() {}
func (*Done) isReply()             {}
func (*Failure) isReply()          {}

func (*RunPhaseChanged) isIntent()  {}
func (*StreamDelta) isIntent()      {}
func (*StreamSnapshot) isIntent()   {}
func (*StreamFinalize) isIntent()   {}
func (*TurnStateChanged) isIntent() {}
func (*RouterResponse) isIntent()   {}
func (*ToolStatus) isIntent()       {}
func (*WatchdogPrompt) isIntent()   {}
func (*Notice) isIntent()           {}

func (*Gap) isNotification()            {}
func (*Resync) isNotification()         {}
func (*EventsAdvanced) isNotification() {}

// EventType implements Event.
func (*WorkflowStarted) EventType() string { return "workflow_started" }

// EventType implements Event.
func (*WorkflowCompleted) EventType() string { return "workflow_completed" }

// EventType implements Event.
func (*WorkflowFailed) EventType() string { return "workflow_failed" }

// EventType implements Event.
func (*OrchestrationPaused) EventType() string { return "orchestration_paused" }

// EventType implements Event.
func (*OrchestrationResumed) EventType() string { return "orchestration_resumed" }

// EventType implements Event.
func (*StageStarted) EventType() string { return "stage_started" }

// EventType implements Event.
func (*StageCompleted) EventType() string { return "stage_completed" }

// EventType implements Event.
func (*StageFailed) EventType() string { return "stage_failed" }

// EventType implements Event.
func (*StageCancelled) EventType() string { return "stage_cancelled" }

// EventType implements Event.
func (*SteeringNoteAdded) EventType() string { return "steering_note_added" }

// EventType implements Event: the type that the host gave.
func (e *ForeignEvent) EventType() string { return e.GetType() }

// EventType implements Event: the type that the journal holds.
func (e *UnknownEvent) EventType() string { return e.Type }

// UnknownEvent is an event whose type or version this build does not know (a newer node wrote it). Its payload is kept and
// given back byte for byte.
type UnknownEvent struct {
	Type    string
	Version uint32
	Payload []byte
}
