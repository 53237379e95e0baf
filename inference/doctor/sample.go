package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

// sample is one call and what was seen of it.
type sample struct {
	openai.Inspection
	flow   flow
	deltas int
	bytes  int
	// first is when the first sign of an answer was here, spread how long it was from the first delta to the last.
	first, spread, took time.Duration
	err                 error
}

// call makes one and keeps its times. Each, if not nil, is told of every delta and may end the call.
func (e *exam) call(ctx context.Context, trial openai.Trial, each func() error) sample {
	trial.Model = e.model
	trial.NoUsage = trial.NoUsage || e.bare
	return e.callModel(ctx, e.provider, trial, each)
}

func (e *exam) callModel(ctx context.Context, provider *openai.Provider, trial openai.Trial, each func() error) sample {
	var s sample
	var firstDelta time.Time
	started := time.Now()
	s.Inspection, s.err = provider.Inspect(ctx, trial, func(event inference.Event) error {
		switch event := event.(type) {
		case inference.Connected:
			return nil
		case inference.Activity:
			// A comment is life, but no sign of an answer: the driver tells no difference, the tap does.
			return nil
		case inference.Delta:
			if s.deltas++; s.deltas == 1 {
				firstDelta = time.Now()
				s.first = firstDelta.Sub(started)
			}
			s.bytes += len(event.Text)
			s.spread = time.Since(firstDelta)
		}
		if each != nil {
			return each()
		}
		return nil
	})
	s.took = time.Since(started)
	s.flow = e.wire.flow()
	if s.deltas == 0 && !s.flow.first.IsZero() && !s.flow.first.Before(started) {
		s.first = s.flow.first.Sub(started)
	}
	return s
}

// keep counts a call that was answered among those whose times are reported.
func (e *exam) keep(s sample) {
	e.answers++
	if s.first > 0 {
		e.first = append(e.first, s.first)
	}
	e.silence = max(e.silence, s.flow.silence)
	e.comments += s.flow.comments
}

// cutShort says whether an answer ended at its limit of tokens.
func (s sample) cutShort() bool { return s.FinishReason == inference.FinishLength }

// streamed says whether an answer of some length came in pieces: not as one document, and not all at once after a wait.
func (s sample) streamed() bool {
	const (
		few   = 4
		quick = time.Second / 2
	)
	return s.deltas <= few || s.took < quick || s.flow.reads > 2 && s.spread > s.took/50
}

func isStream(contentType string) bool { return strings.HasPrefix(contentType, "text/event-stream") }
