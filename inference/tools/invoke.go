package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/correx/correx-actors/messages"
)

// errTimeout is the cause of the end of a call that took too long.
var errTimeout = errors.New("the call of the tool took too long")

// invocation is one call being carried out.
type invocation struct {
	call    Call
	tool    *Tool
	log     *slog.Logger
	timeout time.Duration
	grace   time.Duration
	report  func(Progress)
}

// returned is what the function of a tool gave back.
type returned struct {
	result Result
	err    error
}

// run gives the answer when the tool returns, or when it has not within the grace time after it was told to end. Exited is
// called when it has really returned, however late.
func (v *invocation) run(ctx context.Context, exited func()) Answer {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, v.timeout, errTimeout)
	defer cancel()
	back := make(chan returned, 1)
	go func() {
		defer exited()
		// Sent by a defer: a tool may end its goroutine, and the call must end all the same.
		r := returned{err: &Failure{Type: ErrorPanic, Tool: v.call.Name}}
		defer func() { back <- r }()
		r = v.guarded(ctx)
	}()
	answer := v.await(ctx, back)
	answer.Took = max(time.Since(began), 1)
	return answer
}

func (v *invocation) await(ctx context.Context, back <-chan returned) Answer {
	select {
	case r := <-back:
		return v.answer(ctx, r)
	case <-ctx.Done():
	}
	timer := time.NewTimer(v.grace)
	defer timer.Stop()
	select {
	case r := <-back:
		return v.answer(ctx, r)
	case <-timer.C:
	}
	logLeft(ctx, v.log, v.call.Name)
	return failed(v.call, v.ended(ctx))
}

// answer of a call that returned. A result counts even if the call was told to end meanwhile: it is what was really done.
func (v *invocation) answer(ctx context.Context, r returned) Answer {
	if r.err == nil {
		return answered(v.call, r.result)
	}
	var told *Failure
	if ctx.Err() != nil && !errors.As(r.err, &told) {
		// Whatever its words are (a killed command, a closed connection), this is why.
		return failed(v.call, v.ended(ctx))
	}
	answer := failed(v.call, FailureOf(v.call.Name, r.err))
	if r.result.Text != "" {
		answer.Text, answer.Cut = cutText("failed: "+r.result.Text, ResultLimit)
	}
	return answer
}

// ended is the failure of a call whose context has ended.
func (v *invocation) ended(ctx context.Context) *Failure {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return &Failure{Type: ErrorTimeout, Tool: v.call.Name, Timeout: v.timeout}
	}
	return &Failure{Type: ErrorCancelled, Tool: v.call.Name, Reason: ReasonCancelled}
}

// guarded calls the tool. A panic in it is its failure and nobody else's (I13).
func (v *invocation) guarded(ctx context.Context) (r returned) {
	whole := false
	defer func() {
		if whole {
			return
		}
		value := recover()
		r = returned{err: &Failure{Type: ErrorPanic, Tool: v.call.Name, Exception: fmt.Sprintf("%T", value)}}
		// The value is not logged: it may quote the arguments.
		v.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "tool panicked",
			slog.String(messages.AttrTool, v.call.Name), slog.String(messages.AttrStack, string(debug.Stack())))
	}()
	result, err := v.tool.call(ctx, v.call.Arguments, v.report)
	whole = true
	return returned{result: result, err: err}
}
