package inference

import "encoding/json"

// ToolSpec is what a model is told of a tool that it may call.
type ToolSpec struct {
	Name        string
	Description string
	// Input is the JSON schema of the arguments, of the type object.
	Input json.RawMessage
}

// ToolCall is a call that a model asks for.
type ToolCall struct {
	// ID is unique among the calls of one answer.
	ID   string
	Name string
	// Arguments are a JSON object.
	Arguments json.RawMessage
}

// Round is one answer of a model that called tools, and what came of it.
type Round struct {
	// Text that the model said with its calls.
	Text  string
	Calls []ToolCall
	// Answers, one for each call, in the order of the calls; none is empty.
	Answers []string
	// Said is what the user put in afterwards, in order.
	Said []string
}

// ToolCaller is a provider whose models can call tools.
type ToolCaller interface {
	Provider
	// CallsTools says whether they can, as it is set up.
	CallsTools() bool
}

// CallsTools says whether tools may be offered to a provider.
func CallsTools(p Provider) bool {
	caller, ok := p.(ToolCaller)
	return ok && caller.CallsTools()
}
