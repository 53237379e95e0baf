package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

const (
	// previousField of a request is the response that it goes on after.
	previousField = "previous_response_id"
	// maxToken bounds the ids that are taken as tokens.
	maxToken = 4096
)

// incompleteReasons are why a response ended early; all others are kept as they are.
var incompleteReasons = map[string]string{
	"max_output_tokens": inference.FinishLength,
	"content_filter":    "content_filter",
}

// responseRequest maps a pack to a request of the responses API. What the system says goes along as instructions, which the
// server does not keep: it changes with the workflow, and as input it would stay in the conversation for ever.
func (p *Provider) responseRequest(req inference.Request) (openai.CreateResponseRequest, error) {
	store := true
	request := openai.CreateResponseRequest{
		Model: req.Model, MaxOutputTokens: max(req.MaxTokens, 0), PreviousResponseID: req.Resume, Store: &store, Stream: true,
	}
	if request.Model == "" {
		request.Model = p.config.Model
	}
	if request.Model == "" {
		return request, fault(inference.KindConfig, p.config.Name, "no model was asked for and none is configured")
	}
	if req.Pack.Overflow {
		return request, fault(inference.KindContextOverflow, p.config.Name, "the pack does not fit the model's window")
	}
	var instructions []string
	var input []openai.ResponseInputMessage
	for _, entry := range req.Pack.Messages() {
		if strings.TrimSpace(entry.Content) == "" {
			continue
		}
		role, ok := roleOf(entry.Role)
		switch {
		case !ok:
			return request, fault(inference.KindBadRequest, p.config.Name, "the pack has an entry of unknown role %q", entry.Role)
		case entry.Role == contextpack.RoleSystem:
			instructions = append(instructions, entry.Content)
		default:
			input = append(input, openai.ResponseInputMessage{Type: "message", Role: role, Content: entry.Content})
		}
	}
	if len(input) == 0 {
		return request, fault(inference.KindBadRequest, p.config.Name, "the pack has nothing to send")
	}
	request.Instructions, request.Input = strings.Join(instructions, "\n\n"), input
	return request, nil
}

// responses is a call of the responses API.
func responses(request openai.CreateResponseRequest) exchange {
	return exchange{
		model: request.Model, resume: request.PreviousResponseID,
		open: func(ctx context.Context, client *openai.Client) (stream, error) {
			return client.CreateResponseStream(ctx, request)
		},
		take: (*call).takeResponse, document: responseDocument,
	}
}

// responseEvent is what is read of an event; the library's own type would decode all the rest as well.
type responseEvent struct {
	Type openai.ResponseStreamEventType `json:"type"`
	// Delta is a text in the events whose text is read.
	Delta    json.RawMessage `json:"delta"`
	Response *response       `json:"response"`
}

// response is what is read of an answer as a whole.
type response struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	// Store is false where the server keeps nothing, whatever was asked for.
	Store *bool `json:"store"`
	Usage *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
	Output []struct {
		Type    string `json:"type"`
		Content []struct {
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		} `json:"content"`
	} `json:"output"`
}

// takeResponse handles one event of a response.
func (c *call) takeResponse(raw []byte) error {
	var got responseEvent
	if err := json.Unmarshal(raw, &got); err != nil {
		broken := c.guard.fault(inference.KindProvider, "an event that cannot be read")
		broken.Err = err
		return broken
	}
	if got.Response != nil && got.Response.Model != "" {
		c.completion.Model = c.guard.config.cleanName(got.Response.Model)
	}
	switch got.Type { //nolint:exhaustive // All others are signs of life.
	case openai.ResponseStreamEventOutputTextDelta, openai.ResponseStreamEventRefusalDelta:
		var text string
		if err := json.Unmarshal(got.Delta, &text); err != nil {
			return c.guard.fault(inference.KindProvider, "a text that cannot be read")
		}
		if text != "" {
			c.choices = true
			return c.tell(inference.Delta{Text: text})
		}
	case openai.ResponseStreamEventCompleted, openai.ResponseStreamEventIncomplete, openai.ResponseStreamEventFailed, eventCancelled:
		return c.lastEvent(got)
	}
	return c.tell(inference.Activity{})
}

// eventCancelled ends a response that somebody stopped on the server; the library does not name it.
const eventCancelled openai.ResponseStreamEventType = "response.cancelled"

// lastEvent takes the event that ends a response. The event's name counts and not the status, which some servers do not keep
// up to date.
func (c *call) lastEvent(got responseEvent) error {
	r := got.Response
	if r == nil {
		r = &response{}
	}
	if r.Usage != nil {
		c.count(r.Usage.Input, r.Usage.Output)
	}
	var object map[string]any
	switch got.Type { //nolint:exhaustive // Only last events come here.
	case openai.ResponseStreamEventFailed:
		_ = json.Unmarshal(r.Error, &object) // without one it is an error without a text
		return c.guard.problem(problemOf(object))
	case eventCancelled:
		return c.guard.fault(inference.KindProvider, "the response was cancelled on the server")
	case openai.ResponseStreamEventIncomplete:
		c.completion.FinishReason = "incomplete"
		if r.Incomplete != nil && r.Incomplete.Reason != "" {
			c.completion.FinishReason = c.guard.config.cleanName(r.Incomplete.Reason)
		}
		if known, ok := incompleteReasons[c.completion.FinishReason]; ok {
			c.completion.FinishReason = known
		}
	default:
		c.completion.FinishReason = inference.FinishStop
	}
	if err := c.wholeText(r); err != nil {
		return err
	}
	kept := r.Store == nil || *r.Store
	if _, failed := failedReasons[c.completion.FinishReason]; !failed && kept && len(r.ID) <= maxToken {
		c.completion.Resume = r.ID
	}
	c.choices, c.over = true, true
	return nil
}

// wholeText tells the text of a response of which no delta came.
func (c *call) wholeText(r *response) error {
	if c.choices {
		return nil
	}
	var text strings.Builder
	for _, item := range r.Output {
		if item.Type != "message" { // reasoning has contents too
			continue
		}
		for _, part := range item.Content {
			text.WriteString(part.Text + part.Refusal)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return c.tell(inference.Delta{Text: text.String()})
}

// responseDocument gives a response in one document as the last event of a stream.
func responseDocument(data []byte) (string, bool) {
	var answer struct {
		ID     string             `json:"id"`
		Status string             `json:"status"`
		Output *[]json.RawMessage `json:"output"`
	}
	var whole bytes.Buffer
	if json.Unmarshal(data, &answer) != nil || answer.Output == nil || json.Compact(&whole, data) != nil {
		return "", false
	}
	kind := openai.ResponseStreamEventCompleted
	switch answer.Status {
	case "incomplete", "failed", "cancelled":
		kind = openai.ResponseStreamEventType("response." + answer.Status)
	}
	return `data: {"type":"` + string(kind) + `","response":` + whole.String() + "}\n\n", true
}
