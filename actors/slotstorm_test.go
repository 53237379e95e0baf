package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// TestStormOfSlots lets some sessions of few slots meet turns of all modes and conversations, stops of all kinds, and a journal
// that is slow and fails. No call is made without its slot and lease, every turn has its end, and everything is given back.
func TestStormOfSlots(t *testing.T) {
	seeds := uint64(40)
	if os.Getenv("CORREX_SOAK") == "1" {
		seeds = 3000
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // repeatable on purpose
			limit := 1 + r.IntN(3)
			meter := &meter{t: t, limit: limit}
			broken := new(panicky)
			withSlots(t, limit, func(d *session.Deps) {
				broken.Journal, d.Journal = d.Journal, broken
				meter.Provider = testkit.NewProvider(t).Named("scripted").Otherwise(testkit.Stream("never"))
				d.Runner.Router = testkit.Route(meter)
				d.Core.ResumeEngines = []string{"codex"}
				d.Core.SlotTimeout, d.Core.RecoveryMaxAttempts = 20*time.Second, 1000
				d.Core.Settle = time.Duration(r.IntN(2)) * 100 * time.Millisecond
				d.Idle = 50 * time.Millisecond
			}, func(t *testing.T, c *crowd) {
				s := &slotStorm{c: c, r: r, broken: broken}
				meter.r = rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // repeatable on purpose
				for range 120 {
					s.step(t)
				}
				s.calm(t)
			})
		})
	}
}

// meter is a provider that counts the calls that are under way, and those of each conversation.
type meter struct {
	inference.Provider
	t     *testing.T
	limit int

	mu    sync.Mutex
	r     *rand.Rand
	calls int
	of    map[string]int
}

// conversations are the token that a turn's text names, and the run itself: neither may be at work twice. Only the call that was
// canceled when its session replayed may still be on its way out when the run's next one begins.
func conversations(req inference.Request) []string {
	entries := req.Pack.Entries
	text := entries[len(entries)-1].Content
	if token, _, ok := strings.Cut(text, " "); ok && strings.HasPrefix(token, "t") {
		return []string{token, req.RunID}
	}
	return []string{req.RunID}
}

func (m *meter) Infer(ctx context.Context, req inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	m.enter(req)
	defer m.leave(req)
	m.mu.Lock()
	pause := time.Duration(1+m.r.IntN(1500)) * time.Millisecond
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return inference.Completion{}, inference.Canceled(ctx, m.Name())
	case <-time.After(pause):
	}
	m.mu.Lock()
	if m.of[req.RunID] > 1 { // one that was canceled for the other has left long ago
		m.t.Errorf("%s is at work twice", req.RunID)
	}
	m.mu.Unlock()
	if err := report(inference.Delta{Text: "ok"}); err != nil {
		return inference.Completion{}, err
	}
	return inference.Completion{FinishReason: inference.FinishStop}, nil
}

func (m *meter) enter(req inference.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.calls > m.limit {
		m.t.Errorf("%d calls at once, want at most %d", m.calls, m.limit)
	}
	if m.of == nil {
		m.of = make(map[string]int)
	}
	for _, c := range conversations(req) {
		if m.of[c]++; m.of[c] > 1 && c != req.RunID {
			m.t.Errorf("%s is at work twice", c)
		}
	}
}

func (m *meter) leave(req inference.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls--
	for _, c := range conversations(req) {
		m.of[c]--
	}
}

type slotStorm struct {
	c      *crowd
	r      *rand.Rand
	broken *panicky
	count  int
	asking sync.WaitGroup

	mu    sync.Mutex
	turns []acceptedTurn
}

type acceptedTurn struct {
	key messages.Key
	*messages.TurnAccepted
}

func (s *slotStorm) step(t *testing.T) {
	switch s.r.IntN(24) {
	case 0, 1, 2:
		s.stop(t)
	case 3:
		s.c.journal.ConflictNext()
	case 4:
		s.c.journal.FailNext(1+s.r.IntN(3), persistence.ErrUnavailable)
	case 5:
		s.c.journal.UnknownNext(s.r.IntN(2) == 0)
	case 6:
		s.c.journal.Delay(time.Duration(s.r.IntN(200)) * time.Millisecond)
	case 7:
		s.broken.next.Store(s.r.IntN(3) == 0)
	case 8:
		_, _ = s.c.journal.StealEpoch(t.Context(), named(s.r.IntN(4)))
	case 9:
		if s.r.IntN(5) == 0 {
			s.broken.next.Store(false)
			s.c.again()
			s.c.activate()
		}
	case 10, 11, 12, 13, 14:
		time.Sleep(time.Duration(s.r.IntN(500)) * time.Millisecond)
	default:
		s.submit(t)
	}
}

// submit does not wait for the answer: what comes while an append is under way is decided together.
func (s *slotStorm) submit(t *testing.T) {
	client, to, request := s.c.client, named(s.r.IntN(4)), s.turn()
	s.asking.Go(func() {
		accepted, err := client.Submit(t.Context(), to, request)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turns = append(s.turns, acceptedTurn{to, accepted})
	})
}

func (s *slotStorm) turn() *messages.SubmitTurn {
	modes := []messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueFollowup, messages.QueueSteer, messages.QueueInterrupt,
	}
	s.count++
	request := turn(fmt.Sprintf("say %d", s.count), mode(modes[s.r.IntN(len(modes))]))
	if token := s.r.IntN(4); token < 2 {
		request.Resume = &messages.ResumeToken{Engine: "codex", Token: fmt.Sprintf("t%d", token)}
		request.Text = fmt.Sprintf("t%d %d", token, s.count)
	}
	return request
}

// stop ends a turn, a run or all of a session, without waiting for the answer.
func (s *slotStorm) stop(t *testing.T) {
	client := s.c.client
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		return
	}
	one := s.turns[max(0, len(s.turns)-1-s.r.IntN(6))]
	what := s.r.IntN(4)
	s.asking.Go(func() {
		switch what {
		case 0, 1:
			_, _, _ = client.Withdraw(t.Context(), one.key, one.GetTurnId())
		case 2:
			_, _ = client.Abort(t.Context(), one.key, &messages.Abort{Scope: string(messages.AbortTurn), TurnId: one.GetTurnId()})
		case 3:
			_, _ = client.Abort(t.Context(), one.key, &messages.Abort{Scope: string(messages.AbortSession)})
		}
	})
}

func (s *slotStorm) calm(t *testing.T) {
	s.broken.next.Store(false)
	s.asking.Wait()
	s.c.journal.Delay(0)
	time.Sleep(10 * time.Minute)
	s.c.again() // what faults are left hit the recovery
	s.c.activate()
	for _, turn := range s.turns {
		status := s.c.end(turn.key, turn.GetTurnId())
		if status.GetState() == string(messages.TurnFailed) {
			require.Equal(t, string(messages.CodeSlotTimeout), status.GetReason(), "%v", status)
		}
	}
	time.Sleep(time.Minute)
	for i := range 4 {
		accepted := s.last(t, named(i))
		require.Equal(t, string(messages.TurnAnswered), s.c.end(named(i), accepted.GetTurnId()).GetState())
	}
}

// last submits once more; a fault that is left may refuse it, and then it is sent again.
func (s *slotStorm) last(t *testing.T, to messages.Key) *messages.TurnAccepted {
	t.Helper()
	for range 50 {
		accepted, err := s.c.client.Submit(t.Context(), to, turn("last"))
		if err == nil {
			return accepted
		}
		requireCode(t, messages.CodeUnavailable, err)
	}
	require.FailNow(t, "the journal has no end of faults")
	return nil
}
