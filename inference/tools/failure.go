package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

// ErrorType is the kind of a failure.
type ErrorType string

// Types of failures.
const (
	// ErrorFailed: the tool said so.
	ErrorFailed ErrorType = "failed"
	// ErrorInvalidArguments: the arguments do not satisfy the schema; the tool was not called.
	ErrorInvalidArguments ErrorType = "invalid_arguments"
	// ErrorUnknownTool: nothing of that name is offered.
	ErrorUnknownTool ErrorType = "unknown_tool"
	// ErrorUnavailable: what carries the tool out cannot be reached; the tool was not called, or nobody knows.
	ErrorUnavailable ErrorType = "unavailable"
	ErrorTimeout     ErrorType = "timeout"
	// ErrorCancelled: the call was ended while it ran. What it did is unknown.
	ErrorCancelled ErrorType = "cancelled"
	// ErrorNotRun: the call was never started.
	ErrorNotRun ErrorType = "not_run"
	ErrorPanic  ErrorType = "panic"
)

// Valid says whether t is one of the types.
func (t ErrorType) Valid() bool {
	switch t {
	case ErrorFailed, ErrorInvalidArguments, ErrorUnknownTool, ErrorUnavailable, ErrorTimeout, ErrorCancelled, ErrorNotRun, ErrorPanic:
		return true
	}
	return false
}

// Failure is what may be told of a call that gave no result. Every field is safe to show: texts are cleaned of what looks like a
// secret or a path of the machine, and bounded.
type Failure struct { //nolint:errname // it is data first: the word of the glossary
	Type ErrorType
	Tool string
	// Timeout that was exceeded, of an ErrorTimeout.
	Timeout time.Duration
	// ExitCode of a command; nil = there was none.
	ExitCode *int
	// Exception is the Go type of the value of a panic, or a name that a remote tool gave.
	Exception string
	// Status of an HTTP answer; 0 = there was none.
	Status int
	// Reason is why a call was not run, or was cancelled.
	Reason  string
	Message string
	// ValidationErrors tell what is wrong with each argument, without its value.
	ValidationErrors []string
}

// Error implements error: it is what the model is told.
func (f *Failure) Error() string {
	switch f.Type {
	case ErrorNotRun:
		return "not run: " + f.Reason
	case ErrorCancelled:
		return "cancelled while it ran, its effects are unknown: " + f.Reason
	case ErrorTimeout:
		if f.Timeout > 0 {
			return fmt.Sprintf("timed out after %s, its effects are unknown", f.Timeout)
		}
		return "timed out, its effects are unknown"
	case ErrorUnknownTool:
		return "there is no tool of that name"
	case ErrorInvalidArguments:
		return "not run, the arguments are invalid: " + strings.Join(f.ValidationErrors, "; ")
	case ErrorPanic:
		return "failed: the tool broke down"
	case ErrorUnavailable:
		return "unavailable: " + f.Message
	case ErrorFailed:
	}
	if f.Message == "" {
		return "failed"
	}
	return "failed: " + f.Message
}

// FailureOf tells the safe part of err, the error of a call of tool.
func FailureOf(tool string, err error) *Failure {
	var told *Failure
	if errors.As(err, &told) {
		safe := *told
		safe.Tool = tool
		if !safe.Type.Valid() {
			safe.Type = ErrorFailed
		}
		safe.Reason, safe.Message, safe.Exception = clean(safe.Reason), clean(safe.Message), clean(safe.Exception)
		safe.ValidationErrors = bounded(safe.ValidationErrors)
		return &safe
	}
	failure := &Failure{Type: ErrorFailed, Tool: tool, Message: clean(err.Error())}
	var exited interface{ ExitCode() int }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		failure.Type = ErrorTimeout
	case errors.Is(err, context.Canceled):
		failure.Type, failure.Reason, failure.Message = ErrorCancelled, "it gave up", ""
	case errors.As(err, &exited):
		code := exited.ExitCode()
		failure.ExitCode = &code
	}
	return failure
}

// machinePaths are absolute paths of at least two elements, which tell how a machine is set up. What follows a scheme is a URL
// and stays.
var machinePaths = []*regexp.Regexp{
	regexp.MustCompile(`(^|[\s"'` + "`" + `(\[{=,;:])(?:file:/)?~?/[^\s/"'` + "`" + `)\]}:;,]+(?:/[^\s/"'` + "`" + `)\]}:;,]*)+`),
	regexp.MustCompile(`(^|[\s"'` + "`" + `(\[{=,;:])[A-Za-z]:\\[^\s"'` + "`" + `)\]};,]+`),
}

// clean makes a text of a tool fit to be shown.
func clean(text string) string {
	text = inference.Bound(text, 8*inference.MessageLimit)
	for _, shape := range machinePaths {
		text = shape.ReplaceAllString(text, "${1}[path]")
	}
	return inference.CleanMessage(text)
}

const (
	// maxFaults and maxFaultBytes bound what is told of the arguments of one call.
	maxFaults     = 8
	maxFaultBytes = 200
)

func bounded(faults []string) []string {
	var kept []string
	for i, fault := range faults {
		if i == maxFaults {
			return append(kept, fmt.Sprintf("and %d more", len(faults)-i))
		}
		kept = append(kept, inference.Bound(clean(fault), maxFaultBytes))
	}
	return kept
}

func invalid(tool string, faults []string) *Failure {
	return &Failure{Type: ErrorInvalidArguments, Tool: tool, ValidationErrors: bounded(faults)}
}
