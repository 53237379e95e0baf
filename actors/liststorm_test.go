package actors_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence/bolt"
	"github.com/correx/correx-actors/testkit"
)

// TestAWalkThroughTheListIsWholeWhileSessionsCome follows a list to its end again and again, while sessions are made, answer
// and leave memory: what was in a state all the while is there, once, and everything is in order.
func TestAWalkThroughTheListIsWholeWhileSessionsCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal, err := bolt.Open(bolt.Config{
			Path: filepath.Join(t.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		model := testkit.NewProvider(t)
		h := start(t, testkit.NewFaultyJournal(journal), model, func(d *session.Deps) { d.Idle = 2 * time.Second })
		defer func() {
			h.stop()
			require.NoError(t, h.journal.Close())
		}()
		s := &listStorm{h: h, stay: stayPut(t, h, model)}
		var writers sync.WaitGroup
		for seed := range uint64(4) {
			writers.Go(func() { s.write(t, rand.New(rand.NewPCG(seed, 1))) }) //nolint:gosec // repeatable on purpose
		}
		var walkers sync.WaitGroup
		for seed := range uint64(3) {
			walkers.Go(func() { s.walk(t, seed) })
		}
		writers.Wait()
		s.over.Store(true)
		walkers.Wait()
		require.Greater(t, s.walks.Load(), int64(20))
	})
}

type listStorm struct {
	h *host
	// stay are the sessions that nobody touches, by their state.
	stay  map[directory.State][]messages.SessionID
	over  atomic.Bool
	walks atomic.Int64
}

// stayPut makes sessions among the names of the storm, that stay in their state: passivated, idle with a reader, busy.
func stayPut(t *testing.T, h *host, model *testkit.ScriptedProvider) map[directory.State][]messages.SessionID {
	stay := make(map[directory.State][]messages.SessionID)
	make20 := func(state directory.State, suffix string) {
		for n := range 20 {
			id := messages.SessionID(fmt.Sprintf("s%03d%s", n*10, suffix))
			h.submitTo(id, "hi")
			stay[state] = append(stay[state], id)
		}
		synctest.Wait()
	}
	model.Otherwise(testkit.Stream("ok"))
	make20(actors.SessionPassivated, "p")
	time.Sleep(2 * h.deps.Idle)
	make20(actors.SessionIdle, "i")
	for _, id := range stay[actors.SessionIdle] {
		sub, err := h.client.Subscribe(t.Context(), messages.NewKey(id), actors.SubscribeOptions{})
		require.NoError(t, err)
		t.Cleanup(sub.Close)
	}
	model.Otherwise(testkit.HangUntilCancel())
	make20(actors.SessionBusy, "b")
	model.Otherwise(testkit.Delay(200*time.Millisecond), testkit.Stream("ok"))
	for _, ids := range stay {
		stay[""] = append(stay[""], ids...)
	}
	return stay
}

func (s *listStorm) write(t *testing.T, r *rand.Rand) {
	for range 60 {
		id := messages.SessionID(fmt.Sprintf("s%03d", r.IntN(200)))
		_, err := s.h.client.Submit(t.Context(), messages.NewKey(id), turn("hi"))
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	}
}

func (s *listStorm) walk(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // repeatable on purpose
	states := []directory.State{"", actors.SessionBusy, actors.SessionIdle, actors.SessionPassivated}
	for !s.over.Load() {
		q := directory.Query{
			Tenant: messages.DefaultTenant, State: states[r.IntN(len(states))], Limit: 5 + r.IntN(40),
		}
		var seen []messages.SessionID
		for {
			page, err := s.h.client.SessionsPage(t.Context(), q)
			if err != nil {
				t.Error(err)
				return
			}
			for _, row := range page.Sessions {
				seen = append(seen, row.Key.Session)
				if q.State != "" && row.State != q.State {
					t.Errorf("%s is %s in a list of %s", row.Key, row.State, q.State)
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
		if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Errorf("not in order, or twice: %v", seen)
		}
		for _, id := range s.stay[q.State] {
			if _, found := slices.BinarySearch(seen, id); !found {
				t.Errorf("%s is not in the list of %q", id, q.State)
			}
		}
		s.walks.Add(1)
		time.Sleep(20 * time.Millisecond)
	}
}
