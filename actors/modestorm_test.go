package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// TestStormOfModes sends turns of all queue modes to runs that can be steered, takes some back, stops runs, lets the journal fail,
// and then asks for every turn that was accepted: each has one end, and one note if it steers and a run took it (I2, I7).
func TestStormOfModes(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))    //nolint:gosec // repeatable on purpose
			runs := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // of the session's goroutine
			random := func(l *looper) {
				l.boundary, l.length = time.Duration(runs.IntN(900))*time.Millisecond, time.Duration(1+runs.IntN(1500))*time.Millisecond
				l.mute = runs.IntN(5) == 0
			}
			withLooper(t, random, func(t *testing.T, h *host) {
				s := &modeStorm{h: h, r: r}
				for range 150 {
					s.step(t)
				}
				time.Sleep(time.Hour)
				s.calm(t)
			})
		})
	}
}

type modeStorm struct {
	h     *host
	r     *rand.Rand
	turns []*messages.TurnAccepted
	texts []string
	modes []string
	asked int
}

func (s *modeStorm) step(t *testing.T) {
	pick := func() string {
		if len(s.turns) == 0 {
			return "turn_none"
		}
		return s.turns[max(0, len(s.turns)-1-s.r.IntN(8))].GetTurnId()
	}
	modes := []messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
	}
	switch s.r.IntN(20) {
	case 0:
		_, _ = s.h.client.Abort(t.Context(), key, &messages.Abort{Scope: string(messages.AbortTurn), TurnId: pick()})
	case 1:
		scope := []messages.AbortScope{messages.AbortRun, messages.AbortRun, messages.AbortSession}[s.r.IntN(3)]
		_, _ = s.h.client.Abort(t.Context(), key, &messages.Abort{Scope: string(scope)})
	case 2, 3:
		_, _, _ = s.h.client.Withdraw(t.Context(), key, pick())
	case 4:
		s.h.journal.ConflictNext()
	case 5:
		s.h.journal.FailNext(1+s.r.IntN(4), persistence.ErrUnavailable)
	case 6:
		s.h.journal.UnknownNext(s.r.IntN(2) == 0)
	case 7, 8, 9:
		time.Sleep(time.Duration(s.r.IntN(700)) * time.Millisecond)
	default:
		s.asked++
		name := fmt.Sprintf("turn %d", s.asked)
		request := turn(name, mode(modes[s.r.IntN(len(modes))]), keyed(name))
		if s.r.IntN(2) == 0 {
			steering(request)
		}
		if s.r.IntN(4) == 0 {
			_, _ = s.h.client.Explain(t.Context(), key, request)
		}
		accepted, err := s.h.client.Submit(t.Context(), key, request)
		if err != nil {
			return
		}
		s.turns, s.texts, s.modes = append(s.turns, accepted), append(s.texts, request.GetText()), append(s.modes, request.GetMode())
	}
}

func (s *modeStorm) calm(t *testing.T) {
	notes := make(map[string]int)
	for _, note := range s.h.notes() {
		notes[note]++
	}
	for i, accepted := range s.turns {
		status := s.h.end(accepted.GetTurnId())
		want := 0
		if s.modes[i] == string(messages.ChatModeSteering) && status.GetOutcome() != "" {
			want = 1
		}
		require.Equal(t, want, notes[s.texts[i]], "%v", status)
		require.Equal(t, want == 1, status.GetSteeringEmitted(), "%v", status)
	}
	state := s.h.state()
	require.Nil(t, state.GetActiveRun())
	require.Empty(t, state.GetQueue())
	require.Empty(t, state.GetPendingSteers())
}
