package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// attempts takes one run over the calls that its plan wants, until one of them answers or the plan stops.
type attempts struct {
	deps   *Deps
	order  core.RunOrder
	report *reporter
	log    *slog.Logger
	plan   inference.Plan

	pack     contextpack.Pack
	packedAs packing
	// halved: the provider found the prompt too long.
	halved bool
	// first is the provider that the run tries first: the one whose conversation it is.
	first string
	// afresh: the token that the order has leads nowhere any more; why is told before the next call.
	afresh bool

	// used by the calls so far.
	used []*messages.Usage
	// visible: the last call showed text. Kept is the newest text that was taken back; it is better than none.
	visible bool
	kept    string
	// waited is the reason of the last wait that was told: one that only goes on is not told again.
	waited string
	// end of the last call that answered, and the tools that it called.
	end   *core.RunFinished
	asked []inference.ToolCall
	tools *toolRun
	// base is the text of the rounds before: a further attempt of this one keeps it.
	base string
}

// run is the run's whole course. Its limit is that of the whole run: waits and further calls share it.
func (a *attempts) run(ctx context.Context) core.RunFinished {
	whole := &timeoutError{"the run took too long: stopped", a.deps.Limits.Whole, inference.LimitWhole}
	ctx, stop := context.WithTimeoutCause(ctx, whole.after, whole)
	defer stop()
	first, err := a.deps.First(ctx, a.order.Model, a.order.Engine)
	if err != nil {
		return a.failed(ctx, err)
	}
	a.first = first.Provider.Name()
	a.repack(packingFor(a.deps, a.order, first, false, false))
	for {
		end := a.round(ctx)
		if len(a.asked) == 0 {
			a.tools.steer.close()
			return end
		}
		if most := a.deps.Tools.MaxRounds; len(a.tools.rounds) >= most {
			return a.closed(failed(a.report, messages.CodeToolRoundsExceeded, fmt.Sprintf(
				"the model has called tools %d times, which is the limit", most), false))
		}
		asked, text := a.asked, a.report.answer.String()[len(a.base):]
		a.asked, a.end, a.visible, a.base = nil, nil, false, a.report.answer.String()
		if err := a.tools.carryOut(ctx, text, asked); err != nil {
			return a.failed(ctx, err)
		}
	}
}

// round takes the run over the calls of one plan, until the model has answered or called tools (asked), or nobody can.
func (a *attempts) round(ctx context.Context) core.RunFinished {
	plan, err := inference.PlanOf(ctx, a.deps.Router, inference.Ask{
		Model: a.order.Model, Engine: a.order.Engine, Tokens: a.promptTokens(), Replace: true,
	})
	if err != nil {
		return a.failed(ctx, err)
	}
	a.plan = plan
	defer plan.Close()
	for {
		switch step := plan.Next().(type) {
		case inference.Wait:
			a.between(ctx, step.Reason, step.For)
			if err := sleep(ctx, step.For); err != nil {
				return a.failed(ctx, err)
			}
		case inference.Call:
			a.between(ctx, step.Reason, 0)
			if end, ok := a.prepare(step); !ok {
				return end
			}
			a.call(ctx, step)
		case inference.Stop:
			if step.Err == nil && a.end != nil {
				return a.closed(*a.end)
			}
			return a.failed(ctx, step.Err)
		}
	}
}

// between tells what comes after a call. If that one showed text, a new attempt replaces it: from here on it is the attempt.
func (a *attempts) between(ctx context.Context, reason string, wait time.Duration) {
	a.log.LogAttrs(ctx, slog.LevelDebug, "run goes on", slog.String(messages.AttrReason, reason),
		slog.Int64(messages.AttrDuration, wait.Milliseconds()))
	switch at := a.report.order; {
	case a.visible:
		a.kept = a.report.answer.String()
		a.report.restart(reason)
		if a.base != "" {
			a.report.text(a.base)
		}
	case (wait > 0 || a.afresh) && reason != a.waited:
		a.report.tell(core.RunPhased{RunID: at.RunID, Attempt: at.Attempt, Reason: reason})
	}
	a.visible, a.waited = false, reason
}

// prepare builds the prompt for a call; the run ends if it cannot fit.
func (a *attempts) prepare(step inference.Call) (core.RunFinished, bool) {
	a.halved = a.halved || step.Halve
	if step.Halve && a.packedAs.resume != "" { // what is too long is the engine's conversation
		a.afresh = true
	}
	if as := packingFor(a.deps, a.order, step.Route, a.halved, a.afresh); !as.same(a.packedAs) {
		a.repack(as)
	}
	if window := a.packedAs.window; a.pack.Overflow || window > 0 && len(a.tools.rounds) > 0 && a.promptTokens() > window {
		return a.closed(failed(a.report, messages.CodeContextOverflow, fmt.Sprintf(
			"the prompt needs %d tokens at least, the model's window has room for %d", a.promptTokens(), window), false)), false
	}
	return core.RunFinished{}, true
}

// promptTokens is about what the next call sends: what the tools gave is counted by its bytes.
func (a *attempts) promptTokens() int { return a.pack.Tokens + (a.tools.bytes+3)/4 }

func (a *attempts) repack(as packing) { a.pack, a.packedAs = as.build(a.deps, a.order), as }

// call makes one call and tells the plan how it ended.
func (a *attempts) call(ctx context.Context, step inference.Call) {
	a.log.LogAttrs(ctx, slog.LevelDebug, "run routed", slog.String(messages.AttrProvider, step.Provider.Name()),
		slog.String(messages.AttrModel, step.Model), slog.String(messages.AttrReason, step.Reason))
	watched, watch := watchSilence(ctx, a.deps.Limits)
	defer watch.stop()
	a.report.phase(messages.PhaseStartingEngine)
	completion, err := step.Provider.Infer(watched, inference.Request{
		RunID: a.order.RunID, SessionID: string(a.order.Key.Session), Model: step.Model, Pack: a.pack,
		MaxTokens: step.MaxOutput, Resume: a.packedAs.resume,
		Tools: a.tools.specs(step.Provider), Rounds: a.tools.rounds,
	}, func(e inference.Event) error {
		watch.activity()
		delta, ok := e.(inference.Delta)
		if !ok || delta.Text == "" {
			return nil
		}
		if a.report.answer.Len()+len(delta.Text) > a.deps.Limits.MaxAnswerBytes {
			return errAnswerTooLong
		}
		if !a.visible {
			a.visible = true
			a.plan.Begun()
		}
		a.report.text(delta.Text)
		return nil
	})
	cut := errors.Is(err, errAnswerTooLong)
	if cut { // it has answered, and more than is wanted
		completion.FinishReason, err = inference.FinishLength, nil
	}
	err = judged(watched, step.Provider.Name(), err)
	a.plan.Ended(inference.End{Err: err, Visible: a.visible, Usage: completion.Usage})
	a.count(completion.Usage, err, cut)
	a.afresh = a.afresh || errors.Is(err, inference.ErrUnknownResume)
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelInfo, "model call failed", slog.String(messages.AttrProvider, step.Provider.Name()),
			slog.String(messages.AttrCode, string(inference.KindOf(err))))
		return
	}
	if a.tools.offered != nil {
		a.asked = completion.Calls
	}
	end := finishedAs(a.report, messages.OutcomeCompleted)
	end.FinishReason = completion.FinishReason
	if completion.FinishReason == inference.FinishLength {
		end.Outcome = messages.OutcomeIncomplete
	}
	end.Resume = a.token(step.Provider.Name(), completion)
	a.end = &end
}

// token is what a later run goes on with. One of a fallback is none: its engine would take over the conversation for good, and
// would know less of it. Nor is one of a conversation that has filled the window: the next run begins another, with what the
// session remembers.
func (a *attempts) token(provider string, done inference.Completion) *messages.ResumeToken {
	if done.Resume == "" || provider != a.first {
		return nil
	}
	used := done.Usage.InputTokens + done.Usage.OutputTokens
	if a.packedAs.window > 0 && used > uint64(a.packedAs.window) { //nolint:gosec // positive
		a.afresh = true
		return nil
	}
	return &messages.ResumeToken{Engine: provider, Token: done.Resume}
}

// judged makes an error of a call what the plan must know: whether our own context ended it, and by which limit, is told by that
// context alone and never by the error.
func judged(ctx context.Context, provider string, err error) error {
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	var timeout *timeoutError
	switch {
	case errors.As(cause, &timeout):
		return &inference.Error{
			Kind: inference.KindTimeout, Limit: timeout.limit, Provider: provider, Message: timeout.Error(), Err: err,
		}
	case cause != nil:
		return inference.Canceled(ctx, provider)
	case inference.KindOf(err) == inference.KindCanceled:
		return &inference.Error{
			Kind: inference.KindProvider, Provider: provider, Message: "the provider gave the call up", Err: err,
		}
	}
	return err
}

// failed says how a run ends that got no answer.
func (a *attempts) failed(ctx context.Context, err error) core.RunFinished {
	cause := context.Cause(ctx)
	var timeout *timeoutError
	if cause != nil && !errors.As(cause, &timeout) {
		return a.closed(finishedAs(a.report, messages.OutcomeCancelled))
	}
	if timeout != nil && inference.KindOf(err) != inference.KindTimeout { // it was over during a wait
		err = &inference.Error{Kind: inference.KindTimeout, Limit: timeout.limit, Message: timeout.Error(), Err: err}
	}
	end := failed(a.report, messages.CodeProviderError, "the call to the model failed", true)
	if failure := inference.FailureOf(err); failure != nil {
		end.Error = failure
	}
	if inference.KindOf(err) == inference.KindTruncated && a.report.answer.Len() > 0 {
		end.Outcome = messages.OutcomeIncomplete
	}
	return a.closed(end)
}

// closed completes the end: what all calls used, and the text that was taken back for one that then never came.
func (a *attempts) closed(end core.RunFinished) core.RunFinished {
	end.Usage, end.ResumeLost = inference.SumUsage(a.used...), a.afresh
	if end.Outcome != messages.OutcomeCompleted && end.Content == "" && a.kept != "" {
		end.Content = a.kept
		if end.Outcome == messages.OutcomeFailed {
			end.Outcome = messages.OutcomeIncomplete
		}
	}
	return end
}

// count notes what a call used. One that the provider refused before it read the prompt used nothing.
func (a *attempts) count(usage inference.Usage, err error, cut bool) {
	switch shown := a.report.answer.Len(); {
	case usage.Known || err == nil && !cut:
		a.used = append(a.used, reportedUsage(usage))
	case shown > 0:
		a.used = append(a.used, estimatedUsage(a.pack, shown))
	case !refused(inference.KindOf(err)):
		a.used = append(a.used, &messages.Usage{Source: string(messages.UsageUnknown)})
	}
}

// refused says whether a call without text was turned away, which nobody bills.
func refused(kind inference.Kind) bool {
	switch kind {
	case inference.KindRateLimited, inference.KindOverloaded, inference.KindAuth, inference.KindQuota, inference.KindBadRequest,
		inference.KindContextOverflow, inference.KindUnavailable, inference.KindConfig:
		return true
	case inference.KindCanceled, inference.KindTimeout, inference.KindContentFiltered, inference.KindTruncated, inference.KindProvider:
		return false
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
