package inference

import (
	"context"
	"errors"

	"github.com/correx/correx-actors/messages"
)

// WireCode gives the code under which clients are told of err. It is empty for nil and for a canceled call: that is an
// outcome of its run, not a failure of it.
func WireCode(err error) messages.Code {
	if err == nil {
		return ""
	}
	switch KindOf(err) {
	case KindCanceled:
		return ""
	case KindTimeout:
		return messages.CodeProviderTimeout
	case KindRateLimited:
		return messages.CodeProviderRateLimited
	case KindOverloaded:
		return messages.CodeProviderOverloaded
	case KindAuth:
		return messages.CodeProviderAuth
	case KindQuota:
		return messages.CodeProviderQuota
	case KindBadRequest:
		return messages.CodeProviderBadRequest
	case KindContextOverflow:
		return messages.CodeContextOverflow
	case KindContentFiltered:
		return messages.CodeContentFiltered
	case KindTruncated:
		return messages.CodeTruncated
	case KindUnavailable:
		return messages.CodeProviderUnavailable
	case KindConfig:
		return messages.CodeConfigError
	case KindProvider:
		return messages.CodeProviderError
	}
	return messages.CodeProviderError
}

// FailureOf gives err as the data that clients get; nil where WireCode is empty. Only the text of an *Error is passed on,
// since its driver has cleaned it: any other error may quote a URL, a path or a key.
func FailureOf(err error) *messages.Failure {
	code := WireCode(err)
	if code == "" {
		return nil
	}
	failure := &messages.Failure{Code: string(code), Message: "the call to the model failed"}
	var e *Error
	switch {
	case errors.As(err, &e):
		failure.Message, failure.Retryable = e.Error(), e.Retryable()
	case errors.Is(err, context.DeadlineExceeded):
		failure.Message, failure.Retryable = "the call to the model took too long", true
	}
	return failure
}
