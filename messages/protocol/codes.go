package protocol

// Codes of refusals.
const (
	CodeBadFrame            = "bad_frame"
	CodeUnknownType         = "unknown_type"
	CodeInvalidField        = "invalid_field"
	CodeInvalidSessionID    = "invalid_session_id"
	CodeInvalidQueueMode    = "invalid_queue_mode"
	CodeInvalidMode         = "invalid_mode"
	CodeInputTooLarge       = "input_too_large"
	CodeEmptyInput          = "empty_input"
	CodeQueueFull           = "queue_full"
	CodeIdempotencyConflict = "idempotency_conflict"
	CodeUnknownSession      = "unknown_session"
	CodeUnknownTurn         = "unknown_turn"
	CodeUnknownRun          = "unknown_run"
	CodeUnsupportedResume   = "unsupported_resume_engine"
	CodeSequenceConflict    = "sequence_conflict"
	CodeInvalidEvent        = "invalid_event"
	CodeForbiddenEvent      = "forbidden_event"
	CodeUnauthorized        = "unauthorized"
	CodeForbidden           = "forbidden"
	CodeRateLimited         = "rate_limited"
	CodeBudgetExceeded      = "budget_exceeded"
	CodeSessionDeleted      = "session_deleted"
	CodeQuarantined         = "quarantined"
	CodeDraining            = "draining"
	CodeUnavailable         = "unavailable"
	CodeInternal            = "internal"
)

// Codes of failed runs: the error of a RouterResponse.
const (
	CodeProviderAuth        = "provider_auth"
	CodeProviderQuota       = "provider_quota"
	CodeProviderRateLimited = "provider_rate_limited"
	CodeProviderOverloaded  = "provider_overloaded"
	CodeProviderUnavailable = "provider_unavailable"
	CodeProviderTimeout     = "provider_timeout"
	CodeProviderBadRequest  = "provider_bad_request"
	CodeProviderError       = "provider_error"
	CodeContextOverflow     = "context_overflow"
	CodeContentFiltered     = "content_filtered"
	CodeTruncated           = "truncated"
	CodeConfigError         = "config_error"
	CodeIdleTimeout         = "idle_timeout"
	CodeToolRoundsExceeded  = "tool_rounds_exceeded"
	CodeSlotTimeout         = "slot_timeout"
	CodeCrashLoop           = "crash_loop"
	CodeFenced              = "fenced"
)

// CodeMoved is answered between nodes only.
const CodeMoved = "moved"

// statuses gives each code its HTTP status. Those of failed runs are met where an answer is nothing but the run's result,
// as in the OpenAI-compatible door: a provider's refusal of us is a bad gateway, not the client's fault.
var statuses = map[string]int{
	CodeBadFrame:            400,
	CodeUnknownType:         400,
	CodeInvalidField:        400,
	CodeInvalidSessionID:    400,
	CodeInvalidQueueMode:    400,
	CodeInvalidMode:         400,
	CodeInputTooLarge:       413,
	CodeEmptyInput:          400,
	CodeQueueFull:           429,
	CodeIdempotencyConflict: 409,
	CodeUnknownSession:      404,
	CodeUnknownTurn:         404,
	CodeUnknownRun:          404,
	CodeUnsupportedResume:   400,
	CodeSequenceConflict:    412,
	CodeInvalidEvent:        400,
	CodeForbiddenEvent:      403,
	CodeUnauthorized:        401,
	CodeForbidden:           403,
	CodeRateLimited:         429,
	CodeBudgetExceeded:      429,
	CodeSessionDeleted:      410,
	CodeQuarantined:         503,
	CodeDraining:            503,
	CodeUnavailable:         503,
	CodeInternal:            500,
	CodeProviderAuth:        502,
	CodeProviderQuota:       429,
	CodeProviderRateLimited: 429,
	CodeProviderOverloaded:  503,
	CodeProviderUnavailable: 503,
	CodeProviderTimeout:     504,
	CodeProviderBadRequest:  502,
	CodeProviderError:       502,
	CodeContextOverflow:     400,
	CodeContentFiltered:     400,
	CodeTruncated:           502,
	CodeConfigError:         500,
	CodeIdleTimeout:         504,
	CodeToolRoundsExceeded:  500,
	CodeSlotTimeout:         503,
	CodeCrashLoop:           500,
	CodeFenced:              503,
	CodeMoved:               503,
}

// HTTPStatus is the HTTP status of a code; 500 for one that is not in the list.
func HTTPStatus(code string) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return statuses[CodeInternal]
}
