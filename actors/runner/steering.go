package runner

import (
	"context"
	"sync"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// ReasonEnding is why a run refuses an offer when it makes no further call.
const ReasonEnding = "the run is ending"

// steering is what the runner's actor and its goroutine share: turns that were offered and accepted, and the session's leaves.
type steering struct {
	report *reporter
	// launched is the leave to start a batch of tools.
	launched chan struct{}
	// leaves are the session's words on turns that the goroutine asks to put in.
	leaves chan leave

	mu sync.Mutex
	// open: the run has boundaries, and may come to one more.
	open     bool
	accepted []Offer
}

// leave is the session's word: put the turn's text in, or not.
type leave struct {
	turn messages.TurnID
	in   bool
}

func newSteering(report *reporter, open bool) *steering {
	return &steering{report: report, open: open, launched: make(chan struct{}, 1), leaves: make(chan leave, 16)}
}

// offer accepts a turn, or says why not.
func (s *steering) offer(o Offer, boundless bool) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case boundless:
		return ReasonNoBoundary
	case !s.open:
		return ReasonEnding
	}
	s.accepted = append(s.accepted, o)
	return ""
}

// close refuses later offers; what was accepted and not put in goes back to the queue by the run's end.
func (s *steering) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
}

func (s *steering) take() []Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.accepted
	s.accepted = nil
	return taken
}

// boundary gives the texts that are to be put before the model call of this number, each after the session has recorded it.
func (s *steering) boundary(ctx context.Context, call int) (said []string) {
	for _, o := range s.take() {
		at := s.report.place()
		s.report.tell(core.SteerAsked{RunID: at.RunID, Attempt: at.Attempt, TurnID: o.TurnID, BeforeCall: uint32(call)}) //nolint:gosec // small
		if s.granted(ctx, o.TurnID) {
			said = append(said, o.Text)
		}
	}
	return said
}

func (s *steering) granted(ctx context.Context, turn messages.TurnID) bool {
	for {
		select {
		case l := <-s.leaves:
			if l.turn == turn {
				return l.in
			}
		case <-ctx.Done():
			return false
		}
	}
}
