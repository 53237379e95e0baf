package messages

// ChatMode says whether a steering note for the workflow is recorded.
type ChatMode string

// Chat modes.
const (
	ChatModeChat     ChatMode = "CHAT"
	ChatModeSteering ChatMode = "STEERING"
)

// Valid says whether m is one of the modes.
func (m ChatMode) Valid() bool { return m == ChatModeChat || m == ChatModeSteering }

// QueueMode says what a turn does when the session is busy.
type QueueMode string

// Queue modes.
const (
	QueueCollect      QueueMode = "collect"
	QueueFollowup     QueueMode = "followup"
	QueueSteer        QueueMode = "steer"
	QueueSteerBacklog QueueMode = "steer_backlog"
	QueueInterrupt    QueueMode = "interrupt"
)

// Valid says whether m is one of the modes.
func (m QueueMode) Valid() bool {
	switch m {
	case QueueCollect, QueueFollowup, QueueSteer, QueueSteerBacklog, QueueInterrupt:
		return true
	}
	return false
}

// Outcome is how a run ended.
type Outcome string

// Outcomes.
const (
	OutcomeCompleted   Outcome = "completed"
	OutcomeFailed      Outcome = "failed"
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeIncomplete  Outcome = "incomplete"
)

// Valid says whether o is one of them.
func (o Outcome) Valid() bool {
	switch o {
	case OutcomeCompleted, OutcomeFailed, OutcomeCancelled, OutcomeInterrupted, OutcomeIncomplete:
		return true
	}
	return false
}

// TurnState is where a turn is.
type TurnState string

// Turn states; those after TurnRunning are ends.
const (
	TurnQueued      TurnState = "queued"
	TurnOffered     TurnState = "offered"
	TurnRunning     TurnState = "running"
	TurnAnswered    TurnState = "answered"
	TurnFailed      TurnState = "failed"
	TurnCancelled   TurnState = "cancelled"
	TurnInterrupted TurnState = "interrupted"
	TurnIncomplete  TurnState = "incomplete"
	TurnMerged      TurnState = "merged"
	TurnSteered     TurnState = "steered"
	TurnWithdrawn   TurnState = "withdrawn"
	TurnExpired     TurnState = "expired"
)

// Valid says whether s is one of them.
func (s TurnState) Valid() bool {
	switch s {
	case TurnQueued, TurnOffered, TurnRunning, TurnAnswered, TurnFailed, TurnCancelled, TurnInterrupted, TurnIncomplete,
		TurnMerged, TurnSteered, TurnWithdrawn, TurnExpired:
		return true
	}
	return false
}

// Ended says whether s is an end.
func (s TurnState) Ended() bool {
	return s != "" && s != TurnQueued && s != TurnOffered && s != TurnRunning
}

// TurnState gives the end of the turns of a run with this outcome.
func (o Outcome) TurnState() TurnState {
	if o == OutcomeCompleted {
		return TurnAnswered
	}
	return TurnState(o)
}

// Phase is where a run is; see docs/state-machine.md for the legal order.
type Phase string

// Phases.
const (
	PhaseAccepted       Phase = "accepted"
	PhaseQueued         Phase = "queued_in_session"
	PhaseWaitingForSlot Phase = "waiting_for_slot"
	PhaseDispatched     Phase = "dispatched"
	PhaseStartingEngine Phase = "starting_engine"
	PhaseStreaming      Phase = "streaming"
	PhaseFinalizing     Phase = "finalizing"
	PhaseCompleted      Phase = "completed"
	PhaseFailed         Phase = "failed"
	PhaseAborted        Phase = "aborted"
)

// Valid says whether p is one of them.
func (p Phase) Valid() bool {
	switch p {
	case PhaseAccepted, PhaseQueued, PhaseWaitingForSlot, PhaseDispatched, PhaseStartingEngine, PhaseStreaming, PhaseFinalizing, PhaseCompleted, PhaseFailed, PhaseAborted:
		return true
	}
	return false
}

// Disposition says what became of a submitted turn.
type Disposition string

// Dispositions.
const (
	DispositionStarted   Disposition = "started"
	DispositionQueued    Disposition = "queued"
	DispositionMerged    Disposition = "merged"
	DispositionSteering  Disposition = "steering"
	DispositionDuplicate Disposition = "duplicate"
)

// Valid says whether d is one of them.
func (d Disposition) Valid() bool {
	switch d {
	case DispositionStarted, DispositionQueued, DispositionMerged, DispositionSteering, DispositionDuplicate:
		return true
	}
	return false
}

// Role is the speaker of a history entry.
type Role string

// Roles.
const (
	RoleUser   Role = "USER"
	RoleRouter Role = "ROUTER"
)

// Valid says whether r is one of them.
func (r Role) Valid() bool {
	switch r {
	case RoleUser, RoleRouter:
		return true
	}
	return false
}

// UsageSource says where token counts come from.
type UsageSource string

// Usage sources.
const (
	UsageReported  UsageSource = "reported"
	UsageEstimated UsageSource = "estimated"
	UsageUnknown   UsageSource = "unknown"
)

// Valid says whether s is one of them.
func (s UsageSource) Valid() bool {
	switch s {
	case UsageReported, UsageEstimated, UsageUnknown:
		return true
	}
	return false
}

// AbortScope is what an Abort ends.
type AbortScope string

// Abort scopes.
const (
	AbortRun     AbortScope = "run"
	AbortTurn    AbortScope = "turn"
	AbortSession AbortScope = "session"
)

// Valid says whether s is one of them.
func (s AbortScope) Valid() bool {
	switch s {
	case AbortRun, AbortTurn, AbortSession:
		return true
	}
	return false
}

// KeepDecision is what a user says of a run that waits for a word.
type KeepDecision string

// Keep decisions.
const (
	KeepContinue KeepDecision = "continue"
	KeepCancel   KeepDecision = "cancel"
)

// Valid says whether d is one of them.
func (d KeepDecision) Valid() bool { return d == KeepContinue || d == KeepCancel }
