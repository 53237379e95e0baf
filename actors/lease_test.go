package actors_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// engine keeps conversations under resume tokens, as the command-line agents do. It writes down what it is asked to go on with.
type engine struct {
	// stable engines give the same token again, others a new one with each answer.
	stable bool
	// deaf runs do not end when they are canceled.
	deaf bool
	// refuse is how many starts fail before their work begins.
	refuse int

	mu    sync.Mutex
	works int
	most  int
	given int
	log   []string
}

// engineRun is an attempt of the engine: it answers after a second.
type engineRun struct {
	sys   *kernel.System
	of    *engine
	order core.RunOrder
	hold  runner.Hold
	begun bool
}

// Receive implements actor.Actor.
func (r *engineRun) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		if r.begun = r.of.begin(r.order) && r.hold.Adopt(); !r.begun {
			ctx.Stop(ctx.Self())
			return
		}
		r.of.enter(r.order)
		r.sys.After(time.Second, ctx.Self(), atEnd{})
	case runner.Cancel:
		if !r.of.deaf {
			r.finish(ctx, core.RunFinished{Outcome: messages.OutcomeCancelled})
		}
	case atEnd:
		r.finish(ctx, core.RunFinished{Outcome: messages.OutcomeCompleted, Content: "ok", Resume: r.of.token(r.order)})
	case *actor.Stopping, *actor.Restarting:
		r.end()
	}
}

func (r *engineRun) finish(ctx actor.Context, end core.RunFinished) {
	end.RunID, end.Attempt = r.order.RunID, r.order.Attempt
	r.sys.Tell(ctx.Parent(), end)
	r.end()
	ctx.Stop(ctx.Self())
}

func (r *engineRun) end() {
	if r.begun {
		r.begun = false
		r.of.leave()
		r.hold.Release()
	}
}

// begin says whether the start goes well.
func (e *engine) begin(core.RunOrder) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse--
	return e.refuse < 0
}

func (e *engine) enter(order core.RunOrder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.works++
	e.most = max(e.most, e.works)
	token := "-"
	if order.Resume != nil {
		token = order.Resume.GetToken()
	}
	e.log = append(e.log, order.Turns[len(order.Turns)-1].Content+" on "+token)
}

func (e *engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.works--
}

func (e *engine) token(order core.RunOrder) *messages.ResumeToken {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stable && order.Resume != nil {
		return order.Resume
	}
	e.given++
	return resume(fmt.Sprintf("new%d", e.given))
}

// atOnce is the most runs that were at work at one time.
func (e *engine) atOnce() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.most
}

func (e *engine) did() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.log)
}

func resume(token string) *messages.ResumeToken {
	return &messages.ResumeToken{Engine: "codex", Token: token}
}

func resuming(token string) func(*messages.SubmitTurn) {
	return func(t *messages.SubmitTurn) { t.Resume = resume(token) }
}

// withEngine runs scenario on a process whose runs are those of an engine, with slots enough.
func withEngine(t *testing.T, e *engine, scenario func(t *testing.T, c *crowd)) {
	t.Helper()
	withSlots(t, 9, func(d *session.Deps) {
		sys := d.Kernel
		d.Core.ResumeEngines = []string{"codex"}
		d.Idle = time.Minute
		d.NewRunner = func(order core.RunOrder, hold runner.Hold) *actor.Props {
			return sys.Props(func() actor.Actor { return &engineRun{sys: sys, of: e, order: order, hold: hold} }, kernel.PropsOptions{})
		}
	}, scenario)
}

func TestW48SessionsWithOneTokenAreServedInOrderAndNeverAtOnce(t *testing.T) {
	e := &engine{stable: true}
	withEngine(t, e, func(t *testing.T, c *crowd) {
		var last *messages.TurnAccepted
		for i := range 4 {
			last = c.submit(named(i%2), strconv.Itoa(i), resuming("t"))
		}
		require.Equal(t, slots.Stats{Used: 1, Leases: 1, WaitingForLease: 1}, c.stats(), "who waits for a lease holds no slot")
		other := c.submit(named(2), "other", resuming("u"))
		require.Equal(t, "started", other.GetDisposition(), "another conversation")
		require.Equal(t, "answered", c.end(named(1), last.GetTurnId()).GetState())
		require.Equal(t, []string{"0 on t", "other on u", "1 on t", "2 on t", "3 on t"}, e.did())
		require.Equal(t, 2, e.atOnce())
	})
}

// W2: what a queued turn goes on with is settled when it starts: it resumes what it follows.
func TestW2QueuedTurnResumesWhatItFollows(t *testing.T) {
	e := new(engine)
	withEngine(t, e, func(t *testing.T, c *crowd) {
		c.submit(key, "a", resuming("t"))
		c.submit(key, "b")
		last := c.submit(key, "c")
		require.Equal(t, "answered", c.end(key, last.GetTurnId()).GetState())
		require.Equal(t, []string{"a on t", "b on new1", "c on new2"}, e.did())
		c.again() // the token outlives the process
		next := c.submit(key, "d")
		require.Equal(t, "answered", c.end(key, next.GetTurnId()).GetState())
		require.Equal(t, "d on new3", e.did()[3])
	})
}

// The lease is of the lineage: an engine that gives a new token with each answer goes on with one conversation.
func TestW48LeaseFollowsTheLineage(t *testing.T) {
	e := new(engine)
	withEngine(t, e, func(t *testing.T, c *crowd) {
		c.end(key, c.submit(key, "a", resuming("t")).GetTurnId())
		c.submit(key, "b") // on new1
		for _, token := range []string{"t", "new1"} {
			other := c.submit(messages.NewKey("other"), token, resuming(token))
			require.Equal(t, "queued", other.GetDisposition(), token)
			require.Equal(t, 1, c.stats().WaitingForLease, token)
		}
		time.Sleep(time.Minute)
		require.Equal(t, 1, e.atOnce())
		require.Equal(t, []string{"a on t", "b on new1", "t on t", "new1 on new1"}, e.did())
	})
}

// A session that has left memory has left its lineage unknown; it finds its newest token in use when it comes back.
func TestW48SessionThatComesBackWaitsForWhoUsesItsToken(t *testing.T) {
	e := new(engine)
	withEngine(t, e, func(t *testing.T, c *crowd) {
		c.end(key, c.submit(key, "a", resuming("t")).GetTurnId())
		time.Sleep(3 * c.deps.Idle)
		active, err := c.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active)
		c.submit(messages.NewKey("other"), "b", resuming("new1"))
		mine := c.submit(key, "c")
		require.Equal(t, "queued", mine.GetDisposition())
		c.end(key, mine.GetTurnId())
		require.Equal(t, 1, e.atOnce())
		require.Equal(t, []string{"a on t", "b on new1", "c on new1"}, e.did())
	})
}

func TestInterruptOfAnotherSessionEndsTheHolder(t *testing.T) {
	urgent := func(t *testing.T, c *crowd) *messages.TurnAccepted {
		t.Helper()
		return c.submit(messages.NewKey("other"), "urgent", resuming("t"), mode(messages.QueueInterrupt))
	}
	for name, interrupt := range map[string]func(t *testing.T, c *crowd) *messages.TurnAccepted{
		"at work": func(t *testing.T, c *crowd) *messages.TurnAccepted {
			synctest.Wait()
			return urgent(t, c)
		},
		"before its start is known to be stored": urgent,
		"by a session that waits already": func(t *testing.T, c *crowd) *messages.TurnAccepted {
			synctest.Wait()
			c.submit(messages.NewKey("other"), "patient", resuming("t"))
			return urgent(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{stable: true}
			withEngine(t, e, func(t *testing.T, c *crowd) {
				ended := make(chan *messages.TurnAccepted)
				if name == "before its start is known to be stored" {
					c.journal.UnknownNext(true)
				}
				go func() {
					accepted, _ := c.client.Submit(t.Context(), key, turn("mine", resuming("t")))
					ended <- accepted
				}()
				synctest.Wait()
				begin := time.Now()
				next := interrupt(t, c)
				mine := <-ended
				require.Equal(t, "interrupted", c.end(key, mine.GetTurnId()).GetState())
				require.Less(t, time.Since(begin), 900*time.Millisecond, "it did not end by itself")
				require.Equal(t, "answered", c.end(messages.NewKey("other"), next.GetTurnId()).GetState())
				require.Equal(t, []string{"mine on t", "urgent on t"}, e.did()[:2])
				time.Sleep(time.Minute)
				require.Equal(t, 1, e.atOnce())
			})
		})
	}
}

func TestLeaseIsFreedWhenTheHoldersSessionEnds(t *testing.T) {
	for name, kill := range map[string]func(t *testing.T, c *crowd){
		"fenced": func(t *testing.T, c *crowd) {
			_, err := c.journal.StealEpoch(t.Context(), key)
			require.NoError(t, err)
			_, err = c.client.Submit(t.Context(), key, turn("x"))
			requireCode(t, messages.CodeUnavailable, err)
		},
		"stopped": func(t *testing.T, c *crowd) {
			c.again()
			c.dir.Activate([]messages.Key{messages.NewKey("other")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{stable: true}
			withEngine(t, e, func(t *testing.T, c *crowd) {
				c.submit(key, "mine", resuming("t"))
				waits := c.submit(messages.NewKey("other"), "waits", resuming("t"))
				synctest.Wait()
				begin := time.Now()
				kill(t, c)
				c.end(messages.NewKey("other"), waits.GetTurnId())
				require.Less(t, time.Since(begin), 1500*time.Millisecond)
				require.Equal(t, []string{"mine on t", "waits on t"}, e.did()[:2])
				time.Sleep(time.Minute)
				require.Equal(t, 1, e.atOnce())
			})
		})
	}
}

// A run that ignores its cancel keeps the conversation: it is ended, and goes on writing.
func TestW48LeaseStaysWithARunThatIgnoresItsCancel(t *testing.T) {
	e := &engine{stable: true, deaf: true}
	withEngine(t, e, func(t *testing.T, c *crowd) {
		mine := c.submit(key, "mine", resuming("t"))
		synctest.Wait()
		_, err := c.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		other := c.submit(messages.NewKey("other"), "waits", resuming("t"))
		require.Equal(t, "queued", other.GetDisposition())
		require.Equal(t, "cancelled", c.end(key, mine.GetTurnId()).GetState())
		c.end(messages.NewKey("other"), other.GetTurnId())
		require.Equal(t, 1, e.atOnce())
	})
}

// W9: a start that fails is tried again, in the same attempt and slot; then its turn fails and the next one goes on.
func TestW9StartThatFailsIsTriedAgain(t *testing.T) {
	for refuse, want := range map[int]string{1: "answered", 3: "answered", 4: "failed"} {
		t.Run(fmt.Sprint(refuse, " times"), func(t *testing.T) {
			e := &engine{refuse: refuse}
			withEngine(t, e, func(t *testing.T, c *crowd) {
				first, second := c.submit(key, "a"), c.submit(key, "b")
				require.Equal(t, slots.Stats{Used: 1}, c.stats(), "it keeps its slot meanwhile")
				require.Equal(t, want, c.end(key, first.GetTurnId()).GetState())
				require.Equal(t, "answered", c.end(key, second.GetTurnId()).GetState())
				if want == "failed" {
					require.Equal(t, string(messages.CodeInternal), c.end(key, first.GetTurnId()).GetReason())
					require.Equal(t, []string{"b on -"}, e.did())
				}
			})
		})
	}
}

// An interrupt that comes while a start is tried again is not forgotten.
func TestInterruptOfAHolderWhoseStartIsTriedAgain(t *testing.T) {
	e := &engine{stable: true, refuse: 1}
	withEngine(t, e, func(t *testing.T, c *crowd) {
		mine := c.submit(key, "mine", resuming("t"))
		synctest.Wait()
		urgent := c.submit(messages.NewKey("other"), "urgent", resuming("t"), mode(messages.QueueInterrupt))
		require.Equal(t, "interrupted", c.end(key, mine.GetTurnId()).GetState())
		require.Equal(t, "answered", c.end(messages.NewKey("other"), urgent.GetTurnId()).GetState())
		require.Equal(t, 1, e.atOnce())
	})
}
