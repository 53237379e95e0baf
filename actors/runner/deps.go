// Package runner holds the actor of one run: it builds the context pack, calls the providers as its plan says and reports what comes
// back. It lives as a child of its session.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// Deps is what every runner of a process is made with.
type Deps struct {
	Kernel *kernel.System
	Router inference.Router
	// Counter gives the token counter of a model.
	Counter func(model string) contextpack.TokenCounter
	// SystemPrompt of the L0 layer; "" = the package's default.
	SystemPrompt string
	// Window in tokens of models of which the router knows none; 0 = unknown.
	Window int
	// AnswerReserve is what a prompt leaves free in the window for the answer, in tokens, where the model has no limit of its own.
	AnswerReserve int
	Limits        Limits
	// Tools that models may call; nil = none.
	Tools *Toolbox
	Log   *slog.Logger
}

// Limits bound a run. Any byte of the provider is activity.
type Limits struct {
	// FirstToken bounds the wait for the first activity after a call was sent. Default 2 min.
	FirstToken time.Duration
	// Token bounds the silence between two activities. Default 1 min.
	Token time.Duration
	// Whole bounds the run with all its calls and waits. Default 30 min.
	Whole time.Duration
	// MaxAnswerBytes bounds the answer; beyond it the run ends incomplete. Default 4 MiB.
	MaxAnswerBytes int
}

// DefaultLimits gives the documented defaults.
func DefaultLimits() Limits {
	return Limits{FirstToken: 2 * time.Minute, Token: time.Minute, Whole: 30 * time.Minute, MaxAnswerBytes: 4 << 20}
}

// First gives the route that a run would try first: with an engine that keeps its conversation, that one's.
func (d *Deps) First(ctx context.Context, model, engine string) (inference.Route, error) {
	return inference.FirstOf(ctx, d.Router, inference.Ask{Model: model, Engine: engine})
}

// Validate reports what is missing or cannot be.
func (d Deps) Validate() error {
	var errs []error
	if d.Kernel == nil || d.Router == nil || d.Counter == nil || d.Log == nil {
		errs = append(errs, errors.New("runner: kernel, router, counter and log are required"))
	}
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{
		{"runs.first_token_timeout", d.Limits.FirstToken},
		{"runs.token_timeout", d.Limits.Token},
		{"runs.timeout", d.Limits.Whole},
	} {
		if limit.value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %s, want more than 0", limit.name, limit.value))
		}
	}
	if d.AnswerReserve < 0 {
		errs = append(errs, fmt.Errorf("conversation.answer_reserve is %d, want at least 0", d.AnswerReserve))
	}
	if d.Limits.MaxAnswerBytes <= 0 {
		errs = append(errs, fmt.Errorf("runs.max_answer_bytes is %d, want more than 0", d.Limits.MaxAnswerBytes))
	}
	return errors.Join(errs...)
}
