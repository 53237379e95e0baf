package queue

import (
	"time"

	"github.com/correx/correx-actors/messages"
)

// Place is where a turn goes.
type Place string

// Places, as the ledger names them.
const (
	PlaceBack    Place = "back"
	PlaceFront   Place = "front"
	PlaceMerged  Place = "merged"
	PlaceOffered Place = "offered"
)

// ParsePlace reads a recorded place; anything unknown is the back.
func ParsePlace(s string) Place {
	switch p := Place(s); p {
	case PlaceFront, PlaceMerged, PlaceOffered:
		return p
	case PlaceBack:
	}
	return PlaceBack
}

// Config are the windows of the rules.
type Config struct {
	// MergeWindow: a followup that comes at most this long after the last one joins it, inclusive. Default 500 ms.
	MergeWindow time.Duration
	// Limit of waiting turns, merged parts counted, and of offered ones. Default 20.
	Limit int
}

// Activity is what the rules need to know of the session's run.
type Activity struct {
	// Busy: a run is active.
	Busy bool
	// Stoppable: the active run can be interrupted; one that is being stopped cannot.
	Stoppable bool
	// Steerable: the active run takes offers, as one that works and is not being stopped does.
	Steerable bool
}

// Placement is the rule's answer.
type Placement struct {
	Place Place
	// Into leads the entry that the turn joins (PlaceMerged).
	Into messages.TurnID
	// Interrupts: the active run is to be stopped.
	Interrupts bool
	// Mode that takes effect, after promotion and fallback.
	Mode messages.QueueMode
	// Reason for people.
	Reason string
}

// Decide says where a new turn of the given mode goes. The turn's own QueueMode is not looked at.
func Decide(q Queue, turn *messages.Turn, mode messages.QueueMode, now time.Time, run Activity, cfg Config) Placement {
	if mode == messages.QueueFollowup && turn.GetTaskResult() && run.Steerable {
		p := Decide(q, turn, messages.QueueSteer, now, run, cfg)
		p.Reason = "a task's result is promoted to steer while a run is active"
		return p
	}
	switch mode {
	case messages.QueueInterrupt:
		return interrupt(run)
	case messages.QueueSteer, messages.QueueSteerBacklog:
		if run.Steerable {
			return Placement{Place: PlaceOffered, Mode: mode, Reason: "it is offered to the active run"}
		}
		p := fallback(q, turn, mode, now, run, cfg)
		switch {
		case run.Stoppable:
			p.Reason = "the active run waits for its slot and takes no offers yet"
		case run.Busy:
			p.Reason = "the active run is being stopped and takes no offers"
		}
		return p
	case messages.QueueFollowup:
		return followup(q, turn, now, run, cfg)
	case messages.QueueCollect:
	}
	return Placement{Place: PlaceBack, Mode: messages.QueueCollect, Reason: backReason(q, run)}
}

// Full says whether the limit refuses a new turn: in all modes alike, and whatever is offered. Offers have the same limit by
// themselves: since a fallback is never refused they would be a way around it.
func Full(q Queue, place Place, cfg Config) bool {
	return q.Len() >= cfg.Limit || place == PlaceOffered && len(q.Offered) >= cfg.Limit
}

// Fallback says where a turn goes that was to steer and did not: steer as a followup, steer_backlog as collect.
func Fallback(q Queue, turn *messages.Turn, mode messages.QueueMode, now time.Time, cfg Config) Placement {
	return fallback(q, turn, mode, now, Activity{Busy: true}, cfg)
}

func fallback(q Queue, turn *messages.Turn, mode messages.QueueMode, now time.Time, run Activity, cfg Config) Placement {
	if mode == messages.QueueSteer {
		return followup(q, turn, now, run, cfg)
	}
	return Placement{Place: PlaceBack, Mode: messages.QueueCollect, Reason: backReason(q, run)}
}

func interrupt(run Activity) Placement {
	p := Placement{Place: PlaceFront, Mode: messages.QueueInterrupt, Reason: "it goes first"}
	switch {
	case run.Stoppable:
		p.Interrupts, p.Reason = true, "it stops the active run and goes first"
	case run.Busy:
		p.Reason = "it goes first; the active run is being stopped already"
	}
	return p
}

// followup joins the tail of the queue when that is a followup of the same kind and recent.
func followup(q Queue, turn *messages.Turn, now time.Time, run Activity, cfg Config) Placement {
	if len(q.Waiting) > 0 {
		last := q.Waiting[len(q.Waiting)-1]
		tail := last.Lead()
		if Family(tail) == messages.QueueFollowup && mergeable(tail, turn) && now.Sub(last.Joined) <= cfg.MergeWindow {
			return Placement{
				Place: PlaceMerged, Into: tail.GetTurnId(), Mode: messages.QueueFollowup,
				Reason: "it joins the followup that waits",
			}
		}
	}
	return Placement{Place: PlaceBack, Mode: messages.QueueFollowup, Reason: backReason(q, run)}
}

func backReason(q Queue, run Activity) string {
	if len(q.Waiting) == 0 && !run.Busy {
		return "nothing is before it"
	}
	return "it waits its turn"
}

// mergeable: nothing is merged across senders, chat modes or resume tokens, and a task's result never.
func mergeable(a, b *messages.Turn) bool {
	return !a.GetTaskResult() && !b.GetTaskResult() && a.GetSender() == b.GetSender() && a.GetMode() == b.GetMode() &&
		sameToken(a.GetResume(), b.GetResume())
}

func sameToken(a, b *messages.ResumeToken) bool {
	return a.GetEngine() == b.GetEngine() && a.GetToken() == b.GetToken()
}

// Family is the mode by which a waiting turn queues: a steer that fell back is a followup, a steer_backlog is a collect.
func Family(turn *messages.Turn) messages.QueueMode {
	switch mode := messages.QueueMode(turn.GetQueueMode()); mode {
	case messages.QueueSteer, messages.QueueFollowup:
		return messages.QueueFollowup
	case messages.QueueSteerBacklog, messages.QueueCollect, messages.QueueInterrupt:
		if mode == messages.QueueSteerBacklog {
			return messages.QueueCollect
		}
		return mode
	}
	return messages.QueueCollect
}
