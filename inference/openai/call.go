package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/correx/correx-actors/inference"
)

// finishGrace is how long after the finish reason the usage and the end mark may still come. A server that holds its
// connection open then has given its answer all the same.
const finishGrace = 5 * time.Second

// maxName bounds the names that a server gives: of the model, of a finish reason.
const maxName = 200

// errSettled is the cause with which a call ends itself after its grace.
var errSettled = errors.New("the answer is whole")

// failedReasons are finish reasons of answers that are not whole since something failed. All others are kept as they are: what
// they mean is for their reader to say.
var failedReasons = map[string]inference.Kind{
	"content_filter":               inference.KindContentFiltered,
	"sensitive":                    inference.KindContentFiltered,
	"insufficient_system_resource": inference.KindOverloaded,
	"network_error":                inference.KindUnavailable,
	"abort":                        inference.KindProvider,
	"error":                        inference.KindProvider,
}

// stream is what the library makes of a body: its events' data.
type stream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// exchange is what differs between the APIs.
type exchange struct {
	model string
	// resume is the token that the request brings; "" = none.
	resume string
	open   func(ctx context.Context, client *openai.Client) (stream, error)
	// take handles one event.
	take func(c *call, raw []byte) error
	// document turns an answer in one JSON document into a stream of events; false = it is no answer.
	document func(data []byte) (string, bool)
	// mark: the end mark alone makes an answer whole.
	mark bool
	// tools: some were offered.
	tools bool
}

// chat is a call of the chat completions API.
func chat(request openai.ChatCompletionRequest) exchange {
	return exchange{
		model: request.Model,
		open: func(ctx context.Context, client *openai.Client) (stream, error) {
			return client.CreateChatCompletionStream(ctx, request)
		},
		take: (*call).take, document: chatDocument, mark: true, tools: len(request.Tools) > 0,
	}
}

// call is one call in progress. All of it, report included, runs on the goroutine of Infer.
type call struct {
	ctx    context.Context //nolint:containedctx // The call lives no longer than its Infer.
	name   string
	report func(inference.Event) error
	// reportErr ended the call: report's own error.
	reportErr error

	how    exchange
	guard  *guard
	cancel context.CancelCauseFunc
	settle *time.Timer

	completion inference.Completion
	// chunk is the memory of the current event.
	chunk chunk
	// tools are the calls that the answer asks for.
	tools toolCalls
	// choices: the answer has any; filtered: the prompt was stopped by a filter.
	choices, filtered bool
	// over: the last event has come.
	over bool
}

func (c *call) run(config Config, how exchange) (inference.Completion, error) {
	c.how = how
	if c.ctx.Err() != nil {
		return c.completion, inference.Canceled(c.ctx, c.name)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	c.cancel = cancel
	c.guard = &guard{
		config: config, alive: func() error { return c.tell(inference.Activity{}) }, answer: how.document, resume: how.resume,
	}
	stream, err := how.open(ctx, config.client(c.guard))
	if err != nil {
		return c.completion, c.refused(err)
	}
	defer func() { _ = stream.Close() }()
	defer func() {
		if c.settle != nil {
			c.settle.Stop()
		}
	}()
	if err := c.tell(inference.Connected{}); err != nil {
		return c.completion, err
	}
	err = c.read(stream)
	if err == nil && (c.guard.done() || c.over) {
		c.guard.events.drain(func() { cancel(errSettled) })
	}
	return c.completion, err
}

// read takes the stream to its end, which it judges. Raw lines: the library's own chunks lack fields that are needed here,
// and decoding into them costs more.
func (c *call) read(stream stream) error {
	for !c.over {
		raw, err := stream.RecvRaw()
		if err != nil {
			return c.ended(err)
		}
		if c.ctx.Err() != nil {
			return inference.Canceled(c.ctx, c.name)
		}
		if err := c.how.take(c, raw); err != nil {
			return err
		}
	}
	return c.complete()
}

// tell reports an event and keeps an error of report apart from those of the stream, through which it may come back.
func (c *call) tell(event inference.Event) error {
	if err := c.report(event); err != nil {
		c.reportErr = err
		return err
	}
	return nil
}

// refused gives the error of a call that got no stream. What is not from the guard was found by the library's own checks
// of the request, before anything was sent.
func (c *call) refused(err error) error {
	if c.ctx.Err() != nil {
		return inference.Canceled(c.ctx, c.name)
	}
	var typed *inference.Error
	if errors.As(err, &typed) {
		return typed
	}
	refusal := fault(inference.KindConfig, c.name, "%s", err)
	refusal.Err = err
	return refusal
}

// ended judges the end of a stream: an answer is whole if the server said so, by its end mark or by a finish reason.
// Whose end it was is asked of the context, never of an error's text.
func (c *call) ended(err error) error {
	finished := c.completion.FinishReason != ""
	var (
		typed   *inference.Error
		timeout net.Error
	)
	switch {
	case c.reportErr != nil:
		return c.reportErr
	case errors.Is(err, io.EOF) && (finished || c.guard.done() && c.how.mark):
		return c.complete()
	case c.ctx.Err() != nil:
		return inference.Canceled(c.ctx, c.name)
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, errEventTooBig):
		return c.guard.fault(inference.KindProvider, "an event above %d bytes", c.guard.config.MaxEventBytes)
	case errors.Is(err, errBodyTooBig):
		return c.guard.fault(inference.KindProvider, "a stream above %d bytes", c.guard.config.MaxBodyBytes)
	case finished:
		return c.complete()
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.guard.fault(inference.KindTimeout, "the answer took too long")
	}
	return c.guard.cut(err)
}

func (c *call) complete() error {
	if kind, failed := failedReasons[c.completion.FinishReason]; failed {
		return c.guard.fault(kind, "the answer ended with the finish reason %s", c.completion.FinishReason)
	}
	switch {
	case !c.choices && c.filtered:
		return c.guard.fault(inference.KindContentFiltered, "the prompt was stopped by a content filter")
	case !c.choices:
		return c.guard.fault(inference.KindProvider, "an answer without a choice")
	case c.completion.FinishReason == "":
		// The end mark alone: some servers give no reason for a normal end.
		c.completion.FinishReason = inference.FinishStop
	}
	return c.finishTools()
}

// finishTools gives the tools that the answer calls, if any were offered. Some servers number all calls alike, but an answer names its
// call: so each gets a name of its own.
func (c *call) finishTools() error {
	if !c.how.tools {
		return nil
	}
	calls, err := c.tools.finish()
	if err != nil {
		broken := c.guard.fault(inference.KindProvider, "%s", err)
		broken.Err = err
		return broken
	}
	seen := make(map[string]bool, len(calls))
	for _, asked := range calls {
		id := asked.ID
		for n := 2; seen[id]; n++ {
			id = fmt.Sprintf("%s_%d", asked.ID, n)
		}
		seen[id] = true
		c.completion.Calls = append(c.completion.Calls, inference.ToolCall{ID: id, Name: asked.Name, Arguments: json.RawMessage(asked.Arguments)})
	}
	return nil
}

// chunk is one event of a stream, or a whole completion in one document.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int      `json:"index"`
		Delta        message  `json:"delta"`
		Message      *message `json:"message"`
		FinishReason string   `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	} `json:"usage"`
	PromptFilter json.RawMessage `json:"prompt_filter_results"`
}

// message is what is read of an answer. A refusal is the model's answer as well. Reasoning is not read: an event without
// visible text is activity.
type message struct {
	Content   string      `json:"content"`
	Refusal   string      `json:"refusal"`
	ToolCalls []toolPiece `json:"tool_calls"`
	// FunctionCall is how calls of tools looked before; some servers still send it.
	FunctionCall *struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function_call"`
}

// take handles one event of a chat completion.
func (c *call) take(raw []byte) error {
	got := &c.chunk
	clear(got.Choices)
	*got = chunk{Choices: got.Choices[:0]}
	if err := json.Unmarshal(raw, got); err != nil {
		broken := c.guard.fault(inference.KindProvider, "an event that cannot be read")
		broken.Err = err
		return broken
	}
	if err := c.stray(raw); err != nil {
		return err
	}
	if got.Model != "" {
		c.completion.Model = c.guard.config.cleanName(got.Model)
	}
	if u := got.Usage; u != nil {
		c.count(u.Input, u.Output)
	}
	c.filtered = c.filtered || promptFiltered(got.PromptFilter)
	visible := false
	for _, choice := range got.Choices {
		// One choice is asked for; a server that sends more would mix their texts.
		if choice.Index != 0 {
			continue
		}
		c.choices = true
		if choice.FinishReason != "" {
			c.completion.FinishReason = c.guard.config.cleanName(choice.FinishReason)
		}
		said := choice.Delta
		if choice.Message != nil {
			said = *choice.Message
		}
		if err := c.called(said); err != nil {
			return err
		}
		if text := said.Content + said.Refusal; text != "" {
			visible = true
			if err := c.tell(inference.Delta{Text: text}); err != nil {
				return err
			}
		}
	}
	c.awaitEnd()
	if visible {
		return nil
	}
	return c.tell(inference.Activity{})
}

// count notes a usage. Zeros are how some servers say that they do not count.
func (c *call) count(input, output int64) {
	if input >= 0 && output >= 0 && input+output > 0 {
		c.completion.Usage = inference.Usage{InputTokens: uint64(input), OutputTokens: uint64(output), Known: true}
	}
}

// called takes the pieces of tool calls of a message.
func (c *call) called(said message) error {
	pieces := said.ToolCalls
	if old := said.FunctionCall; old != nil {
		var piece toolPiece
		piece.Function.Name, piece.Function.Arguments = old.Name, old.Arguments
		pieces = append(pieces, piece)
	}
	for _, piece := range pieces {
		if err := c.tools.add(piece); err != nil {
			broken := c.guard.fault(inference.KindProvider, "%s", err)
			broken.Err = err
			return broken
		}
	}
	return nil
}

// awaitEnd starts the grace once there is a finish reason, and anew with all that comes after it.
func (c *call) awaitEnd() {
	switch {
	case c.completion.FinishReason == "":
	case c.settle == nil:
		cancel := c.cancel
		c.settle = time.AfterFunc(finishGrace, func() { cancel(errSettled) })
	default:
		c.settle.Reset(finishGrace)
	}
}

// promptFiltered reads Azure's verdict on the prompt, which stands in a chunk without choices.
func promptFiltered(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	var results []struct {
		Filters map[string]struct {
			Filtered bool `json:"filtered"`
		} `json:"content_filter_results"`
	}
	// Filters that look otherwise are skipped: the error says nothing of those that were read.
	_ = json.Unmarshal(raw, &results)
	for _, result := range results {
		for _, filter := range result.Filters {
			if filter.Filtered {
				return true
			}
		}
	}
	return false
}
