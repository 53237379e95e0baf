package runner

import (
	"context"
	"sync"
	"time"

	"github.com/correx/correx-actors/inference"
)

// silence ends a call that shows no life for too long: first until the first activity, then between two.
type silence struct {
	mu     sync.Mutex
	timer  *time.Timer
	limits Limits
	cancel context.CancelCauseFunc
	begun  bool
}

func watchSilence(ctx context.Context, limits Limits) (context.Context, *silence) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &silence{limits: limits, cancel: cancel}
	s.timer = time.AfterFunc(limits.FirstToken, s.over)
	return ctx, s
}

// activity resets the clock: any byte counts.
func (s *silence) activity() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	s.timer.Reset(s.limits.Token)
}

func (s *silence) over() {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if begun {
		s.cancel(&timeoutError{"the provider fell silent: stopped", s.limits.Token, inference.LimitToken})
		return
	}
	s.cancel(&timeoutError{"the provider did not begin to answer: stopped", s.limits.FirstToken, inference.LimitFirstToken})
}

func (s *silence) stop() {
	s.timer.Stop()
	s.cancel(ErrStopped)
}
