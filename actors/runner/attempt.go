package runner

import (
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
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s after %s", e.what, e.after) }

// errAnswerTooLong stops a call whose answer grows beyond its limit.
var errAnswerTooLong = errors.New("answer is too long")

// attempt makes one call and says how it ended. A panic of a provider ends the run, not the process (I13).
func attempt(ctx context.Context, deps *Deps, order core.RunOrder, report *reporter) (end core.RunFinished) {
	begin := time.Now()
	log := deps.Log.With(
		slog.String(messages.AttrSession, string(order.Key.Session)),
		slog.String(messages.AttrRun, order.RunID), slog.Uint64(messages.AttrAttempt, uint64(order.Attempt)))
	defer func() {
		if reason := recover(); reason != nil {
			log.LogAttrs(ctx, slog.LevelError, "run panicked",
				slog.Any(messages.AttrReason, reason), slog.String(messages.AttrStack, string(debug.Stack())))
			end = failed(order, report, messages.CodeInternal, "the run failed inside the server", false)
		}
		log.LogAttrs(ctx, slog.LevelInfo, "run ended", slog.String(messages.AttrOutcome, string(end.Outcome)),
			slog.String(messages.AttrCode, end.Error.GetCode()), slog.Int(messages.AttrBytes, len(end.Content)),
			slog.Int64(messages.AttrDuration, time.Since(begin).Milliseconds()))
	}()
	pack := Pack(deps, order)
	if pack.Overflow {
		return failed(order, report, messages.CodeContextOverflow, fmt.Sprintf(
			"the prompt needs %d tokens at least, the model's window has %d", pack.Tokens, deps.Window), false)
	}
	route, err := deps.Router.Route(ctx, order.Model)
	if err != nil {
		return callFailed(ctx, order, report, pack, err)
	}
	log.LogAttrs(ctx, slog.LevelDebug, "run routed", slog.String(messages.AttrProvider, route.Provider.Name()),
		slog.String(messages.AttrModel, route.Model), slog.String(messages.AttrReason, route.Reason))
	return call(ctx, deps, order, report, pack, route)
}

// Pack builds the context pack of a run; for whoever wants to look at it without a run as well.
func Pack(deps *Deps, order core.RunOrder) contextpack.Pack {
	return contextpack.Build(order.Router, order.Turns, contextpack.Budget{
		Tokens:       order.TokenBudget,
		Window:       deps.Window,
		KeepLast:     order.KeepLast,
		SystemPrompt: deps.SystemPrompt,
		Counter:      deps.Counter(order.Model),
	})
}

func call(
	ctx context.Context, deps *Deps, order core.RunOrder, report *reporter, pack contextpack.Pack, route inference.Route,
) core.RunFinished {
	ctx, stop := context.WithTimeoutCause(ctx, deps.Limits.Whole, &timeoutError{"the run took too long: stopped", deps.Limits.Whole})
	defer stop()
	ctx, watch := watchSilence(ctx, deps.Limits)
	defer watch.stop()
	report.phase(messages.PhaseStartingEngine)
	completion, err := route.Provider.Infer(ctx, inference.Request{
		RunID: order.RunID, SessionID: string(order.Key.Session), Model: route.Model, Pack: pack,
	}, func(e inference.Event) error {
		watch.activity()
		delta, ok := e.(inference.Delta)
		if !ok || delta.Text == "" {
			return nil
		}
		if report.answer.Len()+len(delta.Text) > deps.Limits.MaxAnswerBytes {
			return errAnswerTooLong
		}
		report.text(delta.Text)
		return nil
	})
	if err != nil {
		return callFailed(ctx, order, report, pack, err)
	}
	end := finishedAs(order, report, messages.OutcomeCompleted)
	end.FinishReason = completion.FinishReason
	end.Usage = reportedUsage(completion.Usage)
	if completion.FinishReason == inference.FinishLength {
		end.Outcome = messages.OutcomeIncomplete
	}
	return end
}

// callFailed says how a call ended that did not complete. Whether it was canceled is told by our own context, never by the
// error's text.
func callFailed(
	ctx context.Context, order core.RunOrder, report *reporter, pack contextpack.Pack, err error,
) core.RunFinished {
	usage := estimatedUsage(pack, report.answer.Len())
	cause := context.Cause(ctx)
	var timeout *timeoutError
	switch {
	case errors.Is(err, errAnswerTooLong):
		end := finishedAs(order, report, messages.OutcomeIncomplete)
		end.FinishReason, end.Usage = inference.FinishLength, usage
		return end
	case errors.As(cause, &timeout):
		end := failed(order, report, messages.CodeProviderTimeout, timeout.Error(), true)
		end.Usage = usage
		return end
	case cause != nil:
		end := finishedAs(order, report, messages.OutcomeCancelled)
		end.Usage = usage
		return end
	}
	end := failed(order, report, messages.CodeProviderError, "the provider gave the call up", true)
	end.Usage = usage
	if failure := inference.FailureOf(err); failure != nil {
		end.Error = failure
	}
	if inference.KindOf(err) == inference.KindTruncated && report.answer.Len() > 0 {
		end.Outcome = messages.OutcomeIncomplete
	}
	return end
}

func failed(order core.RunOrder, report *reporter, code messages.Code, text string, again bool) core.RunFinished {
	end := finishedAs(order, report, messages.OutcomeFailed)
	end.Error = &messages.Failure{Code: string(code), Message: text, Retryable: again}
	return end
}

func finishedAs(order core.RunOrder, report *reporter, outcome messages.Outcome) core.RunFinished {
	return core.RunFinished{
		RunID: order.RunID, Attempt: order.Attempt, Outcome: outcome, Content: report.answer.String(),
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
	if answerBytes == 0 {
		return &messages.Usage{Source: string(messages.UsageUnknown)}
	}
	in, out := uint64(pack.Tokens), uint64(answerBytes+3)/4 //nolint:gosec // lengths
	return &messages.Usage{InputTokens: &in, OutputTokens: &out, Source: string(messages.UsageEstimated)}
}
