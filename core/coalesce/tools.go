package coalesce

import (
	"slices"
	"time"
)

// maxGone is how many ids are remembered of actions that had to make room.
const maxGone = 128

// Tools is the status of the actions of a run: the newest state of each, published as a whole when it stands still or has waited
// long enough, and only if it differs from what was published last. It tells no time that has gone by: a status that only says
// that a second more has passed would never be the same twice.
//
// The zero value is a status without actions.
type Tools struct {
	attempt uint32
	// actions in the order in which they began. Never changed in place.
	actions []Action
	// omitted counts the actions that had to make room; the ids of the newest of them are gone, so that what is told of them
	// later does not bring them back as new ones.
	omitted int
	gone    []string
	// published last; nil before.
	published *Status
	pace      pace
	ended     bool
}

// Status is the whole status of a run's tools. It replaces the one before. The caller does not change it.
type Status struct {
	// Actions in the order in which they began.
	Actions []Action
	// Omitted counts older ones that are not kept any more.
	Omitted int
	// Final: none follows in this attempt, and no action is open.
	Final bool
}

// ToolStep is what an input asks of the caller. The zero value asks for nothing.
type ToolStep struct {
	// Status to publish, nil for none.
	Status *Status
	// Timer to arm.
	Timer Timer
}

// Attempt begins anew if n is higher than the attempt so far.
func (t Tools) Attempt(n uint32) Tools {
	if n <= t.attempt {
		return t
	}
	return Tools{attempt: n, pace: t.pace.reset()}
}

// Action takes the newest state of an action. What cannot be shown, or says nothing new, asks for nothing.
func (t Tools) Action(cfg Config, action Action, now time.Time) (Tools, ToolStep) {
	action, shown := action.clean()
	if t.ended || !shown {
		return t, ToolStep{}
	}
	next, changed := t.put(action)
	if !changed {
		return t, ToolStep{}
	}
	next.makeRoom(cfg.ToolActions)
	next.pace = next.pace.touch(now)
	return next.publish(cfg, now)
}

// put gives the status with the action in it, and says whether that is another one.
func (t Tools) put(action Action) (Tools, bool) {
	at := slices.IndexFunc(t.actions, func(a Action) bool { return a.ID == action.ID })
	if at < 0 && action.ChildRun != "" {
		// The same work told by two sources, the parent's own report and that of the run that does it, is one action.
		at = slices.IndexFunc(t.actions, func(a Action) bool {
			return a.ChildRun == action.ChildRun && a.Parent == action.Parent && a.Kind == action.Kind && a.Title == action.Title
		})
	}
	if at < 0 {
		if slices.Contains(t.gone, action.ID) && action.Phase != PhaseStarted {
			return t, false
		}
		t.actions = append(slices.Clip(t.actions), action)
		return t, true
	}
	old := t.actions[at]
	action.ID = old.ID
	// An update that comes behind the end is late. A start is not: the id is used once more.
	if old.Phase == PhaseCompleted && action.Phase == PhaseUpdated || old.equal(action) {
		return t, false
	}
	t.actions = slices.Clone(t.actions)
	t.actions[at] = action
	return t, true
}

// makeRoom drops actions until at most limit are left: completed ones first, the oldest first.
func (t *Tools) makeRoom(limit int) {
	for len(t.actions) > max(limit, 1) {
		at := max(slices.IndexFunc(t.actions, func(a Action) bool { return a.Phase == PhaseCompleted }), 0)
		gone := append(slices.Clip(t.gone), t.actions[at].ID)
		t.gone = gone[max(len(gone)-maxGone, 0):]
		t.actions = slices.Delete(slices.Clone(t.actions), at, at+1)
		t.omitted++
	}
}

// Timer takes a timer that was asked for. One of another generation is stale and does nothing.
func (t Tools) Timer(cfg Config, generation uint64, now time.Time) (Tools, ToolStep) {
	var due bool
	if t.pace, due = t.pace.fired(generation); !due {
		return t, ToolStep{}
	}
	return t.publish(cfg, now)
}

// publish gives what waits if its time has come, and otherwise sees to a timer.
func (t Tools) publish(cfg Config, now time.Time) (Tools, ToolStep) {
	left := t.pace.left(now, cfg.ToolIdle, cfg.ToolLatency)
	if left <= 0 {
		return t.Flush()
	}
	var step ToolStep
	t.pace, step.Timer = t.pace.arm(left)
	return t, step
}

// Flush publishes the status at once, if it differs from what was published last.
func (t Tools) Flush() (Tools, ToolStep) {
	if t.ended {
		return t, ToolStep{}
	}
	t.pace = t.pace.rest()
	return t.tell(Status{Actions: t.actions, Omitted: t.omitted})
}

// Final ends the status: actions that are open are completed as cut, and the last status is published, once, and not at all if
// there was no action. Whether the run succeeded says nothing of a tool that it did not wait for, so it is not asked.
func (t Tools) Final() (Tools, ToolStep) {
	if t.ended {
		return t, ToolStep{}
	}
	t.ended, t.pace = true, t.pace.rest()
	t.actions = slices.Clone(t.actions)
	for i := range t.actions {
		if a := &t.actions[i]; a.Phase != PhaseCompleted {
			a.Phase, a.OK, a.Cut = PhaseCompleted, false, true
		}
	}
	return t.tell(Status{Actions: t.actions, Omitted: t.omitted, Final: true})
}

// tell publishes a status unless it says nothing new.
func (t Tools) tell(s Status) (Tools, ToolStep) {
	if len(s.Actions) == 0 || t.published != nil && s.equal(*t.published) {
		return t, ToolStep{}
	}
	t.published = &s
	return t, ToolStep{Status: &s}
}

// Published is the status that was published last, nil if none was: what a client that joins late must see.
func (t Tools) Published() *Status { return t.published }

func (s Status) equal(o Status) bool {
	return s.Final == o.Final && s.Omitted == o.Omitted && slices.EqualFunc(s.Actions, o.Actions, Action.equal)
}
