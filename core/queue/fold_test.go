package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Replay asks no rule and refuses nothing: a record that does not fit loses no turn.
func TestPutIntoAnEntryThatIsNotThereWaitsByItself(t *testing.T) {
	t.Parallel()
	var q queue.Queue
	q = q.Put(&messages.Turn{TurnId: "a"}, queue.PlaceMerged, "gone", start)
	q = q.Put(&messages.Turn{TurnId: "b"}, queue.Place("somewhere"), "", start)
	require.Equal(t, "a b | nothing", layout(q))
	require.Equal(t, "a b | nothing", layout(q.Return("b", queue.PlaceFront, "", "", start)), "what is not offered does not return")
	rest, taken := q.Take([]string{"b", "never", "a", "a"})
	require.Equal(t, "b+a", names(taken))
	require.True(t, rest.Empty())
}

func TestParsePlaceTakesWhatIsUnknownForTheBack(t *testing.T) {
	t.Parallel()
	for _, p := range []queue.Place{queue.PlaceBack, queue.PlaceFront, queue.PlaceMerged, queue.PlaceOffered} {
		require.Equal(t, p, queue.ParsePlace(string(p)))
	}
	require.Equal(t, queue.PlaceBack, queue.ParsePlace("")) // records of builds that had only collect
	require.Equal(t, queue.PlaceBack, queue.ParsePlace("middle"))
}

func TestFamilyIsTheModeByWhichATurnWaits(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]messages.QueueMode{
		"": messages.QueueCollect, "collect": messages.QueueCollect, "steer_backlog": messages.QueueCollect,
		"followup": messages.QueueFollowup, "steer": messages.QueueFollowup, "interrupt": messages.QueueInterrupt, "x": messages.QueueCollect,
	} {
		require.Equal(t, want, queue.Family(&messages.Turn{QueueMode: mode}), mode)
	}
}

// Two queues that share a past do not see each other, whatever room their slices have left.
func TestQueuesThatShareAPastDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	turn := func(id string) *messages.Turn { return &messages.Turn{TurnId: id, QueueMode: "followup"} }
	base := queue.Queue{}.Put(turn("lead"), queue.PlaceBack, "", start)
	for range 15 {
		a := base.Put(turn("a"), queue.PlaceMerged, "lead", start).Put(turn("a2"), queue.PlaceBack, "", start).Put(turn("ao"), queue.PlaceOffered, "", start)
		b := base.Put(turn("b"), queue.PlaceMerged, "lead", start).Put(turn("b2"), queue.PlaceBack, "", start).Put(turn("bo"), queue.PlaceOffered, "", start)
		require.Equal(t, "a2 | "+names(append(base.Offered[:len(base.Offered):len(base.Offered)], turn("ao"))), tailOf(a))
		require.Equal(t, "b2 | "+names(append(base.Offered[:len(base.Offered):len(base.Offered)], turn("bo"))), tailOf(b))
		lead := a.Waiting[0].Turns
		require.Equal(t, "a", lead[len(lead)-1].GetTurnId())
		base = base.Put(turn("x"), queue.PlaceMerged, "lead", start.Add(time.Second)).Put(turn("o"), queue.PlaceOffered, "", start)
	}
}

func tailOf(q queue.Queue) string {
	return names(q.Waiting[len(q.Waiting)-1].Turns) + " | " + names(q.Offered)
}
