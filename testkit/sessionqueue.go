package testkit

import (
	"fmt"
	"slices"
	"time"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// queueTwin is a queue as a user may expect it, in plain slices: it carries out what the ledger says and refuses what no rule
// allows (design: turns, queue modes). It shares no code with core/queue.
type queueTwin struct {
	active  []*turnLife
	run     string
	stopped bool // the active run takes no offers and will not be resumed
	// interrupted: a turn of mode interrupt stopped the active run.
	interrupted bool
	waiting     [][]*turnLife
	offered     []*turnLife
}

// open lists the ids of all unended turns: of the active run, entry by entry, offered.
func (q *queueTwin) open() []string {
	lives := slices.Clone(q.active)
	for _, entry := range q.waiting {
		lives = append(lives, entry...)
	}
	return ids(append(lives, q.offered...))
}

func (q *queueTwin) len() int { return len(slices.Concat(q.waiting...)) }

func ids(lives []*turnLife) []string {
	var out []string
	for _, life := range lives {
		out = append(out, life.turn.GetTurnId())
	}
	return out
}

// admit puts a new turn where the record says, if its mode may go there.
func (q *queueTwin) admit(life *turnLife, r *messages.TurnAdmitted, cfg session.Config) error {
	mode, offer := messages.QueueMode(life.turn.GetQueueMode()), r.GetPlacement() == "offered"
	busy := q.run != "" || q.len()+len(q.offered) > 0
	var want []string
	switch mode {
	case messages.QueueCollect:
		want = []string{"back"}
	case messages.QueueFollowup:
		want = []string{"back", "merged"}
	case messages.QueueSteer, messages.QueueSteerBacklog:
		want = []string{"offered"}
	case messages.QueueInterrupt:
		want = []string{"front"}
	}
	switch {
	case !slices.Contains(want, r.GetPlacement()):
		return fmt.Errorf("a turn of mode %s is placed %s: %v", mode, r.GetPlacement(), r)
	case offer && (q.run == "" || q.stopped):
		return fmt.Errorf("turn %s is offered, but no run takes offers", life.turn.GetTurnId())
	case busy && q.len() >= cfg.QueueLimit, offer && len(q.offered) >= cfg.QueueLimit:
		return fmt.Errorf("%d turns wait and %d are offered, %d may, but %s is admitted", q.len(), len(q.offered), cfg.QueueLimit,
			life.turn.GetTurnId())
	}
	return q.put(life, r.GetPlacement(), r.GetMergedInto(), life.turn.GetAcceptedAt().AsTime(), cfg)
}

func (q *queueTwin) put(life *turnLife, place, into string, at time.Time, cfg session.Config) error {
	mode := life.turn.GetQueueMode()
	followup := place != "offered" && (mode == "followup" || mode == "steer")
	expected := ""
	if followup {
		expected = q.mergesInto(life.turn, at, cfg)
	}
	if expected != into || (into != "") != (place == "merged") {
		return fmt.Errorf("turn %s is %s into %q, the rules say into %q", life.turn.GetTurnId(), place, into, expected)
	}
	if life.joined = new(time.Time); place == "merged" { // the parts of an entry share when one joined last
		life.joined = q.waiting[len(q.waiting)-1][0].joined
	}
	if followup {
		*life.joined = at
	}
	switch place {
	case "front":
		q.waiting = append([][]*turnLife{{life}}, q.waiting...)
	case "offered":
		q.offered = append(q.offered, life)
		return nil
	case "merged":
		last := len(q.waiting) - 1
		q.waiting[last] = append(q.waiting[last], life)
	case "back":
		q.waiting = append(q.waiting, []*turnLife{life})
	default:
		return fmt.Errorf("turn %s is placed %q", life.turn.GetTurnId(), place)
	}
	q.lead()
	return nil
}

// mergesInto names the turn that leads the tail of the queue if a followup joins it.
func (q *queueTwin) mergesInto(turn *messages.Turn, at time.Time, cfg session.Config) string {
	if len(q.waiting) == 0 || turn.GetTaskResult() {
		return ""
	}
	last := q.waiting[len(q.waiting)-1][0]
	if at.Sub(*last.joined) > cfg.MergeWindow {
		return ""
	}
	tail := last.turn
	queuedAsFollowup := tail.GetQueueMode() == "followup" || tail.GetQueueMode() == "steer"
	if !queuedAsFollowup || tail.GetTaskResult() || tail.GetSender() != turn.GetSender() || tail.GetMode() != turn.GetMode() ||
		tail.GetResume().GetEngine() != turn.GetResume().GetEngine() || tail.GetResume().GetToken() != turn.GetResume().GetToken() {
		return ""
	}
	return tail.GetTurnId()
}

// lead remembers who led an entry: only they have a run of their own.
func (q *queueTwin) lead() {
	for _, entry := range q.waiting {
		entry[0].led = true
	}
}

// giveBack carries out the fall back of an offered turn.
func (q *queueTwin) giveBack(r *messages.TurnReturned, cfg session.Config) error {
	life, err := q.takeOffer(r.GetTurnId())
	if err != nil {
		return err
	}
	if r.GetPlacement() != "back" && r.GetPlacement() != "merged" {
		return fmt.Errorf("turn %s falls back to %q", r.GetTurnId(), r.GetPlacement())
	}
	return q.put(life, r.GetPlacement(), r.GetMergedInto(), r.GetReturnedAt().AsTime(), cfg)
}

func (q *queueTwin) takeOffer(id string) (*turnLife, error) {
	for i, life := range q.offered {
		if life.turn.GetTurnId() == id {
			q.offered = slices.Delete(slices.Clone(q.offered), i, i+1)
			return life, nil
		}
	}
	return nil, fmt.Errorf("turn %s is not offered, it neither steers nor falls back", id)
}

// remove takes out a turn that no run took.
func (q *queueTwin) remove(id string) {
	is := func(life *turnLife) bool { return life.turn.GetTurnId() == id }
	var waiting [][]*turnLife
	for _, entry := range q.waiting {
		if entry = slices.DeleteFunc(slices.Clone(entry), is); len(entry) > 0 {
			waiting = append(waiting, entry)
		}
	}
	q.waiting = waiting
	q.offered = slices.DeleteFunc(slices.Clone(q.offered), is)
	q.lead()
}

// start gives the run slot to the first entry, or the active run its next attempt.
func (q *queueTwin) start(r *messages.RunStarted) error {
	switch {
	case r.GetAttempt() > 1 && (q.run != r.GetRunId() || !slices.Equal(ids(q.active), r.GetTurnIds()) || q.stopped):
		return fmt.Errorf("attempt %d of %s with %v, active is %q with %v", r.GetAttempt(), r.GetRunId(), r.GetTurnIds(), q.run, ids(q.active))
	case r.GetAttempt() > 1:
		return nil
	case q.run != "":
		return fmt.Errorf("run %s starts while %s is active", r.GetRunId(), q.run)
	case len(q.offered) > 0:
		return fmt.Errorf("run %s starts before %v went back", r.GetRunId(), ids(q.offered))
	case len(q.waiting) == 0 || !slices.Equal(ids(q.waiting[0]), r.GetTurnIds()) || q.waiting[0][0].turn.GetRunId() != r.GetRunId():
		return fmt.Errorf("run %s takes %v, waiting are %v", r.GetRunId(), r.GetTurnIds(), q.open())
	}
	q.run, q.active, q.waiting = r.GetRunId(), q.waiting[0], q.waiting[1:]
	return nil
}

// end takes the active run away.
func (q *queueTwin) end(r *messages.RunEnded) error {
	if q.run == "" || q.run != r.GetRunId() || !slices.Equal(ids(q.active), r.GetTurnIds()) {
		return fmt.Errorf("I7: run %s ends with %v, active is %q with %v", r.GetRunId(), r.GetTurnIds(), q.run, ids(q.active))
	}
	if outcome := r.GetOutcome(); q.interrupted && outcome != "interrupted" || q.stopped && !q.interrupted && outcome != "cancelled" {
		return fmt.Errorf("run %s was stopped (by an interrupt: %t) and ends as %s", q.run, q.interrupted, outcome)
	}
	q.run, q.active, q.stopped, q.interrupted = "", nil, false, false
	return nil
}

func (q *queueTwin) stop(r *messages.AbortRequested) error {
	if q.run == "" || q.run != r.GetRunId() || q.stopped {
		return fmt.Errorf("run %s is stopped, active is %q, stopped before: %t", r.GetRunId(), q.run, q.stopped)
	}
	q.stopped, q.interrupted = true, r.GetInterrupt()
	return nil
}

// clone for a check that is to fail.
func (q *queueTwin) clone(lives map[string]*turnLife) queueTwin {
	twin := *q
	copies := func(from []*turnLife) []*turnLife {
		var out []*turnLife
		for _, life := range from {
			out = append(out, lives[life.turn.GetTurnId()])
		}
		return out
	}
	twin.active, twin.offered, twin.waiting = copies(q.active), copies(q.offered), nil
	for _, entry := range q.waiting {
		twin.waiting = append(twin.waiting, copies(entry))
	}
	return twin
}
