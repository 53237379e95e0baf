package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// TestStormOfFaults drives one session through random schedules of turns, aborts, a journal that fails in every way, thieves,
// restarts and passivations, and then asks for every turn that was accepted (I2, I6, I7, I8, I11).
func TestStormOfFaults(t *testing.T) {
	seeds := uint64(30)
	if os.Getenv("CORREX_SOAK") == "1" {
		seeds = 1500
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.model.Otherwise(testkit.Stream("ok"))
				s := &storm{
					t: t, h: h, r: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // repeatable on purpose
					turns: make(map[string]*messages.SubmitTurn), finals: make(map[string]uint64),
				}
				for range 80 {
					s.step()
				}
				s.calm()
			})
		})
	}
}

type storm struct {
	t *testing.T
	h *host
	r *rand.Rand
	// turns that were accepted, by id.
	turns map[string]*messages.SubmitTurn
	ids   []string
	sub   *actors.Subscription
	last  uint64
	// finals by run.
	finals map[string]uint64
}

func (s *storm) step() {
	switch s.r.IntN(16) {
	case 0, 1, 2, 3:
		s.submit()
	case 4:
		s.abort()
	case 5:
		s.h.journal.FailNext(1+s.r.IntN(4), []error{persistence.ErrFull, persistence.ErrUnavailable}[s.r.IntN(2)])
	case 6:
		s.h.journal.ConflictNext()
	case 7, 8:
		s.h.journal.UnknownNext(s.r.IntN(2) == 0)
		if s.r.IntN(2) == 0 {
			s.h.journal.FailNext(s.r.IntN(30), persistence.ErrUnknown)
		}
	case 9:
		s.h.journal.FailClaims(s.r.IntN(3), persistence.ErrUnavailable)
	case 10:
		_, _ = s.h.journal.StealEpoch(s.t.Context(), key)
	case 11, 12:
		s.restart(s.r.IntN(2) == 0)
	case 13:
		s.h.journal.Pass(s.r.IntN(3))
	default:
		s.listen(time.Duration(s.r.IntN(200)) * time.Millisecond)
	}
}

func (s *storm) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), 5*time.Minute)
}

// submit tries until the turn is accepted, as a client with a key does.
func (s *storm) submit() {
	turn := &messages.SubmitTurn{Text: fmt.Sprintf("turn %d", len(s.ids)), IdempotencyKey: fmt.Sprintf("k%d", len(s.ids))}
	if s.r.IntN(2) == 0 {
		steering(turn)
	}
	switch s.r.IntN(4) {
	case 0:
		s.h.model.Call(testkit.Delay(time.Duration(s.r.IntN(2000))*time.Millisecond), testkit.Stream("slow"))
	case 1:
		s.h.model.Call(testkit.HangUntilCancel())
	}
	for range 1000 {
		ctx, cancel := s.within()
		accepted, err := s.h.client.Submit(ctx, key, turn)
		require.NoError(s.t, ctx.Err(), "no answer")
		cancel()
		if err == nil {
			s.turns[accepted.GetTurnId()] = turn
			s.ids = append(s.ids, accepted.GetTurnId())
			return
		}
		var f *messages.Failure
		require.ErrorAs(s.t, err, &f)
		require.True(s.t, f.GetRetryable(), "%v", f)
		if s.r.IntN(3) == 0 {
			s.abort()
		}
		time.Sleep(time.Duration(s.r.IntN(1000)) * time.Millisecond)
	}
	require.Fail(s.t, "the turn is never accepted")
}

func (s *storm) abort() {
	ctx, cancel := s.within()
	defer cancel()
	abort := &messages.Abort{Scope: string([]messages.AbortScope{messages.AbortRun, messages.AbortSession}[s.r.IntN(2)])}
	if len(s.ids) > 0 && s.r.IntN(2) == 0 {
		abort = &messages.Abort{Scope: string(messages.AbortTurn), TurnId: s.ids[s.r.IntN(len(s.ids))]}
	}
	_, err := s.h.client.Abort(ctx, key, abort)
	require.NoError(s.t, ctx.Err(), "no answer: %v", err)
}

func (s *storm) restart(orderly bool) {
	s.drop()
	if orderly {
		budget, cancel := context.WithTimeout(s.t.Context(), time.Second)
		end, stop := s.within()
		_ = s.h.dir.Drain(budget, end)
		cancel()
		stop()
	}
	s.h.stop()
	*s.h = *start(s.t, s.h.journal, s.h.model, func(d *session.Deps) { d.Idle = 50 * time.Millisecond })
	s.h.activate()
}

func (s *storm) drop() {
	if s.sub != nil {
		s.sub.Close()
		s.sub = nil
	}
}

// listen follows for a while and checks the numbers.
func (s *storm) listen(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if s.sub == nil {
		sub, err := s.h.client.Subscribe(ctx, key, actors.SubscribeOptions{AfterSeq: &s.last})
		if err != nil {
			return
		}
		s.sub = sub
	}
	for {
		item, err := s.sub.Next(ctx)
		if err != nil {
			if ctx.Err() == nil || s.r.IntN(3) == 0 {
				s.drop()
			}
			return
		}
		s.item(item)
	}
}

func (s *storm) item(item actors.Item) {
	switch m := item.(type) {
	case *messages.Resync:
		require.GreaterOrEqual(s.t, m.GetUpToSeq(), s.last, "I11")
		s.last = m.GetUpToSeq()
	case *messages.DeliveryIntent:
		response, final := m.Intent().(*messages.RouterResponse)
		require.Greater(s.t, m.GetSeq(), s.last, "I11: %v", m)
		if final {
			before, twice := s.finals[response.GetRunId()]
			require.False(s.t, twice && before != m.GetSeq(), "I9: %v", m)
			s.finals[response.GetRunId()] = m.GetSeq()
		} else {
			require.Equal(s.t, s.last+1, m.GetSeq(), "I11: %v", m)
		}
		s.last = m.GetSeq()
	}
}

// calm ends all faults and asks for everything.
func (s *storm) calm() {
	s.submit()
	time.Sleep(10 * time.Minute)
	s.restart(false) // what faults are left hit the recovery
	s.submit()
	time.Sleep(10 * time.Minute)
	s.drop()
	var notes []string
	runs := make(map[string]bool)
	for _, id := range s.ids {
		turn, status := s.turns[id], s.h.end(id)
		byKey, err := s.h.client.TurnByKey(s.t.Context(), key, turn.GetIdempotencyKey())
		require.NoError(s.t, err)
		require.Equal(s.t, id, byKey.GetTurnId(), "I8: %s", turn.GetIdempotencyKey())
		taken := status.GetOutcome() != ""
		runs[status.GetRunId()] = taken
		steers := turn.GetMode() == string(messages.ChatModeSteering)
		require.Equal(s.t, taken && steers, status.GetSteeringEmitted(), "I2")
		if taken && steers {
			notes = append(notes, turn.GetText())
		}
	}
	require.ElementsMatch(s.t, notes, s.h.notes(), "I2")
	s.last = 0
	clear(s.finals)
	s.listen(5 * time.Second)
	for run, taken := range runs {
		require.Equal(s.t, taken, s.finals[run] > 0, "I9: %s", run)
	}
	require.Empty(s.t, s.h.state().GetQueue())
}
