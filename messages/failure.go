package messages

// Code is the kind of a Failure: the closed list of docs/protocol.md.
type Code string

// Codes of refused commands.
const (
	CodeBadFrame            Code = "bad_frame"
	CodeUnknownType         Code = "unknown_type"
	CodeInvalidField        Code = "invalid_field"
	CodeInvalidSessionID    Code = "invalid_session_id"
	CodeInvalidQueueMode    Code = "invalid_queue_mode"
	CodeInvalidMode         Code = "invalid_mode"
	CodeInputTooLarge       Code = "input_too_large"
	CodeEmptyInput          Code = "empty_input"
	CodeQueueFull           Code = "queue_full"
	CodeIdempotencyConflict Code = "idempotency_conflict"
	CodeUnknownSession      Code = "unknown_session"
	CodeUnknownTurn         Code = "unknown_turn"
	CodeUnknownRun          Code = "unknown_run"
	CodeUnsupportedResume   Code = "unsupported_resume_engine"
	CodeSequenceConflict    Code = "sequence_conflict"
	CodeInvalidEvent        Code = "invalid_event"
	CodeForbiddenEvent      Code = "forbidden_event"
	CodeUnauthorized        Code = "unauthorized"
	CodeForbidden           Code = "forbidden"
	CodeRateLimited         Code = "rate_limited"
	CodeBudgetExceeded      Code = "budget_exceeded"
	CodeSessionDeleted      Code = "session_deleted"
	CodeQuarantined         Code = "quarantined"
	CodeDraining            Code = "draining"
	CodeUnavailable         Code = "unavailable"
	CodeInternal            Code = "internal"
)

// Codes of failed runs.
const (
	CodeProviderAuth        Code = "provider_auth"
	CodeProviderQuota       Code = "provider_quota"
	CodeProviderRateLimited Code = "provider_rate_limited"
	CodeProviderOverloaded  Code = "provider_overloaded"
	CodeProviderUnavailable Code = "provider_unavailable"
	CodeProviderTimeout     Code = "provider_timeout"
	CodeProviderBadRequest  Code = "provider_bad_request"
	CodeProviderError       Code = "provider_error"
	CodeContextOverflow     Code = "context_overflow"
	CodeContentFiltered     Code = "content_filtered"
	CodeTruncated           Code = "truncated"
	CodeConfigError         Code = "config_error"
	CodeIdleTimeout         Code = "idle_timeout"
	CodeToolRoundsExceeded  Code = "tool_rounds_exceeded"
	CodeSlotTimeout         Code = "slot_timeout"
	CodeCrashLoop           Code = "crash_loop"
	CodeFenced              Code = "fenced"
)

// CodeMoved is answered between nodes only: another one owns the session.
const CodeMoved Code = "moved"

// Fail makes a Failure that trying again will not cure.
func Fail(code Code, message string) *Failure {
	return &Failure{Code: string(code), Message: message}
}

// FailRetryable makes a Failure whose sender may try again.
func FailRetryable(code Code, message string) *Failure {
	return &Failure{Code: string(code), Message: message, Retryable: true}
}

// Error makes *Failure an error, so that a client in Go gets it as one; use errors.As.
func (f *Failure) Error() string { return f.GetCode() + ": " + f.GetMessage() }
