package actors_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// B43: a store that fails after k of n records, for every k: the recovery that is tried again folds none twice.
func TestB43RecoveryThatIsTriedAgainFoldsEachRecordOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"), testkit.Delay(time.Second))
		h.submit("one", steering)
		_, err := h.client.Record(t.Context(), key, nil, &messages.WorkflowStarted{WorkflowId: "w"}, &messages.StageCompleted{StageId: "a"})
		require.NoError(t, err)
		h.submit("two", mode(messages.QueueFollowup))
		h.submit("three", mode(messages.QueueFollowup), steering)
		h.submit("four", mode(messages.QueueInterrupt), steering)
		time.Sleep(time.Minute)
		h.stop()
		records := 0
		for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
			all, err := testkit.ReadAll(t.Context(), h.journal, key, stream)
			require.NoError(t, err)
			records += len(all)
		}
		require.Greater(t, records, 15)

		*h = *start(t, h.journal, h.model, nil)
		once := h.view()
		require.Len(t, once.GetConversationHistory(), 8)
		for k := range records {
			h.stop()
			*h = *start(t, h.journal, h.model, nil)
			h.journal.FailReplaysAfter(k, persistence.ErrUnavailable)
			begun := h.journal.Replays()
			_, err := h.client.State(t.Context(), key)
			require.Equal(t, messages.CodeUnavailable, requireRetryable(t, err))
			again := h.view()
			require.Greater(t, h.journal.Replays()-begun, 2, "the recovery was cut after %d records and began anew", k)
			require.True(t, proto.Equal(once, again), "after %d records:\n%v\n%v", k, once, again)
		}
	})
}

// view is the session's state without what differs from process to process.
func (h *host) view() *messages.SessionView {
	h.t.Helper()
	for range 100 {
		view, err := h.client.State(h.t.Context(), key)
		if err == nil {
			view.Epoch = 0
			return view
		}
		require.Equal(h.t, messages.CodeUnavailable, requireRetryable(h.t, err))
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatal("the session does not start")
	return nil
}

// B49: an event of the workflow in the midst of a turn disturbs neither; the session puts one behind the other.
func TestB49EventInMidTurnAndTheTurnBothSucceed(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.Stream("half "), testkit.WaitFor(gate), testkit.Stream("whole"))
		accepted := h.submit("go", steering)
		synctest.Wait()
		head := h.state().GetEventSequence()
		recorded, err := h.client.Record(t.Context(), key, &head, &messages.StageCompleted{StageId: "build"})
		require.NoError(t, err)
		require.Equal(t, head+1, recorded.GetLastSequence())
		require.Equal(t, accepted.GetRunId(), h.state().GetActiveRun().GetRunId(), "the run goes on")
		close(gate)
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "answered", status.GetState())
		require.Equal(t, "half whole", status.GetContent())
		require.Equal(t, []string{"go"}, h.notes())
		require.Equal(t, head+2, h.state().GetEventSequence())
		h.model.ExpectCalls(1)
	})
}

// B49: also when the event comes at the instant at which the run ends and its note is written.
func TestB49EventAtTheInstantOfARunsEnd(t *testing.T) {
	t.Parallel()
	explore(t, schedules/2, nil, func(t *testing.T, x *explored) {
		x.model.Call(testkit.Stream("ok"), testkit.Delay(time.Second))
		accepted := x.submit("go", steering)
		for range 2 {
			x.Go(func(yield func()) {
				time.Sleep(time.Second)
				yield()
				_, err := x.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "s"}, &messages.StageCompleted{StageId: "s"})
				require.NoError(t, err)
			})
		}
		x.Wait()
		require.Equal(t, "answered", x.end(accepted.GetTurnId()).GetState())
		require.Equal(t, []string{"go"}, x.notes())
		require.EqualValues(t, 5, x.state().GetEventSequence())
		x.model.ExpectCalls(1)
	})
}

// B50: what a session has behind it is not read again when it goes on.
func TestB50AppendsReadNothingOfThePast(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		events := slices.Repeat([]messages.Event{&messages.StageStarted{StageId: "s"}}, 1000)
		for range 10 {
			_, err := h.client.Record(t.Context(), key, nil, events...)
			require.NoError(t, err)
		}
		stored, _ := h.journal.Appends()
		read := h.journal.Replays()
		for n := range 1000 {
			recorded, err := h.client.Record(t.Context(), key, nil, events[0])
			require.NoError(t, err)
			require.EqualValues(t, 10_001+n, recorded.GetLastSequence())
		}
		for range 10 {
			h.end(h.submit("hi").GetTurnId())
		}
		after, _ := h.journal.Appends()
		require.GreaterOrEqual(t, after-stored, 1020)
		require.Zero(t, h.journal.Replays()-read)
	})
}
