package testkit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/correx/correx-actors/actors/kernel"
)

// SeedVariable is the environment variable that makes Explore play one schedule alone.
const SeedVariable = "CORREX_SEED"

// Explore plays a scenario under so many schedules, each in a synctest bubble of its own and each chosen by its seed, and ends
// with the first that fails. Give the Schedule to kernel.Config as its Scheduler: then one actor at a time handles one message,
// and the seed says whose turn it is. A failure tells the seed and the last steps; with CORREX_SEED=<seed> the same schedule
// is played again, alone.
//
// Half of the schedules choose evenly. The others give every actor, timer and client a rank and follow it, so that one of them
// is late for long; that finds what even choices rarely do.
func Explore(t *testing.T, schedules int, scenario func(t *testing.T, s *Schedule)) {
	t.Helper()
	first, count := uint64(1), uint64(max(schedules, 0)) //nolint:gosec // it is not negative
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q is not a seed: %v", SeedVariable, text, err)
		}
		first, count = seed, 1
	}
	name := t.Name()
	for seed := first; seed-first < count && !t.Failed(); seed++ {
		t.Run("seed="+strconv.FormatUint(seed, 10), func(t *testing.T) {
			var s *Schedule
			defer func() {
				if reason := recover(); reason != nil { // a bubble in which nothing goes on any more
					t.Errorf("%v", reason)
				}
				if t.Failed() {
					t.Log(s.story(name))
				}
			}()
			synctest.Test(t, func(t *testing.T) {
				s = newSchedule(t, seed)
				go s.run()
				defer s.close()
				scenario(t, s)
			})
		})
	}
}

// Schedule decides what runs next: which actor handles a message, which timer fires, which client does its next thing. All
// but clients run only while everything else in the bubble is blocked, so the same choices give the same scenario again.
//
// Other goroutines, of a provider or a journal, run on their own. In a scenario do not call synctest.Wait, which the schedule
// needs itself; use Settle.
type Schedule struct {
	// Describe names a message in a failure's story; nil = by its type. It is called before the message is handled.
	Describe func(msg any) string

	t    testing.TB
	seed uint64
	data *rand.Rand

	clients sync.WaitGroup

	mu      sync.Mutex
	change  *sync.Cond // of ready and closed
	choice  *rand.Rand
	ranked  bool
	ranks   map[uint64]uint64
	numbers uint64 // of the systems' turns
	begun   uint64 // clients
	ready   []*kernel.Turn
	closed  bool
	ended   chan struct{}
	steps   []step
}

var _ kernel.Scheduler = (*Schedule)(nil)

// step is one choice.
type step struct {
	at     time.Time
	number uint64
	who    string
	msg    string
}

func newSchedule(t testing.TB, seed uint64) *Schedule {
	t.Helper()
	s := &Schedule{
		t: t, seed: seed, ranked: seed%2 == 0, ranks: make(map[uint64]uint64), ended: make(chan struct{}),
		choice: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // repeatable on purpose
		data:   rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // repeatable on purpose
	}
	s.change = sync.NewCond(&s.mu)
	return s
}

// Seed is what the schedule is made of.
func (s *Schedule) Seed() uint64 { return s.seed }

// Rand gives a scenario choices of its own that the seed repeats too. Use it from one client at a time.
func (s *Schedule) Rand() *rand.Rand { return s.data }

// Go starts a client, in a goroutine of its own, when its turn comes. It may block. Before what it does at its own time, and
// after it has waited for something, let it call yield, which lets others take turns until it is the client's again. A panic or
// a failed require ends the client alone and fails the test.
func (s *Schedule) Go(client func(yield func())) {
	s.clients.Add(1)
	number := s.nextClient()
	yield := s.yieldOf(number)
	s.Ready(kernel.NewTurn(number, clientTurn("begins"), func() {
		defer s.clients.Done()
		defer func() {
			if reason := recover(); reason != nil {
				s.t.Errorf("a client panicked: %v\n%s", reason, debug.Stack())
			}
		}()
		client(yield)
	}))
}

// Yield gives what lets others take turns, for one goroutine that is no client: FaultyJournal.Pace takes it.
func (s *Schedule) Yield() (yield func()) { return s.yieldOf(s.nextClient()) }

func (s *Schedule) yieldOf(number uint64) func() {
	return func() {
		turn := make(chan struct{})
		s.Ready(kernel.NewTurn(number, clientTurn("goes on"), func() { close(turn) }))
		<-turn
	}
}

// Wait waits until all clients have ended.
func (s *Schedule) Wait() { s.clients.Wait() }

// Settle waits until nothing goes on any more but what waits for a later time.
func (*Schedule) Settle() { time.Sleep(time.Nanosecond) } // virtual: time goes on only when all are blocked

// Trace tells the steps so far: what handled what, in order.
func (s *Schedule) Trace() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	trace := make([]string, 0, len(s.steps))
	for _, step := range s.steps {
		trace = append(trace, step.String())
	}
	return trace
}

// Number implements kernel.Scheduler.
func (s *Schedule) Number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers++
	return s.numbers
}

// firstClient is the number before that of the first client. Clients are counted apart, because a scenario begins them while
// an actor's step may still be making timers.
const firstClient = 1 << 32

func (s *Schedule) nextClient() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	return firstClient + s.begun
}

// Ready implements kernel.Scheduler.
func (s *Schedule) Ready(turn *kernel.Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, turn)
	s.change.Signal()
}

func (s *Schedule) run() {
	defer close(s.ended)
	for s.wait() {
		synctest.Wait() // all that the last step set off is done, and what became ready by it is known
		turn := s.choose()
		go turn.Take(func(who string, msg any) { s.note(turn, who, msg) })
	}
}

// wait waits until there is something to choose from.
func (s *Schedule) wait() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) == 0 && !s.closed {
		s.change.Wait()
	}
	return len(s.ready) > 0
}

// choose takes one turn. The choice depends on what is ready and not on the order in which it became so, which the Go runtime
// decides.
func (s *Schedule) choose() *kernel.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.ready, func(a, b *kernel.Turn) int { return cmp.Compare(a.Number(), b.Number()) })
	i := s.choice.IntN(len(s.ready))
	if s.ranked {
		i = s.highest()
	}
	turn := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	return turn
}

// changeRank is one in how many steps lets the chosen one fall to another rank.
const changeRank = 16

// highest needs mu.
func (s *Schedule) highest() int {
	best := 0
	for i, turn := range s.ready {
		if _, known := s.ranks[turn.Number()]; !known {
			s.ranks[turn.Number()] = s.choice.Uint64()
		}
		if s.ranks[turn.Number()] > s.ranks[s.ready[best].Number()] {
			best = i
		}
	}
	if s.choice.IntN(changeRank) == 0 {
		delete(s.ranks, s.ready[best].Number())
	}
	return best
}

func (s *Schedule) close() {
	s.mu.Lock()
	s.closed = true
	s.change.Signal()
	s.mu.Unlock()
	<-s.ended
}

func (s *Schedule) note(turn *kernel.Turn, who string, msg any) {
	taken := step{at: time.Now(), number: turn.Number(), who: who}
	switch what, ok := msg.(clientTurn); {
	case ok:
		taken.who, taken.msg, taken.number = "client", string(what), turn.Number()-firstClient
	case s.Describe != nil:
		taken.msg = s.Describe(msg)
	default:
		taken.msg = fmt.Sprintf("%T", msg) // its content may be another goroutine's by now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, taken)
}

// clientTurn is what a client does in its turn.
type clientTurn string

// String says what happened.
func (s step) String() string {
	if s.who == "" {
		return fmt.Sprintf("timer %d fires %s", s.number, s.msg)
	}
	return fmt.Sprintf("%s %d: %s", s.who, s.number, s.msg)
}

// storyLength is how many steps a failure tells.
const storyLength = 60

func (s *Schedule) story(test string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "this was schedule %d; %s=%d go test -run '^%s$' plays it again", s.seed, SeedVariable, s.seed,
		strings.ReplaceAll(test, "/", "$/^"))
	s.mu.Lock()
	defer s.mu.Unlock()
	from := max(0, len(s.steps)-storyLength)
	fmt.Fprintf(&b, "\nits last steps, of %d:", len(s.steps))
	for _, step := range s.steps[from:] {
		fmt.Fprintf(&b, "\n  +%s %s", step.at.Sub(s.steps[0].at), step)
	}
	return b.String()
}
