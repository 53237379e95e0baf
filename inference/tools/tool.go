// Package tools is the port to what a model may call: what a tool is, which ones are offered, and how the calls that one
// answer of a model asks for are carried out. Where tools come from is not its business: a host registers Go functions (Func),
// a Source such as the MCP client offers those of a server.
//
// An answer of a tool belongs to the run that asked for it, and to nothing else: no type of this package reaches a context
// pack, the history or the router's state (I3).
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// NameRule is what the name of a tool must match; it is what chat APIs accept.
const NameRule = `^[a-zA-Z0-9_-]{1,64}$`

var nameRule = regexp.MustCompile(NameRule)

// Spec is what is told of a tool, to models and to who carries it out.
type Spec struct {
	// Name matches NameRule.
	Name        string
	Description string
	// Input is the JSON schema of the arguments, of the type object. Empty: no arguments.
	Input json.RawMessage
	// Sequential tools do not bear company: a batch with one of them is carried out call by call, in order.
	Sequential bool
	// Timeout of a call; 0 = that of the Executor.
	Timeout time.Duration
}

// Result is what a call gives. Text may be of any length and any bytes: who carries it out bounds it.
type Result struct{ Text string }

// Progress is what a tool says while it runs. Total 0 = it does not know.
type Progress struct {
	Message     string
	Done, Total float64
}

// CallFunc carries out one call. It must end when ctx does, and its error should tell what a model and its users may know: it
// is shown to both, cleaned and bounded. To say more of a failure it returns a *Failure; a Text beside an error is what the model
// is told in its place, and nobody else. The arguments satisfy the schema. Progress may be reported from any goroutine, and is not
// waited for.
type CallFunc func(ctx context.Context, arguments json.RawMessage, report func(Progress)) (Result, error)

// Tool is one thing that a model may call. It is immutable and safe for concurrent use.
type Tool struct {
	spec   Spec
	schema *schema
	call   CallFunc
}

// noArguments is the schema of a tool that takes none, or any.
const noArguments = `{"type":"object"}`

// New makes a tool. It fails if the name breaks NameRule, or the schema is none that arguments can be checked against.
func New(spec Spec, call CallFunc) (*Tool, error) {
	t, err := NewUnchecked(spec, call)
	if err != nil {
		return nil, err
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(t.spec.Input, &parsed); err != nil {
		return nil, fmt.Errorf("schema of tool %q: %w", spec.Name, err)
	}
	if t.schema, err = newSchema(&parsed); err != nil {
		return nil, fmt.Errorf("schema of tool %q: %w", spec.Name, err)
	}
	return t, nil
}

// NewUnchecked makes a tool whose arguments are checked by nobody but itself: a remote one whose schema is in a dialect that is not
// understood here.
func NewUnchecked(spec Spec, call CallFunc) (*Tool, error) {
	if !nameRule.MatchString(spec.Name) {
		return nil, fmt.Errorf("tool name %q does not match %s", spec.Name, NameRule)
	}
	if call == nil {
		return nil, fmt.Errorf("tool %q does nothing", spec.Name)
	}
	if spec.Timeout < 0 {
		return nil, fmt.Errorf("timeout %s of tool %q is negative", spec.Timeout, spec.Name)
	}
	if len(spec.Input) == 0 {
		spec.Input = json.RawMessage(noArguments)
	}
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(spec.Input, &shape); err != nil || shape == nil {
		return nil, errors.Join(fmt.Errorf("schema of tool %q is no JSON object", spec.Name), err)
	}
	return &Tool{spec: spec, call: call}, nil
}

// Func makes a tool of a Go function. The schema is that of In, a struct: a field without omitempty is required, a tag jsonschema
// describes it, and nothing else may be given. What the function returns is told as it is if it is a string, else as JSON.
func Func[In, Out any](spec Spec, call func(context.Context, In) (Out, error)) (*Tool, error) {
	if len(spec.Input) != 0 {
		return nil, fmt.Errorf("tool %q has a schema beside that of its Go type", spec.Name)
	}
	if call == nil {
		return nil, fmt.Errorf("tool %q does nothing", spec.Name)
	}
	derived, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("schema of tool %q: %w", spec.Name, err)
	}
	if spec.Input, err = json.Marshal(derived); err != nil {
		return nil, fmt.Errorf("schema of tool %q: %w", spec.Name, err)
	}
	return New(spec, func(ctx context.Context, arguments json.RawMessage, _ func(Progress)) (Result, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			// They satisfy the schema and do not fit the type all the same: a number that it cannot hold.
			return Result{}, invalid(spec.Name, []string{misfit(err)})
		}
		out, err := call(ctx, in)
		if err != nil {
			return Result{}, err
		}
		return resultOf(out)
	})
}

// misfit says which argument does not fit its Go type, without quoting it.
func misfit(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("%s: does not fit %s", wrong.Field, wrong.Type)
	}
	return "the arguments do not fit the tool"
}

func resultOf(out any) (Result, error) {
	if text, ok := out.(string); ok {
		return Result{Text: text}, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return Result{Text: string(text)}, nil
}

// Spec tells of the tool.
func (t *Tool) Spec() Spec { return t.spec }

// check says what is wrong with arguments; nil = nothing, as far as can be known here.
func (t *Tool) check(arguments json.RawMessage) *Failure {
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return invalid(t.spec.Name, []string{"the arguments are not valid JSON"})
	}
	object, ok := value.(map[string]any)
	if !ok {
		return invalid(t.spec.Name, []string{"the arguments are no JSON object"})
	}
	if t.schema == nil {
		return nil
	}
	if faults := t.schema.faults(object); len(faults) > 0 {
		return invalid(t.spec.Name, faults)
	}
	return nil
}
