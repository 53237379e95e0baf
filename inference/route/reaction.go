package route

import (
	"errors"

	"github.com/correx/correx-actors/inference"
)

// reaction is what a failure leads to.
type reaction string

const (
	// giveUp: the same request fails everywhere, or nobody wants it any more.
	giveUp reaction = "give_up"
	// shorten: the prompt must be shorter, once; another provider would only refuse it too.
	shorten reaction = "shorten"
	// goElsewhere: this provider will not serve us however often it is asked.
	goElsewhere reaction = "go_elsewhere"
	// startAnew: the provider does not know the conversation; it is called at once without the token, once.
	startAnew reaction = "start_anew"
	// tryAgain: the same call may succeed later.
	tryAgain reaction = "try_again"
)

// reactionTo maps each kind. A run that took too long as a whole has no time left for another call.
func reactionTo(e *inference.Error) reaction {
	if errors.Is(e, inference.ErrUnknownResume) {
		return startAnew
	}
	switch e.Kind {
	case inference.KindCanceled, inference.KindBadRequest, inference.KindContentFiltered:
		return giveUp
	case inference.KindContextOverflow:
		return shorten
	case inference.KindAuth, inference.KindQuota, inference.KindConfig:
		return goElsewhere
	case inference.KindTimeout:
		if e.Limit == inference.LimitWhole {
			return giveUp
		}
		return tryAgain
	case inference.KindRateLimited, inference.KindOverloaded, inference.KindTruncated, inference.KindUnavailable,
		inference.KindProvider:
		return tryAgain
	}
	return giveUp
}

// counted says whether a breaker counts a failure: the provider's own faults alone. A wrong key or a wrong request says
// nothing about its health, a limit that it holds us to is its health.
func counted(e *inference.Error) bool {
	switch e.Kind {
	case inference.KindTimeout:
		return e.Limit != inference.LimitWhole
	case inference.KindOverloaded, inference.KindTruncated, inference.KindUnavailable, inference.KindProvider:
		return true
	case inference.KindCanceled, inference.KindRateLimited, inference.KindAuth, inference.KindQuota, inference.KindBadRequest,
		inference.KindContextOverflow, inference.KindContentFiltered, inference.KindConfig:
		return false
	}
	return false
}
