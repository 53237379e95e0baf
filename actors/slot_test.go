package actors_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// crowd is a process with few slots and many sessions.
type crowd struct {
	*host
	limit  int
	change func(*session.Deps)
}

// withSlots runs scenario on a process with so many slots, and checks that all of them are given back.
func withSlots(t *testing.T, limit int, change func(*session.Deps), scenario func(t *testing.T, c *crowd)) {
	t.Helper()
	inBubble(t, func(t *testing.T, h *host) {
		c := &crowd{host: h, limit: limit, change: change}
		c.again()
		scenario(t, c)
		synctest.Wait()
		require.Equal(t, slots.Stats{}, c.deps.Slots.Stats(), "everything is given back")
	})
}

// again is a new process over the same journal. All that the old one held is given back by its end.
func (c *crowd) again() {
	c.t.Helper()
	c.stop()
	if old := c.deps.Slots; old != nil {
		require.Equal(c.t, slots.Stats{}, old.Stats(), "everything is given back by a stop")
	}
	*c.host = *start(c.t, c.journal, c.model, func(d *session.Deps) {
		d.Slots = slots.New(d.Kernel, slots.Config{Max: c.limit})
		if c.change != nil {
			c.change(d)
		}
	})
}

func (c *crowd) stats() slots.Stats {
	synctest.Wait()
	return c.deps.Slots.Stats()
}

func named(i int) messages.Key { return messages.NewKey(messages.SessionID(fmt.Sprintf("s%d", i))) }

func (c *crowd) submit(to messages.Key, text string, change ...func(*messages.SubmitTurn)) *messages.TurnAccepted {
	c.t.Helper()
	accepted, err := c.client.Submit(c.t.Context(), to, turn(text, change...))
	require.NoError(c.t, err)
	return accepted
}

// status asks for a turn; a session that is in trouble just now is asked again.
func (c *crowd) status(of messages.Key, id messages.TurnID) *messages.TurnStatus {
	c.t.Helper()
	for {
		status, err := c.client.Turn(c.t.Context(), of, id)
		if f := new(messages.Failure); !errors.As(err, &f) || !f.GetRetryable() {
			require.NoError(c.t, err)
			return status
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
}

// end waits for the end of a turn and gives it.
func (c *crowd) end(of messages.Key, id messages.TurnID) *messages.TurnStatus {
	c.t.Helper()
	for range 100_000 {
		if status := c.status(of, id); messages.TurnState(status.GetState()).Ended() {
			return status
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
	c.t.Fatalf("turn %s of %s does not end", id, of.Session)
	return nil
}

// asked gives what the provider was asked, in order.
func (c *crowd) asked() (texts []string) {
	for _, call := range c.model.Calls() {
		entries := call.Request.Pack.Entries
		texts = append(texts, entries[len(entries)-1].Content)
	}
	return texts
}

// phases gives the phases of a subscription's runs, each of which must follow from the one before.
func (c *crowd) phases(sub *actors.Subscription) map[string][]string {
	c.t.Helper()
	of, last := make(map[string][]string), make(map[string]string)
	for _, item := range c.items(sub) {
		intent, ok := item.(*messages.DeliveryIntent)
		if !ok || intent.GetRunPhase() == nil {
			continue
		}
		p := intent.GetRunPhase()
		require.Equal(c.t, last[p.GetRunId()], p.GetPreviousPhase())
		require.True(c.t, p.GetPreviousPhase() == "" ||
			testkit.LegalPhase(messages.Phase(p.GetPreviousPhase()), messages.Phase(p.GetPhase())), "%v", p)
		last[p.GetRunId()] = p.GetPhase()
		of[p.GetRunId()] = append(of[p.GetRunId()], p.GetPhase())
	}
	return of
}

func (c *crowd) follow(of messages.Key) *actors.Subscription {
	c.t.Helper()
	sub, err := c.client.Subscribe(c.t.Context(), of, actors.SubscribeOptions{AfterSeq: new(uint64)})
	require.NoError(c.t, err)
	return sub
}

// W39: a wait for a slot is published when it begins and once.
func TestW39FiveSessionsOfTwoSlotsAreServedInOrder(t *testing.T) {
	withSlots(t, 2, nil, func(t *testing.T, c *crowd) {
		c.model.Otherwise(testkit.Delay(time.Second), testkit.Stream("ok"))
		var subs []*actors.Subscription
		var turns []*messages.TurnAccepted
		for i := range 5 {
			subs = append(subs, c.follow(named(i)))
			turns = append(turns, c.submit(named(i), strconv.Itoa(i)))
		}
		require.Equal(t, slots.Stats{Used: 2, Waiting: 3}, c.stats())
		for i, want := range []string{"started", "started", "queued", "queued", "queued"} {
			require.Equal(t, want, turns[i].GetDisposition())
		}
		require.Equal(t, "queued", c.status(named(4), turns[4].GetTurnId()).GetState(), "it can still be withdrawn")
		for i, accepted := range turns {
			require.Equal(t, "answered", c.end(named(i), accepted.GetTurnId()).GetState())
		}
		asked := c.asked() // two slots become free at one instant, so each pair comes in any order
		require.ElementsMatch(t, []string{"0", "1"}, asked[:2])
		require.ElementsMatch(t, []string{"2", "3"}, asked[2:4])
		require.Equal(t, []string{"4"}, asked[4:])
		for i, sub := range subs {
			want := []string{"accepted", "waiting_for_slot", "dispatched", "starting_engine", "streaming", "finalizing", "completed"}
			if i >= 2 {
				want = append([]string{"accepted", "queued_in_session"}, want[1:]...)
			}
			require.Equal(t, map[string][]string{turns[i].GetRunId(): want}, c.phases(sub))
			sub.Close()
		}
	})
}

// W18: a session with much to do does not starve the others.
func TestW18SlotsGoRoundAmongSessions(t *testing.T) {
	withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
		c.model.Otherwise(testkit.Delay(time.Second), testkit.Stream("ok"))
		var last *messages.TurnAccepted
		for i := range 10 {
			last = c.submit(named(0), fmt.Sprintf("much %d", i))
		}
		for i := range 4 {
			c.submit(named(1+i), fmt.Sprintf("one %d", i))
		}
		c.end(named(0), last.GetTurnId())
		require.Equal(t, []string{"much 0", "one 0", "one 1", "one 2", "one 3", "much 1", "much 2"}, c.asked()[:7])
	})
}

// hog takes one slot until it is aborted.
func (c *crowd) hog() (end func()) {
	c.t.Helper()
	hog := messages.NewKey("hog")
	c.model.Call(testkit.HangUntilCancel())
	accepted := c.submit(hog, "hog")
	require.Equal(c.t, "started", accepted.GetDisposition())
	synctest.Wait()
	return func() {
		_, err := c.client.Abort(c.t.Context(), hog, &messages.Abort{Scope: string(messages.AbortSession)})
		require.NoError(c.t, err)
		c.end(hog, accepted.GetTurnId())
	}
}

func TestW18SlotThatDoesNotComeInTimeFailsItsTurnAndTheNextGoesOn(t *testing.T) {
	withSlots(t, 1, func(d *session.Deps) { d.Core.SlotTimeout = time.Minute }, func(t *testing.T, c *crowd) {
		release := c.hog()
		c.model.Otherwise(testkit.Stream("ok"))
		sub := c.follow(key)
		first, second := c.submit(key, "first"), c.submit(key, "second", steering)
		time.Sleep(time.Minute - time.Nanosecond)
		require.Equal(t, "queued", c.status(key, first.GetTurnId()).GetState())
		time.Sleep(2 * time.Nanosecond)
		status := c.status(key, first.GetTurnId())
		require.Equal(t, "failed", status.GetState())
		require.Equal(t, string(messages.CodeSlotTimeout), status.GetReason())
		time.Sleep(59 * time.Second)
		require.Equal(t, "queued", c.status(key, second.GetTurnId()).GetState(), "it has its own time")
		release()
		require.Equal(t, "answered", c.end(key, second.GetTurnId()).GetState())
		require.Equal(t, []string{"hog", "second"}, c.asked())
		phases := c.phases(sub)
		require.Equal(t, []string{"accepted", "queued_in_session", "waiting_for_slot", "aborted"}, phases[first.GetRunId()])
		sub.Close()
	})
}

func TestTurnThatEndsWhileItWaitsForASlotNeverReachesTheProvider(t *testing.T) {
	for name, end := range map[string]func(c *crowd, accepted *messages.TurnAccepted) error{
		"abort of the turn": func(c *crowd, accepted *messages.TurnAccepted) error {
			_, err := c.client.Abort(c.t.Context(), key, &messages.Abort{Scope: string(messages.AbortTurn), TurnId: accepted.GetTurnId()})
			return err
		},
		"abort of the run": func(c *crowd, accepted *messages.TurnAccepted) error {
			_, err := c.client.Abort(c.t.Context(), key, &messages.Abort{Scope: string(messages.AbortRun), RunId: accepted.GetRunId()})
			return err
		},
		"abort of the session": func(c *crowd, _ *messages.TurnAccepted) error {
			_, err := c.client.Abort(c.t.Context(), key, &messages.Abort{Scope: string(messages.AbortSession)})
			return err
		},
		"withdraw": func(c *crowd, accepted *messages.TurnAccepted) error {
			_, _, err := c.client.Withdraw(c.t.Context(), key, accepted.GetTurnId())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
				release := c.hog()
				accepted := c.submit(key, "never")
				require.Equal(t, slots.Stats{Used: 1, Waiting: 1}, c.stats())
				require.NoError(t, end(c, accepted))
				require.Equal(t, slots.Stats{Used: 1}, c.stats(), "it waits for nothing more")
				require.Contains(t, []string{"cancelled", "withdrawn"}, c.end(key, accepted.GetTurnId()).GetState())
				release()
				require.Equal(t, []string{"hog"}, c.asked())
			})
		})
	}
}

func TestInterruptGoesBeforeATurnThatWaitsForItsSlot(t *testing.T) {
	withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
		release := c.hog()
		c.model.Otherwise(testkit.Stream("ok"))
		sub := c.follow(key)
		waits := c.submit(key, "waits")
		urgent := c.submit(key, "urgent", mode(messages.QueueInterrupt))
		require.Equal(t, slots.Stats{Used: 1, Waiting: 1}, c.stats(), "a session asks for one slot at a time")
		release()
		require.Equal(t, "answered", c.end(key, waits.GetTurnId()).GetState())
		require.Equal(t, []string{"hog", "urgent", "waits"}, c.asked())
		for run, phases := range c.phases(sub) {
			require.Equal(t, 1, count(phases, "waiting_for_slot"), "%s of %s: %v", run, urgent.GetRunId(), phases)
		}
		sub.Close()
	})
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// B71: a call that ignores its cancel goes on, and so it counts.
func TestB71ZombieKeepsItsSlotUntilItReturns(t *testing.T) {
	withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
		gate := make(chan struct{})
		c.model.Call(testkit.HangDespiteCancel(gate)).Otherwise(testkit.Stream("ok"))
		zombie := c.submit(named(1), "zombie")
		synctest.Wait()
		_, err := c.client.Abort(t.Context(), named(1), &messages.Abort{})
		require.NoError(t, err)
		require.Equal(t, "cancelled", c.end(named(1), zombie.GetTurnId()).GetState())
		next, other := c.submit(named(1), "next"), c.submit(named(2), "other")
		time.Sleep(time.Minute)
		require.Equal(t, slots.Stats{Used: 1, Waiting: 2}, c.stats())
		require.Len(t, c.model.Calls(), 1)
		close(gate)
		require.Equal(t, "answered", c.end(named(1), next.GetTurnId()).GetState())
		require.Equal(t, "answered", c.end(named(2), other.GetTurnId()).GetState())
		require.Equal(t, []string{"zombie", "next", "other"}, c.asked())
	})
}

// A session that breaks gives back what it has and what it waits for, also what is granted to it meanwhile.
func TestSessionThatPanicsGivesItsSlotsBack(t *testing.T) {
	for name, limit := range map[string]int{"while it waits": 1, "while it works": 2} {
		t.Run(name, func(t *testing.T) {
			journal := new(panicky)
			withSlots(t, limit, func(d *session.Deps) { journal.Journal, d.Journal = d.Journal, journal }, func(t *testing.T, c *crowd) {
				release := c.hog()
				c.model.Otherwise(testkit.Delay(time.Second), testkit.Stream("ok"))
				accepted := c.submit(key, "one")
				synctest.Wait()
				journal.next.Store(true)
				_, err := c.client.Submit(t.Context(), key, turn("boom"))
				require.True(t, requireCode(t, messages.CodeUnavailable, err).GetRetryable())
				release()
				require.Equal(t, "answered", c.end(key, accepted.GetTurnId()).GetState(), "it goes on after its restart")
			})
		})
	}
}

// A stop while some work and others wait leaves nothing behind; again checks it.
func TestRestartWithOpenSessionsAndOneSlotAnswersAll(t *testing.T) {
	withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
		c.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Delay(time.Second), testkit.Stream("ok"))
		var turns []*messages.TurnAccepted
		for i := range 5 {
			turns = append(turns, c.submit(named(i), strconv.Itoa(i)))
		}
		require.Equal(t, slots.Stats{Used: 1, Waiting: 4}, c.stats())
		c.again()
		c.activate()
		require.Equal(t, slots.Stats{Used: 1, Waiting: 4}, c.stats())
		for i, accepted := range turns {
			require.Equal(t, "answered", c.end(named(i), accepted.GetTurnId()).GetState())
		}
		require.Len(t, c.asked(), 6, "the first one twice, no other")
	})
}

func TestSessionThatWaitsForASlotStaysInMemory(t *testing.T) {
	withSlots(t, 1, func(d *session.Deps) { d.Idle = time.Second }, func(t *testing.T, c *crowd) {
		release := c.hog()
		c.model.Otherwise(testkit.Stream("ok"))
		accepted := c.submit(key, "waits")
		time.Sleep(time.Minute)
		require.Equal(t, slots.Stats{Used: 1, Waiting: 1}, c.stats())
		release()
		require.Equal(t, "answered", c.end(key, accepted.GetTurnId()).GetState())
		time.Sleep(3 * time.Second)
		active, err := c.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active)
	})
}

// An orderly stop does not wait for those who wait: they are found open by the next start.
func TestOrderlyStopGivesBackWhatWaits(t *testing.T) {
	withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
		c.model.Call(testkit.Delay(10*time.Second), testkit.Stream("done")).Otherwise(testkit.Stream("ok"))
		works, waits := c.submit(named(1), "works"), c.submit(named(2), "waits")
		budget, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		require.NoError(t, c.dir.Drain(budget, t.Context()))
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Second))
		require.Equal(t, slots.Stats{}, c.stats())
		require.Equal(t, "answered", c.status(named(1), works.GetTurnId()).GetState())
		require.Equal(t, "queued", c.status(named(2), waits.GetTurnId()).GetState())
		c.again()
		c.activate()
		require.Equal(t, "answered", c.end(named(2), waits.GetTurnId()).GetState())
		require.Equal(t, []string{"works", "waits"}, c.asked())
	})
}

// A start that is not stored keeps no slot; one that is tried again starts once.
func TestFailedAppendsKeepNoSlot(t *testing.T) {
	for name, fail := range map[string]func(*testkit.FaultyJournal){
		"unavailable":      func(j *testkit.FaultyJournal) { j.FailNext(1, persistence.ErrUnavailable) },
		"conflict":         func(j *testkit.FaultyJournal) { j.ConflictNext() },
		"unknown, stored":  func(j *testkit.FaultyJournal) { j.UnknownNext(true) },
		"unknown, not so":  func(j *testkit.FaultyJournal) { j.UnknownNext(false) },
		"unknown for long": func(j *testkit.FaultyJournal) { j.UnknownNext(true); j.FailNext(50, persistence.ErrUnknown) },
	} {
		t.Run(name, func(t *testing.T) {
			withSlots(t, 1, nil, func(t *testing.T, c *crowd) {
				c.model.Otherwise(testkit.Stream("ok"))
				_, err := c.client.Start(t.Context(), key, &messages.SessionConfig{})
				require.NoError(t, err)
				fail(c.journal)
				_, _ = c.client.Submit(t.Context(), key, turn("one", keyed("k")))
				time.Sleep(time.Minute)
				require.Equal(t, slots.Stats{}, c.stats())
				again := c.submit(key, "one", keyed("k"))
				require.Equal(t, "answered", c.end(key, again.GetTurnId()).GetState())
				require.Equal(t, []string{"one"}, c.asked(), "once")
			})
		})
	}
}

// The deadline of a wait is that wait's: one of before a replay in place does not end the wait after it.
func TestEachWaitForASlotHasItsOwnDeadline(t *testing.T) {
	withSlots(t, 1, func(d *session.Deps) { d.Core.SlotTimeout = time.Minute }, func(t *testing.T, c *crowd) {
		release := c.hog()
		c.model.Call(testkit.HangUntilCancel()).Call(testkit.Delay(50*time.Second), testkit.Stream("ok")).Otherwise(testkit.Stream("ok"))
		accepted := c.submit(key, "one")
		time.Sleep(40 * time.Second)
		release()
		other := c.submit(messages.NewKey("other"), "other")
		time.Sleep(time.Second)
		c.journal.ConflictNext()
		_, err := c.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "s"})
		require.NoError(t, err)
		require.Equal(t, slots.Stats{Used: 1, Waiting: 1}, c.stats(), "it waits again, behind the other one")
		require.Equal(t, "answered", c.end(messages.NewKey("other"), other.GetTurnId()).GetState())
		require.Equal(t, "answered", c.end(key, accepted.GetTurnId()).GetState())
		require.Equal(t, []string{"hog", "one", "other", "one"}, c.asked())
	})
}
