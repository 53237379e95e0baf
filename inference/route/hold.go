package route

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// longestHold bounds what one answer holds against others: a provider may be wrong about itself, and asking costs one call.
const longestHold = time.Minute

// holds are the models of a provider that others leave alone since the provider asked for it. By model: the limits of providers
// are, and who chooses a model that is refused must not take the others away. Safe for concurrent use.
type holds struct {
	provider string
	log      *slog.Logger

	mu      sync.Mutex
	byModel map[string]*hold
}

type hold struct {
	// since is when it was asked for, until when it ends.
	since, until time.Time
	// trial: it is shorter than was asked for, so what ends it is an answer; until then one call at a time tries.
	trial bool
}

// holding says whether a failure holds others back. A wait that comes with a failure of the request, its content or its key is
// no affair of others.
func holding(e *inference.Error) bool {
	switch e.Kind {
	case inference.KindRateLimited, inference.KindOverloaded, inference.KindUnavailable:
		return e.RetryAfter > 0
	case inference.KindCanceled, inference.KindTimeout, inference.KindAuth, inference.KindQuota, inference.KindBadRequest,
		inference.KindContextOverflow, inference.KindContentFiltered, inference.KindTruncated, inference.KindConfig,
		inference.KindProvider:
		return false
	}
	return false
}

// ask notes that a model is to be left alone, and tells the log when that begins.
func (h *holds) ask(now time.Time, model string, e *inference.Error) {
	length := min(e.RetryAfter, longestHold)
	h.mu.Lock()
	for name, old := range h.byModel { // clients may name models: what is over must not stay
		if !old.trial && !now.Before(old.until) || now.Sub(old.until) > longestHold {
			delete(h.byModel, name)
		}
	}
	was := h.byModel[model]
	if was == nil {
		was = &hold{}
		h.byModel[model] = was
	}
	fresh := was.since.IsZero()
	was.since = now
	if until := now.Add(length); until.After(was.until) {
		was.until, was.trial = until, e.RetryAfter > longestHold
	}
	h.mu.Unlock()
	if fresh {
		h.log.LogAttrs(context.Background(), slog.LevelWarn, "provider asked to be called more slowly",
			slog.String(messages.AttrProvider, h.provider), slog.String(messages.AttrModel, model),
			slog.Int64(messages.AttrDuration, length.Milliseconds()),
			slog.String(messages.AttrReason, fmt.Sprintf("%s, it asks for %s", e.Kind, told(e.RetryAfter))))
	}
}

// left tells for how long a model is to be left alone; 0 = it is not.
func (h *holds) left(now time.Time, model string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.byModel[model]; held != nil {
		return max(held.until.Sub(now), 0)
	}
	return 0
}

// try says whether a call may be made now; after a hold that was cut short it keeps the others away for a moment.
func (h *holds) try(now time.Time, model string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.byModel[model]
	if held == nil {
		return true
	}
	if now.Before(held.until) {
		return false
	}
	if held.trial {
		held.until = now.Add(probing)
	}
	return true
}

// answered ends a hold by an answer to a call that began after the hold did.
func (h *holds) answered(model string, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.byModel[model]; held != nil && began.After(held.since) {
		delete(h.byModel, model)
	}
}
