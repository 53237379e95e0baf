package inference

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is what the rest of the product may know of a failed call.
type Kind string

// Kinds.
const (
	KindCanceled        Kind = "canceled"
	KindTimeout         Kind = "timeout"
	KindRateLimited     Kind = "rate_limited"
	KindOverloaded      Kind = "overloaded"
	KindAuth            Kind = "auth"
	KindQuota           Kind = "quota"
	KindBadRequest      Kind = "bad_request"
	KindContextOverflow Kind = "context_overflow"
	KindContentFiltered Kind = "content_filtered"
	KindTruncated       Kind = "truncated"
	KindUnavailable     Kind = "unavailable"
	KindConfig          Kind = "config"
	// KindProvider: the provider reported an error that fits no other kind.
	KindProvider Kind = "provider"
)

// Valid says whether k is one of the kinds.
func (k Kind) Valid() bool {
	switch k {
	case KindCanceled, KindTimeout, KindRateLimited, KindOverloaded, KindAuth, KindQuota, KindBadRequest, KindContextOverflow,
		KindContentFiltered, KindTruncated, KindUnavailable, KindConfig, KindProvider:
		return true
	}
	return false
}

// Retryable says whether the same call may succeed later.
func (k Kind) Retryable() bool {
	switch k {
	case KindTimeout, KindRateLimited, KindOverloaded, KindTruncated, KindUnavailable, KindProvider:
		return true
	case KindCanceled, KindAuth, KindQuota, KindBadRequest, KindContextOverflow, KindContentFiltered, KindConfig:
		return false
	}
	return false
}

// Limit says which limit a KindTimeout went beyond.
type Limit string

// Limits of our own; "" is the provider's or a proxy's.
const (
	LimitConnect    Limit = "connect"
	LimitFirstToken Limit = "first_token"
	LimitToken      Limit = "token"
	LimitWhole      Limit = "whole"
)

// Valid says whether l is one of our own limits.
func (l Limit) Valid() bool {
	switch l {
	case LimitConnect, LimitFirstToken, LimitToken, LimitWhole:
		return true
	}
	return false
}

// ErrUnknownResume is wrapped by the Error of a call whose resume token the provider does not know, or no more. Nothing was
// done; the same call without the token may succeed.
var ErrUnknownResume = errors.New("the provider does not know the conversation")

// Error is a failed call. Message is the provider's own text, bounded and free of secrets.
type Error struct {
	Kind     Kind
	Provider string
	Message  string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Limit that was exceeded, of a KindTimeout by a limit of our own.
	Limit Limit
	// RetryAfter is what the provider asked for, 0 if it did not.
	RetryAfter time.Duration
	// RequestID is the provider's, for its support.
	RequestID string
	Err       error
}

// Error implements error.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Provider != "" {
		text = e.Provider + ": " + text
	}
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable says whether the same call may succeed later.
func (e *Error) Retryable() bool { return e.Kind.Retryable() }

// KindOf gives the kind of err. Of what is no *Error, an ended context is KindCanceled or KindTimeout, all else KindProvider.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	}
	return KindProvider
}

// Canceled is the error of a call whose context has ended; Err is the cause, by which callers tell an abort from an
// interrupt or a deadline.
func Canceled(ctx context.Context, provider string) *Error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = context.Canceled
	}
	return &Error{Kind: KindCanceled, Provider: provider, Message: CleanMessage(cause.Error()), Err: cause}
}
