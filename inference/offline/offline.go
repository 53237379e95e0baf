// Package offline is the embedded engine that needs no key and no network. It is no language model and says so: it answers
// from the context pack alone (the workflow's brief and the conversation) by fixed rules, so that the same pack always gives
// the same answer and nothing in it is invented.
package offline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// Name is the engine's name as a provider and as a model.
const Name = "offline"

// Config of the engine.
type Config struct {
	// Delay before each token, so that streaming, steering and cancelling can be tried without a model; 0 = none.
	Delay time.Duration
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	if c.Delay < 0 {
		return fmt.Errorf("offline delay %s is negative", c.Delay)
	}
	return nil
}

// Provider is the offline engine. Safe for concurrent use.
type Provider struct {
	delay time.Duration
}

var _ inference.Provider = (*Provider)(nil)

// New makes the engine; a negative Delay counts as none (Validate reports it).
func New(c Config) *Provider { return &Provider{delay: max(c.Delay, 0)} }

// Name implements inference.Provider.
func (p *Provider) Name() string { return Name }

// CallsTools implements inference.ToolCaller: a line /tool NAME {json} of the user's text is a call.
func (*Provider) CallsTools() bool { return true }

// Infer implements inference.Provider: it streams the answer token by token, a token being a word with the white space
// before it.
func (p *Provider) Infer(ctx context.Context, req inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	done := inference.Completion{FinishReason: inference.FinishStop, Model: Name}
	if ctx.Err() != nil {
		return done, inference.Canceled(ctx, Name)
	}
	if req.Pack.Overflow {
		return done, &inference.Error{
			Kind: inference.KindContextOverflow, Provider: Name, Message: "the pack does not fit the model's window",
		}
	}
	entries := req.Pack.Messages()
	done.Usage = inference.Usage{InputTokens: inputTokens(entries), Known: true}
	if err := report(inference.Connected{}); err != nil {
		return done, err
	}
	if calls := asked(req, entries); len(calls) > 0 {
		done.Calls, done.FinishReason = calls, "tool_calls"
		return done, p.wait(ctx)
	}
	text := answer(req.Pack.Brief, entries)
	if len(req.Rounds) > 0 {
		text = retell(req.Rounds)
	}
	if limited, cut := limit(text, req.MaxTokens); cut {
		text, done.FinishReason = limited, inference.FinishLength
	}
	sent := 0
	for text != "" {
		token := text[:tokenEnd(text)]
		text = text[len(token):]
		if err := p.wait(ctx); err != nil {
			return done, err
		}
		if err := report(inference.Delta{Text: token}); err != nil {
			return done, err
		}
		sent += len(token)
		done.Usage.OutputTokens = tokens(sent)
	}
	return done, nil
}

// wait sleeps for the delay; a timer and a select, so that it ends with ctx at once and runs on a test's virtual clock.
func (p *Provider) wait(ctx context.Context) error {
	if p.delay > 0 {
		timer := time.NewTimer(p.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return inference.Canceled(ctx, Name)
	}
	return nil
}

// tokenEnd is the length of the first token of text: its white space, then its word.
func tokenEnd(text string) int {
	word := strings.IndexFunc(text, func(r rune) bool { return !isSpace(r) })
	if word < 0 {
		return len(text)
	}
	space := strings.IndexFunc(text[word:], isSpace)
	if space < 0 {
		return len(text)
	}
	return word + space
}

func isSpace(r rune) bool { return r == ' ' || r == '\n' }

// limit cuts text to whole words of at most maxTokens tokens; 0 = no limit.
func limit(text string, maxTokens int) (string, bool) {
	if maxTokens <= 0 || tokens(len(text)) <= uint64(maxTokens) {
		return text, false
	}
	end := 0
	for {
		next := end + tokenEnd(text[end:])
		if tokens(next) > uint64(maxTokens) {
			return text[:end], true
		}
		end = next
	}
}

// tokens estimates as everywhere where there is no tokenizer: four bytes each.
func tokens(bytes int) uint64 { return uint64(bytes+3) / 4 }

func inputTokens(entries []contextpack.Entry) uint64 {
	var sum uint64
	for _, entry := range entries {
		sum += tokens(len(entry.Content))
	}
	return sum
}
