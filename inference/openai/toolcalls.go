package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// maxToolCalls bounds the calls of one answer, maxToolBytes what their names and arguments take together.
	maxToolCalls = 128
	maxToolBytes = 4 << 20
)

// errToolsTooBig ends an answer whose tool calls exceed their bounds.
var errToolsTooBig = errors.New("the tool calls of the answer exceed their size limit")

// ToolCall is a call of a tool that a model asks for.
type ToolCall struct {
	// ID is the server's, or made ("call_1") where it gives none.
	ID   string
	Name string
	// Arguments are a JSON object.
	Arguments string
}

// toolPiece is what one event says of a call.
type toolPiece struct {
	// Index is nil where the server sends none: as a number it would be 0, and all calls one.
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name string `json:"name"`
		// Arguments are a text, of some servers an object.
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments is the piece's part of the arguments.
func (p toolPiece) arguments() string {
	raw := bytes.TrimSpace(p.Function.Arguments)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var part string
	if json.Unmarshal(raw, &part) == nil {
		return part
	}
	var whole bytes.Buffer
	if json.Compact(&whole, raw) != nil {
		return string(raw)
	}
	return whole.String()
}

// toolCalls puts calls together from their pieces. The zero value has none.
type toolCalls struct {
	calls []openCall
	bytes int
}

// openCall is a call whose pieces are coming.
type openCall struct {
	index     *int
	id, name  string
	arguments []byte
	// State of the arguments so far, kept so that each byte is looked at once: open braces, and whether it is within a text.
	depth           int
	inText, escaped bool
	objects         int
}

func (c *openCall) write(part string) {
	c.arguments = append(c.arguments, part...)
	for i := range len(part) {
		switch b := part[i]; {
		case c.escaped:
			c.escaped = false
		case c.inText:
			c.inText, c.escaped = b != '"', b == '\\'
		case b == '"':
			c.inText = true
		case b == '{':
			c.depth++
		case b == '}':
			if c.depth--; c.depth == 0 {
				c.objects++
			}
		}
	}
}

// whole says whether nothing can be added to the arguments.
func (c *openCall) whole() bool { return c.objects > 0 }

// add takes a piece. Servers number their pieces, name their calls, do both, or neither, and some number all of them 0; so
// what belongs to a call is what neither its number nor its id nor its name speaks against.
func (t *toolCalls) add(piece toolPiece) error {
	arguments := piece.arguments()
	t.bytes += len(piece.ID) + len(piece.Function.Name) + len(arguments)
	if t.bytes > maxToolBytes {
		return errToolsTooBig
	}
	call := t.find(piece)
	if call == nil {
		if len(t.calls) == maxToolCalls {
			return errToolsTooBig
		}
		t.calls = append(t.calls, openCall{index: piece.Index, id: piece.ID})
		call = &t.calls[len(t.calls)-1]
	}
	if call.name == "" {
		call.name = piece.Function.Name
	}
	if call.id == "" {
		call.id = piece.ID
	}
	call.write(arguments)
	return nil
}

// find gives the call that a piece goes on with; nil: it begins one. The newest calls are looked at first.
func (t *toolCalls) find(piece toolPiece) *openCall {
	for i := len(t.calls) - 1; i >= 0; i-- {
		call := &t.calls[i]
		switch {
		case piece.Index != nil && (call.index == nil || *call.index != *piece.Index):
			continue
		case piece.Index == nil && piece.ID != "" && piece.ID != call.id && call.id != "":
			continue
		case begins(piece, call):
			return nil
		}
		return call
	}
	return nil
}

// begins says whether a piece is the first one of another call although its place is that of call.
func begins(piece toolPiece, call *openCall) bool {
	name := piece.Function.Name
	switch {
	case name == "" || call.name == "":
		return false
	case piece.ID != "" && call.id != "":
		// Ids alone tell nothing: there are servers that make a new one for each piece, though not with a name.
		return piece.ID != call.id
	}
	return name != call.name || call.whole()
}

// finish gives the calls. The error, of calls that cannot be carried out, names each of them; the calls are given all the same.
func (t *toolCalls) finish() ([]ToolCall, error) {
	var faults []error
	var finished []ToolCall
	for i := range t.calls {
		call := ToolCall{ID: t.calls[i].id, Name: t.calls[i].name, Arguments: string(bytes.TrimSpace(t.calls[i].arguments))}
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d", i+1)
		}
		if call.Arguments == "" {
			call.Arguments = "{}"
		}
		switch {
		case call.Name == "":
			faults = append(faults, fmt.Errorf("tool call %d has no name", i+1))
		case !json.Valid([]byte(call.Arguments)):
			faults = append(faults, fmt.Errorf("the arguments of tool call %d are not whole", i+1))
		case call.Arguments[0] != '{':
			faults = append(faults, fmt.Errorf("the arguments of tool call %d are no object", i+1))
		}
		finished = append(finished, call)
	}
	return finished, errors.Join(faults...)
}
