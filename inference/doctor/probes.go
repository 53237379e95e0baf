package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

// What is asked. Counting makes even a small model write for a while, and costs few tokens.
const (
	system     = "You are terse. Do what is asked and add nothing."
	countTo20  = "Count from 1 to 20, with a space between the numbers."
	countTo500 = "Count from 1 to 500, with a space between the numbers. Do not stop before."
	sayHello   = "Say hello."
	callTool   = "What is the weather in Paris? Use the tool."
	noModel    = "correx-doctor-no-such-model"
	noKey      = "correx-doctor-no-such-key"

	streamTokens = 200
	fewTokens    = 8
)

func (e *exam) probes() []probe {
	return []probe{
		{"models", e.models},
		{"stream", e.stream},
		{"usage", e.usage},
		{"limit", e.limit},
		{"tools", e.tools},
		{"cancel", e.cancel},
		{"parallel", e.parallel},
		{"first token", e.firstToken},
		{"keep-alives", e.keepAlives},
		{"errors", e.unknownModel},
		{"key", e.wrongKey},
		{"rate limits", e.rateLimits},
	}
}

// stream asks for an answer that should come in pieces.
func (e *exam) stream(ctx context.Context) Finding {
	trial := openai.Trial{System: system, User: countTo20, MaxTokens: streamTokens}
	s := e.call(ctx, trial, nil)
	if inference.KindOf(s.err) == inference.KindBadRequest {
		e.bare = true
		if again := e.call(ctx, trial, nil); again.err == nil {
			s = again
		} else {
			e.bare = false
		}
	}
	e.whole = s
	if s.err != nil {
		e.stop = "the stream failed"
		return Finding{Verdict: Failed, Detail: e.told(s.err), Advice: adviceOn(s.err, e.config.APIKey != "")}
	}
	e.keep(s)
	detail := fmt.Sprintf("%s, %d bytes of text in %s, finish reason %s", plural(s.deltas, "delta"), s.bytes, short(s.took), s.FinishReason)
	finding := Finding{Verdict: OK, Detail: detail}
	warn := func(what, advice string) {
		finding.Verdict, finding.Detail, finding.Advice = Warning, finding.Detail+"; "+what, advice
	}
	switch {
	case !isStream(s.Response.ContentType) && s.deltas <= 1:
		warn("the answer comes in one document", "the server or a proxy ignores the wish for a stream; users see nothing until the end")
	case s.deltas == 0:
		warn("no visible text", "a model that only reasons needs a larger limit of tokens, or is no model for conversations")
	case !s.streamed():
		warn("all at once after a wait", "something in between collects the stream: switch off its buffering and compression")
	case !isStream(s.Response.ContentType):
		warn(fmt.Sprintf("the content type is %q", s.Response.ContentType), "nothing to do here: the driver reads it all the same; other clients may not")
	case !s.Done:
		warn("no end mark", "nothing to do: the finish reason tells the end")
	}
	return finding
}

func (e *exam) usage(context.Context) Finding {
	u := e.whole.Usage
	switch {
	case e.bare:
		return Finding{
			Verdict: Failed, Detail: "a request that asks for the usage of a stream is refused",
			Advice: "the product asks for it always: put something in front that drops stream_options, or update the server",
		}
	case !u.Known:
		return Finding{Verdict: Warning, Detail: "not told, although asked for", Advice: "usage of this provider is reported as unknown, budgets cannot count it exactly"}
	}
	return Finding{Verdict: OK, Detail: fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens)}
}

func (e *exam) limit(ctx context.Context) Finding {
	s := e.call(ctx, openai.Trial{System: system, User: countTo500, MaxTokens: fewTokens}, nil)
	if s.err != nil {
		return Finding{Verdict: Failed, Detail: e.told(s.err), Advice: "a limit of the answer's tokens is not taken: leave it unset for this provider"}
	}
	e.keep(s)
	if s.cutShort() {
		return Finding{Verdict: OK, Detail: fmt.Sprintf("an answer ends at its limit of %d tokens", fewTokens)}
	}
	return Finding{
		Verdict: Warning, Detail: fmt.Sprintf("an answer with a limit of %d tokens has %d bytes and the finish reason %s", fewTokens, s.bytes, s.FinishReason),
		Advice: "the limit is ignored or not told: an answer that was cut looks whole",
	}
}

func (e *exam) tools(ctx context.Context) Finding {
	s := e.call(ctx, openai.Trial{
		System: system, User: callTool, MaxTokens: streamTokens, Required: true,
		Tools: []openai.Tool{{
			Name: "get_weather", Description: "Tells the weather in a city.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}, nil)
	const advice = "use it for conversations without tools, or another model"
	switch {
	case s.err != nil:
		return Finding{Verdict: Warning, Detail: "a request with tools fails: " + e.told(s.err), Advice: advice}
	case len(s.Calls) == 0:
		return Finding{Verdict: Warning, Detail: "a required tool is not called", Advice: advice}
	case s.CallsErr != nil:
		return Finding{Verdict: Failed, Detail: "the call cannot be carried out: " + strings.ReplaceAll(s.CallsErr.Error(), "\n", ", "), Advice: advice}
	}
	e.keep(s)
	var arguments struct {
		City *string `json:"city"`
	}
	call := s.Calls[0]
	if call.Name != "get_weather" || json.Unmarshal([]byte(call.Arguments), &arguments) != nil || arguments.City == nil {
		return Finding{Verdict: Warning, Detail: "the call does not follow the tool's schema", Advice: advice}
	}
	detail := plural(len(s.Calls), "call") + " as the schema wants"
	if s.FinishReason != "tool_calls" {
		detail += ", with the finish reason " + s.FinishReason
	}
	return Finding{Verdict: OK, Detail: detail}
}

// cancel goes away in the midst of a long answer. Whether a server stops working cannot be seen from here, but one that
// serves one request at a time lets the next one wait if it does not.
func (e *exam) cancel(ctx context.Context) Finding {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errEnough := errors.New("enough")
	var at time.Time
	s := e.call(inner, openai.Trial{System: system, User: countTo500}, func() error {
		if at.IsZero() {
			at = time.Now()
			cancel(errEnough)
		}
		return nil
	})
	switch {
	case at.IsZero() && s.err != nil:
		return Finding{Verdict: Failed, Detail: "a long answer fails: " + e.told(s.err)}
	case at.IsZero():
		return Finding{Verdict: Skipped, Detail: "no text to cancel"}
	}
	closed := time.Since(at)
	next := e.call(ctx, openai.Trial{System: system, User: sayHello, MaxTokens: fewTokens}, nil)
	if next.err != nil {
		return Finding{Verdict: Failed, Detail: "the call after a cancel fails: " + e.told(next.err), Advice: "the server seems to be busy with what was cancelled"}
	}
	detail := fmt.Sprintf("closed in %s, the next call begins after %s", short(closed), short(next.first))
	usual := median(e.first)
	if usual > 0 && next.first > 3*usual+time.Second {
		return Finding{
			Verdict: Warning, Detail: fmt.Sprintf("%s instead of %s", detail, short(usual)),
			Advice: "the server seems to finish what was cancelled: a stop will not save its time",
		}
	}
	e.keep(next)
	return Finding{Verdict: OK, Detail: detail}
}

// parallel asks for some answers at once.
func (e *exam) parallel(ctx context.Context) Finding {
	const calls = 4
	trial := openai.Trial{System: system, User: sayHello, MaxTokens: fewTokens}
	alone := e.call(ctx, trial, nil)
	if alone.err != nil {
		return Finding{Verdict: Failed, Detail: e.told(alone.err)}
	}
	e.keep(alone)
	var group errgroup.Group
	started := time.Now()
	for range calls {
		group.Go(func() error { return e.call(ctx, trial, nil).err })
	}
	err := group.Wait()
	took := time.Since(started)
	switch {
	case inference.KindOf(err) == inference.KindRateLimited && err != nil:
		return Finding{Verdict: Warning, Detail: fmt.Sprintf("%d calls at once: %s", calls, e.told(err)), Advice: "set limits.concurrent of its entry, or raise its own limit"}
	case err != nil:
		e.concurrent = 1
		return Finding{Verdict: Failed, Detail: fmt.Sprintf("%d calls at once: %s", calls, e.told(err)), Advice: "give it one call at a time"}
	case took > 3*alone.took+time.Second/2:
		e.concurrent = 1
		return Finding{
			Verdict: Warning, Detail: fmt.Sprintf("%d calls at once take %s, one takes %s", calls, short(took), short(alone.took)),
			Advice: "it serves one after the other: limits.concurrent of its entry keeps the wait visible",
		}
	}
	return Finding{Verdict: OK, Detail: fmt.Sprintf("%d calls at once take %s, one takes %s", calls, short(took), short(alone.took))}
}

func (e *exam) firstToken(context.Context) Finding {
	if len(e.first) == 0 {
		return Finding{Verdict: Skipped, Detail: "no answer to measure"}
	}
	longest := slices.Max(e.first)
	finding := Finding{Verdict: OK, Detail: fmt.Sprintf("%s (%s to %s, %s)",
		short(median(e.first)), short(slices.Min(e.first)), short(longest), plural(len(e.first), "call"))}
	if longest > slowFirstToken {
		finding.Verdict, finding.Advice = Warning, "users wait long; a load balancer in between may give up before"
	}
	return finding
}

// keepAlives judges what the calls before showed.
func (e *exam) keepAlives(context.Context) Finding {
	detail := fmt.Sprintf("%s in %s, longest silence %s", plural(e.comments, "comment"), plural(e.answers, "answer"), short(e.silence))
	if e.comments == 0 {
		detail = fmt.Sprintf("none in %s, longest silence %s", plural(e.answers, "answer"), short(e.silence))
		if longest := max(e.silence, slices.Max(append(e.first, 0))); longest > slowFirstToken {
			return Finding{Verdict: Warning, Detail: detail, Advice: "a long wait cannot be told from a dead connection: see the profile's timeouts"}
		}
	}
	return Finding{Verdict: OK, Detail: detail}
}
