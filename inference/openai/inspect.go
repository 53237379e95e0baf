package openai

import (
	"context"
	"encoding/json"

	"github.com/sashabaranov/go-openai"

	"github.com/correx/correx-actors/inference"
)

// Trial is a call that is made to learn what a server does with it. It may ask for what the port has no words for.
type Trial struct {
	// Model; "" = the provider's.
	Model  string
	System string
	User   string
	// MaxTokens bounds the answer; 0 = the provider's limit.
	MaxTokens int
	// Tools that the model may call; Required: it must call one.
	Tools    []Tool
	Required bool
	// NoUsage leaves out the wish for a usage, which some servers refuse.
	NoUsage bool
}

// Tool is a function that a model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters are a JSON schema.
	Parameters json.RawMessage
}

// Inspection is all that a call shows of its provider.
type Inspection struct {
	inference.Completion
	// Calls of tools that the answer asks for; CallsErr says why they cannot be carried out.
	Calls    []ToolCall
	CallsErr error
	// Response is what the headers told; its zero value: there was no answer.
	Response Response
	// Done: the end mark came. An answer may be whole without it, by its finish reason.
	Done bool
	// Bytes of the stream.
	Bytes int64
}

// Inspect makes one call as Infer does, through the same guard, and tells more of it. Its error is that of Infer.
func (p *Provider) Inspect(ctx context.Context, trial Trial, report func(inference.Event) error) (Inspection, error) {
	request := openai.ChatCompletionRequest{Model: trial.Model, Stream: true}
	if request.Model == "" {
		request.Model = p.config.Model
	}
	if request.Model == "" {
		return Inspection{}, fault(inference.KindConfig, p.config.Name, "no model was asked for and none is configured")
	}
	if !trial.NoUsage {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if trial.System != "" {
		request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: trial.System})
	}
	request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: trial.User})
	for _, tool := range trial.Tools {
		request.Tools = append(request.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters,
		}})
	}
	if trial.Required {
		request.ToolChoice = "required"
	}
	p.limitTokens(&request, trial.MaxTokens)
	c := &call{ctx: ctx, name: p.config.Name, report: report}
	how := chat(request)
	how.tools = false // what is wrong with calls is told beside the rest
	completion, err := c.run(p.config, how)
	inspection := Inspection{Completion: completion, Bytes: c.guard.received()}
	inspection.Calls, inspection.CallsErr = c.tools.finish()
	if c.guard != nil && c.guard.status != 0 {
		inspection.Response, inspection.Done = p.config.responseOf(c.guard.status, c.guard.header), c.guard.done()
	}
	return inspection, err
}
