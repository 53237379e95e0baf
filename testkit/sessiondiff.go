package testkit

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// DiffStates tells the first difference of what two states recorded; "" = none. It does not look at what is live, which dies with
// an activation.
func DiffStates(a, b session.State) string {
	if a.Key != b.Key {
		return fmt.Sprintf("key %s, %s", a.Key, b.Key)
	}
	if !a.Router.Equal(b.Router) {
		return fmt.Sprintf("router state %+v, %+v", a.Router, b.Router)
	}
	return diffLedgers(a.Ledger, b.Ledger)
}

func diffLedgers(a, b session.Ledger) string {
	switch {
	case a.Head != b.Head:
		return fmt.Sprintf("ledger head %d, %d", a.Head, b.Head)
	case (a.Config == nil) != (b.Config == nil) || !proto.Equal(a.Config, b.Config):
		return fmt.Sprintf("session config %v, %v", a.Config, b.Config)
	case a.OutputReserved != b.OutputReserved:
		return fmt.Sprintf("output reserved up to %d, %d", a.OutputReserved, b.OutputReserved)
	case !a.LastTime.Equal(b.LastTime):
		return fmt.Sprintf("last time %s, %s", a.LastTime, b.LastTime)
	case a.Spent != b.Spent:
		return fmt.Sprintf("spent %+v, %+v", a.Spent, b.Spent)
	case a.Parts != nil || b.Parts != nil:
		return "a checkpoint is not whole"
	case !slices.Equal(a.Awaited, b.Awaited):
		return fmt.Sprintf("awaited slots of %v, %v", a.Awaited, b.Awaited)
	case !proto.Equal(a.Resume.Token, b.Resume.Token) || a.Resume.Lineage != b.Resume.Lineage || a.Resume.TurnID != b.Resume.TurnID:
		return fmt.Sprintf("resume %v, %v", a.Resume, b.Resume)
	case a.SinceCheckpoint != b.SinceCheckpoint:
		return fmt.Sprintf("%d records since the checkpoint, %d", a.SinceCheckpoint, b.SinceCheckpoint)
	}
	if diff := diffRuns(a.Active, b.Active); diff != "" {
		return diff
	}
	if diff := diffQueues(a.Queue, b.Queue); diff != "" {
		return diff
	}
	if !slices.Equal(a.History, b.History) {
		return fmt.Sprintf("history %+v, %+v", a.History, b.History)
	}
	return diffMessages("finals", finalsOf(a), finalsOf(b))
}

func diffQueues(a, b queue.Queue) string {
	if len(a.Waiting) != len(b.Waiting) {
		return fmt.Sprintf("queue has %d entries, %d", len(a.Waiting), len(b.Waiting))
	}
	for i := range a.Waiting {
		if diff := diffMessages(fmt.Sprintf("queue[%d]", i), a.Waiting[i].Turns, b.Waiting[i].Turns); diff != "" {
			return diff
		}
		if !a.Waiting[i].Joined.Equal(b.Waiting[i].Joined) {
			return fmt.Sprintf("queue[%d] was joined at %s, %s", i, a.Waiting[i].Joined, b.Waiting[i].Joined)
		}
	}
	return diffMessages("offers", a.Offered, b.Offered)
}

func finalsOf(l session.Ledger) []*messages.RunEnded { return l.Finals.After(0, time.Time{}) }

func diffRuns(a, b *session.Run) string {
	if a == nil || b == nil {
		if a != b {
			return fmt.Sprintf("active run %+v, %+v", a, b)
		}
		return ""
	}
	if diff := diffMessages("turns of the active run", a.Turns, b.Turns); diff != "" {
		return diff
	}
	if diff := diffMessages("turns that steered the active run", a.Injected, b.Injected); diff != "" {
		return diff
	}
	if !a.StartedAt.Equal(b.StartedAt) {
		return fmt.Sprintf("active run started at %s, %s", a.StartedAt, b.StartedAt)
	}
	x, y := *a, *b
	x.Turns, y.Turns, x.Injected, y.Injected, x.StartedAt, y.StartedAt = nil, nil, nil, nil, time.Time{}, time.Time{}
	if fmt.Sprint(x) != fmt.Sprint(y) {
		return fmt.Sprintf("active run %+v, %+v", x, y)
	}
	return ""
}

func diffMessages[M proto.Message](what string, a, b []M) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%s has %d entries, %d", what, len(a), len(b))
	}
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			return fmt.Sprintf("%s[%d] %v, %v", what, i, a[i], b[i])
		}
	}
	return ""
}
