package actors_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// schedules is how many orders of events the tests of this file try.
const schedules = 30

// explored is a process whose next step the schedule chooses.
type explored struct {
	*testkit.Schedule
	*host

	change func(*session.Deps)
}

func explore(t *testing.T, schedules int, change func(*session.Deps), scenario func(t *testing.T, x *explored)) {
	t.Helper()
	if os.Getenv("CORREX_SOAK") == "1" {
		schedules *= 50
	}
	testkit.Explore(t, schedules, func(t *testing.T, s *testkit.Schedule) {
		s.Describe = func(msg any) string {
			if request, ok := msg.(*session.Request); ok {
				return fmt.Sprintf("%T of a %T", msg, request.Command)
			}
			return fmt.Sprintf("%T", msg)
		}
		journal := testkit.NewFaultyJournal(nil)
		journal.Pace(s.Yield())
		model := testkit.NewProvider(t).Otherwise(testkit.Stream("ok"))
		x := &explored{Schedule: s, change: change}
		x.host = startOn(t, kernel.New(kernel.Config{Scheduler: s}), journal, model, change)
		defer func() {
			x.stop()
			require.NoError(t, journal.Close())
		}()
		scenario(t, x)
	})
}

// again is the next process.
func (x *explored) again() {
	x.t.Helper()
	x.stop()
	x.host = startOn(x.t, kernel.New(kernel.Config{Scheduler: x.Schedule}), x.journal, x.model, x.change)
	x.activate()
}

// insist submits until there is an answer that is not the advice to try again; how says what the answer was.
func (x *explored) insist(yield func(), turn *messages.SubmitTurn) (accepted *messages.TurnAccepted) {
	x.t.Helper()
	for range 100 {
		yield()
		accepted, err := x.client.Submit(x.t.Context(), key, turn)
		if err == nil {
			return accepted
		}
		require.Equal(x.t, messages.CodeUnavailable, requireRetryable(x.t, err))
	}
	x.t.Errorf("turn %s is never accepted", turn.GetText())
	return nil
}

// requireRetryable says that a client may try again, and gives the code.
func requireRetryable(t *testing.T, err error) messages.Code {
	t.Helper()
	f := new(messages.Failure)
	require.ErrorAs(t, err, &f)
	require.True(t, f.GetRetryable(), f.GetMessage())
	return messages.Code(f.GetCode())
}

// together collects what several clients say.
type together[T any] struct {
	mu  sync.Mutex
	all []T
}

func (c *together[T]) add(v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, v)
}

// All the tests of this file rest on it: with the same seed a whole process does the same things in the same order.
func TestASeedPlaysAWholeProcessTheSameWayAgain(t *testing.T) {
	t.Parallel()
	traces := make(map[uint64][]string)
	for range 2 {
		explore(t, schedules/3, func(d *session.Deps) { d.Idle = 10 * time.Millisecond }, func(t *testing.T, x *explored) {
			x.end(x.submit("before").GetTurnId())
			for n := range 4 {
				x.Go(func(yield func()) {
					time.Sleep(10 * time.Millisecond)
					x.insist(yield, turn("hello", keyed(strconv.Itoa(n/2))))
				})
			}
			x.Wait()
			time.Sleep(time.Second)
			if before, ok := traces[x.Seed()]; ok {
				require.Equal(t, before, x.Trace())
			}
			traces[x.Seed()] = x.Trace()
		})
	}
}

// No message is lost or comes out of order because the session ends, or is about to, while it is on its way.
func TestPassivationLosesAndReordersNothing(t *testing.T) {
	t.Parallel()
	const idle, clients, rounds = 10 * time.Millisecond, 2, 3
	var activations together[int]
	explore(t, schedules, func(d *session.Deps) { d.Idle = idle }, func(t *testing.T, x *explored) {
		for client := range clients {
			probe := testkit.NewProbe(t, x.sys)
			x.Go(func(yield func()) {
				for n := range uint64(2 * rounds) {
					if n%2 == 0 {
						time.Sleep(idle) // just when the session is idle long enough
						yield()
					}
					event, err := messages.EncodeEvent(&messages.StageCompleted{StageId: fmt.Sprintf("%d-%d", client, n)})
					require.NoError(t, err)
					x.dir.Send(key, n, &messages.RecordEvents{Events: []*messages.EncodedEvent{event}}, probe.PID())
				}
				for range 2 * rounds {
					answer := testkit.Expect[*session.Answer](probe)
					require.IsType(t, &messages.EventsRecorded{}, answer.Reply, "%v", answer.Reply)
				}
			})
		}
		x.Wait()
		next := make([]int, clients)
		for stored, err := range x.client.Events(t.Context(), key, 0) {
			require.NoError(t, err)
			event, err := messages.DecodeEvent(stored.GetEvent().GetType(), stored.GetEvent().GetVersion(), stored.GetEvent().GetPayload())
			require.NoError(t, err)
			var client, n int
			_, err = fmt.Sscanf(event.(*messages.StageCompleted).GetStageId(), "%d-%d", &client, &n)
			require.NoError(t, err)
			require.Equal(t, next[client], n, "events of client %d", client)
			next[client]++
		}
		for _, n := range next {
			require.Equal(t, 2*rounds, n)
		}
		activations.add(x.journal.Replays())
	})
	if len(activations.all) > 1 {
		require.Greater(t, slices.Max(activations.all)/2, 1, "it was passivated and activated again") // two streams each
	}
}

// B23: several clients with the same key wake a session that was passivated, or is just now.
func TestB23CopiesThatRaceAnActivationAreAdmittedOnce(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Millisecond
	explore(t, schedules, func(d *session.Deps) { d.Idle = idle }, func(t *testing.T, x *explored) {
		x.end(x.submit("before").GetTurnId())
		var got together[*messages.TurnAccepted]
		for range 4 {
			x.Go(func(yield func()) {
				time.Sleep(idle)
				got.add(x.insist(yield, turn("hello", keyed("k"), steering)))
			})
		}
		x.Wait()
		first := 0
		for _, accepted := range got.all {
			require.Equal(t, got.all[0].GetTurnId(), accepted.GetTurnId())
			if accepted.GetDisposition() != "duplicate" {
				first++
			}
		}
		require.Equal(t, 1, first, "one admission")
		require.Equal(t, "answered", x.end(got.all[0].GetTurnId()).GetState())
		require.Equal(t, []string{"hello"}, x.notes())
		x.model.ExpectCalls(2)
	})
}

// B26: two copies at one instant, while a run is active or just ends, are one answer.
func TestB26CopiesAtOneInstantAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	explore(t, schedules, nil, func(t *testing.T, x *explored) {
		modes := []messages.QueueMode{
			messages.QueueCollect, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
		}
		copied := mode(modes[x.Rand().IntN(len(modes))])
		x.model.Call(testkit.Stream("first"), testkit.Delay(time.Second))
		sub := x.subscribe(0)
		defer sub.Close()
		x.submit("before")
		at := []time.Duration{0, 500 * time.Millisecond, time.Second}[x.Rand().IntN(3)]
		var got together[*messages.TurnAccepted]
		for range 2 {
			x.Go(func(yield func()) {
				time.Sleep(at)
				got.add(x.insist(yield, turn("hello", keyed("m"), copied)))
			})
		}
		x.Wait()
		id := got.all[0].GetTurnId()
		require.Equal(t, id, got.all[1].GetTurnId())
		require.Equal(t, "answered", x.end(id).GetState())
		delivered := 0
		for _, item := range x.items(sub) {
			if intent, ok := item.(*messages.DeliveryIntent); ok && intent.GetRouterResponse().GetTurnId() == id {
				delivered++
			}
		}
		require.Equal(t, 1, delivered)
		x.model.ExpectCalls(2)
	})
}

// B28: two results at one instant, which may be the one at which the run ends that they would steer, are both admitted and used.
func TestB28ResultsAtOneInstantAreBothUsed(t *testing.T) {
	t.Parallel()
	explore(t, schedules, nil, func(t *testing.T, x *explored) {
		x.model.Call(testkit.Stream("first"), testkit.Delay(time.Second))
		x.submit("before")
		at := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}[x.Rand().IntN(3)]
		var got together[*messages.TurnAccepted]
		for n := range 2 {
			x.Go(func(yield func()) {
				time.Sleep(at)
				got.add(x.insist(yield, turn(fmt.Sprintf("timer %d", n), steering, mode(messages.QueueFollowup), func(t *messages.SubmitTurn) { t.TaskResult = true })))
			})
		}
		x.Wait()
		require.NotEqual(t, got.all[0].GetTurnId(), got.all[1].GetTurnId())
		for _, accepted := range got.all {
			require.Equal(t, "answered", x.end(accepted.GetTurnId()).GetState())
		}
		require.ElementsMatch(t, []string{"timer 0", "timer 1"}, x.notes())
		x.model.ExpectCalls(3)
	})
}

// B31: whoever submits while the server drains is refused before anything is acknowledged, or has a turn that the next process ends.
func TestB31DrainAgainstSubmit(t *testing.T) {
	t.Parallel()
	explore(t, schedules, nil, func(t *testing.T, x *explored) {
		x.model.Call(testkit.Stream("first"), testkit.Delay(time.Second))
		at := []time.Duration{0, time.Second}[x.Rand().IntN(2)]
		var accepted, refused together[string]
		for n := range 4 {
			x.Go(func(yield func()) {
				if n > 1 {
					time.Sleep(at)
				}
				yield()
				text := strconv.Itoa(n)
				if _, err := x.client.Submit(t.Context(), key, turn(text, keyed(text), steering)); err == nil {
					accepted.add(text)
				} else if requireRetryable(t, err) == messages.CodeDraining {
					refused.add(text)
				}
			})
		}
		x.Go(func(yield func()) {
			time.Sleep(at)
			yield()
			budget, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, x.dir.Drain(budget, t.Context()))
			_, err := x.client.Submit(t.Context(), messages.NewKey("late"), turn("late"))
			require.Equal(t, messages.CodeDraining, requireRetryable(t, err), "a session that starts during a drain drains too")
		})
		x.Wait()
		x.again()
		time.Sleep(time.Minute)
		for _, text := range accepted.all {
			status, err := x.client.TurnByKey(t.Context(), key, text)
			require.NoError(t, err)
			require.Equal(t, "answered", status.GetState(), text)
		}
		for _, text := range refused.all {
			_, err := x.client.TurnByKey(t.Context(), key, text)
			var f *messages.Failure
			require.ErrorAs(t, err, &f, "a turn that was refused as draining is not there")
			require.Contains(t, []string{string(messages.CodeUnknownTurn), string(messages.CodeUnknownSession)}, f.GetCode())
		}
		if len(accepted.all) > 0 {
			require.Subset(t, x.notes(), accepted.all)
		}
	})
}

// A slot that is granted while its turn is taken back, aborted or ends anyway is given back, and the next in line has it.
func TestSlotsAreGivenBackWhateverTheOrder(t *testing.T) {
	t.Parallel()
	oneSlot := func(d *session.Deps) { d.Slots = slots.New(d.Kernel, slots.Config{Max: 1}) }
	explore(t, schedules, oneSlot, func(t *testing.T, x *explored) {
		x.model.Otherwise(testkit.Stream("ok"), testkit.Delay(time.Second))
		last := make([]messages.TurnID, 3)
		for i := range last {
			pause := time.Duration(x.Rand().IntN(4)) * time.Second // runs end then, and the next begin
			scope := []messages.AbortScope{messages.AbortRun, messages.AbortTurn, messages.AbortSession}[x.Rand().IntN(3)]
			x.Go(func(yield func()) {
				first, err := x.client.Submit(t.Context(), named(i), turn("first"))
				require.NoError(t, err)
				yield()
				_, err = x.client.Submit(t.Context(), named(i), turn("second"))
				require.NoError(t, err)
				time.Sleep(pause)
				yield()
				abort := &messages.Abort{Scope: string(scope)}
				if scope == messages.AbortTurn {
					abort.TurnId = first.GetTurnId()
				}
				_, err = x.client.Abort(t.Context(), named(i), abort)
				require.NoError(t, err)
				yield()
				accepted, err := x.client.Submit(t.Context(), named(i), turn("last"))
				require.NoError(t, err)
				last[i] = accepted.GetTurnId()
			})
		}
		x.Wait()
		time.Sleep(time.Minute)
		require.Equal(t, slots.Stats{}, x.deps.Slots.Stats())
		for i, id := range last {
			status, err := x.client.Turn(t.Context(), named(i), id)
			require.NoError(t, err)
			require.Equal(t, "answered", status.GetState(), "the last turn of session %d", i)
		}
	})
}
