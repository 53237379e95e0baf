package openai

import (
	"errors"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// request maps a pack to a chat completion request. Errors are found before any call is made.
func (p *Provider) request(req inference.Request) (openai.ChatCompletionRequest, error) {
	request := openai.ChatCompletionRequest{
		Model:         req.Model,
		Stream:        true,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
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
	for _, entry := range req.Pack.Messages() {
		// The library leaves an empty content out altogether, and servers refuse such a message in every later call.
		if strings.TrimSpace(entry.Content) == "" {
			continue
		}
		role, ok := roleOf(entry.Role)
		if !ok {
			return request, fault(inference.KindBadRequest, p.config.Name, "the pack has an entry of unknown role %q", entry.Role)
		}
		request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: role, Content: entry.Content})
	}
	if len(request.Messages) == 0 {
		return request, fault(inference.KindBadRequest, p.config.Name, "the pack has nothing to send")
	}
	for _, round := range req.Rounds {
		request.Messages = append(request.Messages, roundMessages(round)...)
	}
	for _, tool := range req.Tools {
		request.Tools = append(request.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: tool.Name, Description: tool.Description, Parameters: tool.Input,
		}})
	}
	p.limitTokens(&request, req.MaxTokens)
	return request, nil
}

// roundMessages gives a round in the order that chat APIs demand: the calls, all their answers in the order of the calls, then
// what the user said.
func roundMessages(round inference.Round) []openai.ChatCompletionMessage {
	asked := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: round.Text}
	for _, call := range round.Calls {
		asked.ToolCalls = append(asked.ToolCalls, openai.ToolCall{
			ID: call.ID, Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.Name, Arguments: string(call.Arguments)},
		})
	}
	list := []openai.ChatCompletionMessage{asked}
	for i, answer := range round.Answers {
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: round.Calls[i].ID, Content: answer})
	}
	for _, text := range round.Said {
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text})
	}
	return list
}

// limitTokens sets the field that model and server take. OpenAI's own endpoint wants the new one; so does the library for
// some model names, whatever the server, which is why the library itself is asked. All other servers know the old one.
func (p *Provider) limitTokens(request *openai.ChatCompletionRequest, limit int) {
	if limit <= 0 {
		return
	}
	request.MaxTokens = limit //nolint:staticcheck // Deprecated by OpenAI, but all that most other servers know.
	err := openai.NewReasoningValidator().Validate(*request)
	if errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated) || strings.HasPrefix(p.config.BaseURL, BaseURL) {
		request.MaxTokens, request.MaxCompletionTokens = 0, limit //nolint:staticcheck // As above.
	}
}

func roleOf(role contextpack.Role) (string, bool) {
	switch role {
	case contextpack.RoleSystem:
		return openai.ChatMessageRoleSystem, true
	case contextpack.RoleUser:
		return openai.ChatMessageRoleUser, true
	case contextpack.RoleAssistant:
		return openai.ChatMessageRoleAssistant, true
	}
	return "", false
}
