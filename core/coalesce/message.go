package coalesce

import (
	"math"

	"github.com/correx/correx-actors/messages"
)

// ErrorCut is the error type of an action that was cut: the run ended, and nobody knows how far it came.
const ErrorCut = "cut"

// Message is the status as it is published.
func (s Status) Message(run messages.RunID) *messages.ToolStatus {
	out := &messages.ToolStatus{RunId: run, Final: s.Final}
	for _, a := range s.Actions {
		out.Actions = append(out.Actions, a.Message())
	}
	return out
}

// Message is the action as it is published.
func (a Action) Message() *messages.ToolAction {
	out := &messages.ToolAction{
		Id: a.ID, ParentId: a.Parent, Kind: string(a.Kind), Title: a.Title, Phase: string(a.Phase), Error: a.Failure.message(),
	}
	if a.Phase == PhaseCompleted {
		out.Ok = &a.OK
	}
	if a.Cut {
		out.Error = &messages.ToolError{ErrorType: ErrorCut}
	}
	return out
}

// ActionOf reads a published action, such as an engine reports it.
func ActionOf(a *messages.ToolAction) Action {
	return Action{
		ID: a.GetId(), Parent: a.GetParentId(), Kind: Kind(a.GetKind()), Title: a.GetTitle(), Phase: Phase(a.GetPhase()),
		OK: a.GetOk(), Failure: failureOf(a.GetError()),
	}
}

func (f *Failure) message() *messages.ToolError {
	if f == nil {
		return nil
	}
	out := &messages.ToolError{
		ErrorType: f.ErrorType, Tool: f.ToolName, Exception: f.Exception, Status: f.Status, Reason: f.Reason, Message: f.Message,
		ValidationErrors: f.Errors,
	}
	if f.TimeoutMS != nil {
		out.TimeoutMs = uint64(max(*f.TimeoutMS, 0)) //nolint:gosec // not negative
	}
	if f.ExitCode != nil && *f.ExitCode >= math.MinInt32 && *f.ExitCode <= math.MaxInt32 {
		code := int32(*f.ExitCode)
		out.ExitCode = &code
	}
	return out
}

func failureOf(e *messages.ToolError) *Failure {
	if e == nil {
		return nil
	}
	f := &Failure{
		ErrorType: e.GetErrorType(), ToolName: e.GetTool(), Reason: e.GetReason(), Errors: e.GetValidationErrors(),
		Exception: e.GetException(), Message: e.GetMessage(), Status: e.GetStatus(),
	}
	if ms := e.GetTimeoutMs(); ms > 0 && ms <= math.MaxInt64 {
		timeout := int64(ms)
		f.TimeoutMS = &timeout
	}
	if e.ExitCode != nil {
		code := int64(e.GetExitCode())
		f.ExitCode = &code
	}
	return f
}
