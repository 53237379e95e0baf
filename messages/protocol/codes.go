package protocol

import "net/http"

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
	CodeBadFrame:            http.StatusBadRequest,
	CodeUnknownType:         http.StatusBadRequest,
	CodeInvalidField:        http.StatusBadRequest,
	CodeInvalidSessionID:    http.StatusBadRequest,
	CodeInvalidQueueMode:    http.StatusBadRequest,
	CodeInvalidMode:         http.StatusBadRequest,
	CodeInputTooLarge:       http.StatusRequestEntityTooLarge,
	CodeEmptyInput:          http.StatusBadRequest,
	CodeQueueFull:           http.StatusTooManyRequests,
	CodeIdempotencyConflict: http.StatusConflict,
	CodeUnknownSession:      http.StatusNotFound,
	CodeUnknownTurn:         http.StatusNotFound,
	CodeUnknownRun:          http.StatusNotFound,
	CodeUnsupportedResume:   http.StatusBadRequest,
	CodeSequenceConflict:    http.StatusPreconditionFailed,
	CodeInvalidEvent:        http.StatusBadRequest,
	CodeForbiddenEvent:      http.StatusForbidden,
	CodeUnauthorized:        http.StatusUnauthorized,
	CodeForbidden:           http.StatusForbidden,
	CodeRateLimited:         http.StatusTooManyRequests,
	CodeBudgetExceeded:      http.StatusTooManyRequests,
	CodeSessionDeleted:      http.StatusGone,
	CodeQuarantined:         http.StatusServiceUnavailable,
	CodeDraining:            http.StatusServiceUnavailable,
	CodeUnavailable:         http.StatusServiceUnavailable,
	CodeInternal:            http.StatusInternalServerError,
	CodeProviderAuth:        http.StatusBadGateway,
	CodeProviderQuota:       http.StatusTooManyRequests,
	CodeProviderRateLimited: http.StatusTooManyRequests,
	CodeProviderOverloaded:  http.StatusServiceUnavailable,
	CodeProviderUnavailable: http.StatusServiceUnavailable,
	CodeProviderTimeout:     http.StatusGatewayTimeout,
	CodeProviderBadRequest:  http.StatusBadGateway,
	CodeProviderError:       http.StatusBadGateway,
	CodeContextOverflow:     http.StatusBadRequest,
	CodeContentFiltered:     http.StatusBadRequest,
	CodeTruncated:           http.StatusBadGateway,
	CodeConfigError:         http.StatusInternalServerError,
	CodeIdleTimeout:         http.StatusGatewayTimeout,
	CodeToolRoundsExceeded:  http.StatusInternalServerError,
	CodeSlotTimeout:         http.StatusServiceUnavailable,
	CodeCrashLoop:           http.StatusInternalServerError,
	CodeFenced:              http.StatusServiceUnavailable,
	CodeMoved:               http.StatusServiceUnavailable,
}

// HTTPStatus is the HTTP status of a code; 500 for one that is not in the list.
func HTTPStatus(code string) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
