package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
func attempt(ctx context.Context, deps *Deps, order core.RunOrder, report *reporter) (end core.RunFinished) {
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
	run := &attempts{deps: deps, order: order, report: report, log: log}
	return run.run(ctx)
}

// Pack builds the context pack of a run's first call; for whoever wants to look at it without a run as well.
func Pack(deps *Deps, order core.RunOrder) contextpack.Pack {
	route, _ := deps.Router.Route(context.Background(), order.Model) // without one no call is made
	return packingFor(deps, order, route, false).build(deps, order)
}

// packing is what of a call its pack depends on.
type packing struct {
	model          string
	window, budget int
}

func packingFor(deps *Deps, order core.RunOrder, route inference.Route, halved bool) packing {
	as := packing{
		model: cmp.Or(route.Model, order.Model), window: cmp.Or(route.Window, deps.Window), budget: order.TokenBudget,
	}
	if halved {
		as.budget /= 2
	}
	return as
}

func (p packing) build(deps *Deps, order core.RunOrder) contextpack.Pack {
	return contextpack.Build(order.Router, order.Turns, contextpack.Budget{
		Tokens:       p.budget,
		Window:       p.window,
		KeepLast:     order.KeepLast,
		SystemPrompt: deps.SystemPrompt,
		Counter:      deps.Counter(p.model),
	})
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
