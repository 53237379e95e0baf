package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// timeoutError is the cause of a context that one of our own limits ended.
type timeoutError struct {
	what  string
	after time.Duration
	limit inference.Limit
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s after %s", e.what, e.after) }

// Timeout tells those who see only the cause of a call's context, such as telemetry, that it was no abort.
func (*timeoutError) Timeout() bool { return true }

// errAnswerTooLong stops a call whose answer grows beyond its limit.
var errAnswerTooLong = errors.New("answer is too long")

// attempt makes the calls of one run and says how it ended. A panic of a provider ends the run, not the process (I13).
func attempt(ctx context.Context, deps *Deps, order core.RunOrder, report *reporter, work *toolRun) (end core.RunFinished) {
	begin := time.Now()
	log := deps.Log.With(
		slog.String(messages.AttrSession, string(order.Key.Session)),
		slog.String(messages.AttrRun, order.RunID), slog.Uint64(messages.AttrAttempt, uint64(order.Attempt)))
	defer func() {
		if reason := recover(); reason != nil {
			log.LogAttrs(ctx, slog.LevelError, "run panicked",
				slog.Any(messages.AttrReason, reason), slog.String(messages.AttrStack, string(debug.Stack())))
			end = failed(report, messages.CodeInternal, "the run failed inside the server", false)
		}
		log.LogAttrs(ctx, slog.LevelInfo, "run ended", slog.String(messages.AttrOutcome, string(end.Outcome)),
			slog.String(messages.AttrCode, end.Error.GetCode()), slog.Int(messages.AttrBytes, len(end.Content)),
			slog.Int64(messages.AttrDuration, time.Since(begin).Milliseconds()))
	}()
	run := &attempts{deps: deps, order: order, report: report, log: log, tools: work}
	return run.run(ctx)
}

// Pack builds the context pack of a run's first call; for whoever wants to look at it without a run as well.
func Pack(deps *Deps, order core.RunOrder) contextpack.Pack {
	route, _ := deps.First(context.Background(), order.Model, order.Engine) // without one no call is made
	return packingFor(deps, order, route, false, false).build(deps, order)
}

// packing is what of a call its pack depends on.
type packing struct {
	model string
	// window is what the prompt may take of the model's: all but what is reserved for the answer; 0 = unknown.
	window, budget int
	counter        contextpack.TokenCounter
	// resume is the token of the conversation that the provider keeps; the pack holds only what is new to it.
	resume string
}

// packingFor says how the prompt of a call is made. Afresh: without the token that the order has.
func packingFor(deps *Deps, order core.RunOrder, route inference.Route, halved, afresh bool) packing {
	as := packing{model: cmp.Or(route.Model, order.Model), budget: order.TokenBudget, counter: route.Counter}
	if as.counter == nil {
		as.counter = deps.Counter(as.model)
	}
	if window := cmp.Or(route.Window, deps.Window); window > 0 {
		// A reserve that does not suit the window must not leave nothing for the prompt.
		as.window = window - min(cmp.Or(route.MaxOutput, deps.AnswerReserve), window/2)
	}
	if halved {
		as.budget /= 2
	}
	if !afresh && route.Provider != nil && route.Provider.Name() == order.Resume.GetEngine() {
		as.resume = order.Resume.GetToken()
	}
	return as
}

func (p packing) build(deps *Deps, order core.RunOrder) contextpack.Pack {
	turns := order.Turns
	if p.resume != "" {
		turns = unknown(turns, order.Known)
	}
	return contextpack.Build(order.Router, turns, contextpack.Budget{
		Tokens:       p.budget,
		Window:       p.window,
		KeepLast:     order.KeepLast,
		SystemPrompt: deps.SystemPrompt,
		Counter:      p.counter,
	})
}

// same says whether two calls have the same prompt. Counters are told apart by their names: a host's may not be comparable.
func (p packing) same(q packing) bool {
	sameCounter := p.counter.Name() == q.counter.Name()
	p.counter, q.counter = nil, nil
	return sameCounter && p == q
}

// unknown leaves out what an engine has been told. Background was no message of its conversation, so it goes along each time.
func unknown(turns []contextpack.Turn, known int) []contextpack.Turn {
	known = min(max(known, 0), len(turns))
	background := slices.DeleteFunc(slices.Clone(turns[:known]), func(t contextpack.Turn) bool { return t.Role != contextpack.RoleBackground })
	return append(background, turns[known:]...)
}

func failed(report *reporter, code messages.Code, text string, again bool) core.RunFinished {
	end := finishedAs(report, messages.OutcomeFailed)
	end.Error = &messages.Failure{Code: string(code), Message: text, Retryable: again}
	return end
}

func finishedAs(report *reporter, outcome messages.Outcome) core.RunFinished {
	return core.RunFinished{
		RunID: report.order.RunID, Attempt: report.order.Attempt, Outcome: outcome, Content: report.answer.String(),
	}
}

func reportedUsage(u inference.Usage) *messages.Usage {
	if !u.Known {
		return &messages.Usage{Source: string(messages.UsageUnknown)}
	}
	return &messages.Usage{InputTokens: &u.InputTokens, OutputTokens: &u.OutputTokens, Source: string(messages.UsageReported)}
}

// estimatedUsage is for calls that were cut before the provider could count: the prompt was sent, and bytes came.
func estimatedUsage(pack contextpack.Pack, answerBytes int) *messages.Usage {
	in, out := uint64(pack.Tokens), uint64(answerBytes+3)/4 //nolint:gosec // lengths
	return &messages.Usage{InputTokens: &in, OutputTokens: &out, Source: string(messages.UsageEstimated)}
}
