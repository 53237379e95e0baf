package coalesce

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind says what sort of work an action is.
type Kind string

// The kinds of actions.
const (
	KindTool       Kind = "tool"
	KindCommand    Kind = "command"
	KindFileChange Kind = "file_change"
	KindWebSearch  Kind = "web_search"
	KindBrowser    Kind = "browser"
	KindSubagent   Kind = "subagent"
	KindReasoning  Kind = "reasoning"
	KindApproval   Kind = "approval"
	// KindNote is not shown, unless it carries reasoning: then it is shown as that.
	KindNote Kind = "note"
)

// Valid says whether k is one of the kinds.
func (k Kind) Valid() bool {
	switch k {
	case KindTool, KindCommand, KindFileChange, KindWebSearch, KindBrowser, KindSubagent, KindReasoning, KindApproval, KindNote:
		return true
	default:
		return false
	}
}

// Phase says how far an action is.
type Phase string

// The phases of an action.
const (
	PhaseStarted   Phase = "started"
	PhaseUpdated   Phase = "updated"
	PhaseCompleted Phase = "completed"
)

// Valid says whether p is one of the phases.
func (p Phase) Valid() bool {
	switch p {
	case PhaseStarted, PhaseUpdated, PhaseCompleted:
		return true
	default:
		return false
	}
}

// Action is the newest state of one piece of work. It is what a channel renders from; it has no text made for people but the
// title.
type Action struct {
	// ID names the action within its run.
	ID string
	// Parent is the id of the action that it belongs to, empty for none. It may name one that is not kept.
	Parent string
	// ChildRun is the run that does the work, empty for none.
	ChildRun string
	Kind     Kind
	Title    string
	Phase    Phase
	// OK: it succeeded. False until it is completed.
	OK bool
	// Cut: the run ended before the action did; it is completed, not OK, and nobody knows how far it came.
	Cut bool
	// Reasoning of a note.
	Reasoning string
	// Failure of an action that is completed and not OK, if it told of one.
	Failure *Failure
}

// Failure is what may be shown of a failed action. It holds no command, no arguments and no output: those stay where they are.
type Failure struct {
	ErrorType string
	ToolName  string
	Reason    string
	Errors    []string
	Exception string
	Message   string
	Status    string
	// TimeoutMS and ExitCode are nil if they are not known.
	TimeoutMS *int64
	ExitCode  *int64
}

// Bounds of what is kept of an action, in bytes.
const (
	maxID     = 256
	maxTitle  = 512
	maxField  = 1024
	maxErrors = 16
)

// ReadFailure takes the safe fields out of what an engine tells of a failed tool, and drops everything else. It gives nil if
// there is no error_type. Values of a type that the field has not are dropped as well.
func ReadFailure(result map[string]any) *Failure {
	text := func(key string) string {
		s, _ := result[key].(string)
		return s
	}
	f := &Failure{
		ErrorType: text("error_type"), ToolName: text("tool_name"), Reason: text("reason"), Exception: text("exception"),
		Message: text("message"), Status: text("status"),
		TimeoutMS: whole(result["timeout_ms"]), ExitCode: whole(result["exit_code"]),
	}
	switch list := result["errors"].(type) {
	case []string:
		f.Errors = list
	case []any:
		for _, e := range list {
			if s, ok := e.(string); ok && len(f.Errors) < maxErrors {
				f.Errors = append(f.Errors, s)
			}
		}
	}
	if f.ErrorType == "" {
		return nil
	}
	return f.bound()
}

// whole reads an integer, as it is or as JSON gives it.
func whole(v any) *int64 {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if n = int64(v); v < -1<<53 || v > 1<<53 || float64(n) != v {
			return nil
		}
	default:
		return nil
	}
	return &n
}

// bound gives a copy whose texts are valid and short.
func (f *Failure) bound() *Failure {
	if f == nil {
		return nil
	}
	b := *f
	for _, field := range []*string{&b.ErrorType, &b.ToolName, &b.Reason, &b.Exception, &b.Message, &b.Status} {
		*field = short(*field, maxField)
	}
	b.Errors = slices.Clone(f.Errors[:min(len(f.Errors), maxErrors)])
	for i := range b.Errors {
		b.Errors[i] = short(b.Errors[i], maxField)
	}
	return &b
}

// equal compares by content.
func (f *Failure) equal(g *Failure) bool {
	if f == nil || g == nil {
		return f == g
	}
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return f.ErrorType == g.ErrorType && f.ToolName == g.ToolName && f.Reason == g.Reason && f.Exception == g.Exception &&
		f.Message == g.Message && f.Status == g.Status && slices.Equal(f.Errors, g.Errors) &&
		same(f.TimeoutMS, g.TimeoutMS) && same(f.ExitCode, g.ExitCode)
}

// equal compares by content.
func (a Action) equal(b Action) bool {
	same := a.Failure.equal(b.Failure)
	a.Failure, b.Failure = nil, nil
	return same && a == b
}

// clean gives the action as it is kept, and says whether it is shown at all.
func (a Action) clean() (Action, bool) {
	if a.Kind == KindNote && strings.TrimSpace(a.Reasoning) != "" {
		a.Kind, a.Title = KindReasoning, a.Reasoning
	}
	a.Reasoning, a.Cut = "", false
	if a.Kind == KindNote || !a.Kind.Valid() || !a.Phase.Valid() || a.ID == "" || len(a.ID) > maxID || !utf8.ValidString(a.ID) {
		return a, false
	}
	if a.Parent == a.ID || len(a.Parent) > maxID || !utf8.ValidString(a.Parent) {
		a.Parent = ""
	}
	if len(a.ChildRun) > maxID || !utf8.ValidString(a.ChildRun) {
		a.ChildRun = ""
	}
	a.Title = short(strings.TrimSpace(a.Title), maxTitle)
	a.OK = a.OK && a.Phase == PhaseCompleted
	if a.Failure = a.Failure.bound(); a.OK || a.Phase != PhaseCompleted {
		a.Failure = nil
	}
	return a, true
}

// short gives valid UTF-8 of at most limit bytes, from the beginning.
func short(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
