package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// The crowd of one round. Few sessions, so that turns meet: they wait, are joined, interrupt and steer each other.
const (
	chaosSessions = 8
	chaosTalkers  = 6
	chaosHosts    = 4
	chaosWatchers = 3
)

// Variables that choose what a round draws, and how often it kills; see TestChaosOfKilledServers.
const (
	chaosSeedEnv  = "CORREX_CHAOS_SEED"
	chaosKillsEnv = "CORREX_CHAOS_KILLS"
)

// chaosSettings make much happen between two kills: answers that stream for a while and wait for each other, sessions that leave
// memory, queues and kept items that run over, runs that give up after three crashes.
var chaosSettings = []string{
	"--set", "offline.delay=1ms", "--set", "runs.max_concurrent=5", "--set", "runs.slot_timeout=1s", "--set", "session.idle=50ms",
	"--set", "queue.limit=8", "--set", "output.keep=100", "--set", "recovery.max_attempts=3", "--set", "drain.timeout=100ms",
	"--set", "conversation.keep_last=6", "--set", "log.level=warn",
}

// chaos is a crowd of clients around a server that keeps dying, and what they were promised meanwhile.
type chaos struct {
	t      *testing.T
	seed   uint64
	m      *machine
	client *client.Client
	// calm: the last server is up; who has nothing open any more ends.
	calm atomic.Bool
	// clock orders what clients sent and were told: it rises with each.
	clock atomic.Int64
	// served counts the answers to submissions.
	served atomic.Int64

	mu      sync.Mutex
	faults  []string
	turns   map[string]*chaosTurn  // by id, once acknowledged
	refused []*chaosTurn           // never admitted
	aborts  map[string]*chaosAbort // by reason, which no two have in common
	marks   map[string]map[uint64]string
	items   map[string]map[uint64]protocol.OutputItem // by session and number: what anybody was sent
	finals  map[string]*protocol.RouterResponse       // by run
	seen    map[string]int                            // dispositions, and what else must have happened
}

// TestChaosOfKilledServers lets clients talk in all queue modes, steer, withdraw, abort, repeat themselves, record and listen while
// the server is killed again and again, now and then stopped in order, and then asks another server for everything that was
// acknowledged (I1, I2, I5, I6, I7, I8, I9, I11).
//
// A seed draws what clients do and when the server is killed, not how the machine interleaves them: it gives the same load, not
// the same run. CORREX_CHAOS_SEED chooses it and CORREX_CHAOS_KILLS the number of kills; CORREX_SOAK=1 makes it 500.
func TestChaosOfKilledServers(t *testing.T) {
	t.Parallel()
	rounds, kills, seed := 1, 20, uint64(rand.Uint32())
	if os.Getenv("CORREX_SOAK") == "1" {
		rounds, kills = 5, 100 // each with a journal of its own: what one round did cannot slow the next one down
	}
	if chosen := os.Getenv(chaosKillsEnv); chosen != "" {
		n, err := strconv.Atoi(chosen)
		require.NoError(t, err, chaosKillsEnv)
		rounds, kills = 1, n
	}
	if chosen := os.Getenv(chaosSeedEnv); chosen != "" {
		n, err := strconv.ParseUint(chosen, 10, 64)
		require.NoError(t, err, chaosSeedEnv)
		seed = n
	}
	for i := range uint64(rounds) { //nolint:gosec // a few
		t.Run(fmt.Sprintf("seed=%d", seed+i), func(t *testing.T) { newChaos(t, seed+i).round(kills) })
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{
		t: t, seed: seed, m: newMachine(t), turns: make(map[string]*chaosTurn), aborts: make(map[string]*chaosAbort),
		marks: make(map[string]map[uint64]string), items: make(map[string]map[uint64]protocol.OutputItem),
		finals: make(map[string]*protocol.RouterResponse), seen: make(map[string]int),
	}
	for i := range chaosSessions {
		c.marks[chaosSession(i)] = make(map[uint64]string)
		c.items[chaosSession(i)] = make(map[uint64]protocol.OutputItem)
	}
	var err error
	c.client, err = client.New(c.m.url, "")
	require.NoError(t, err)
	return c
}

// round is one life of a journal.
func (c *chaos) round(kills int) {
	begun, stops := time.Now(), 0
	c.t.Logf("%s=%d %s=%d draws this load again", chaosSeedEnv, c.seed, chaosKillsEnv, kills)
	server := c.m.serve(chaosSettings...)
	everybody, watchers := c.crowd()
	draw := c.rand("kills", 0)
	for n := range kills {
		c.wait(draw)
		c.m.kill(server)
		server = c.m.serve(chaosSettings...)
		if n%5 == 4 { // an orderly stop in between: it suspends what a kill tears
			c.wait(draw)
			require.NoError(c.t, server.Process.Signal(syscall.SIGTERM))
			require.NoError(c.t, endsWithin(server, 20*time.Second))
			server = c.m.serve(chaosSettings...)
			stops++
		}
	}
	storm := time.Since(begun)
	c.calm.Store(true)
	c.join(everybody, "a client never got its answer")
	for i := range chaosSessions {
		c.m.await(chaosSession(i), quiet)
	}
	c.join(watchers, "a watcher never got what was published")
	c.acknowledge()
	c.m.kill(server) // the last server has nothing but what is on disk
	c.m.serve(chaosSettings...)
	c.verify()
	c.t.Logf("%d kills and %d orderly stops in %s, all in %s", kills+1, stops, storm.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	c.t.Logf("what happened: %v", c.seen)
	require.Empty(c.t, strings.Join(c.faults, "\n"), "seed %d", c.seed)
	if kills >= 20 {
		c.everythingHappened(kills)
	}
}

// wait lets the server work for a while: in most cases until it took some turns; else it dies while it still recovers.
func (c *chaos) wait(draw *rand.Rand) {
	early, pause := draw.IntN(4) == 0, upTo(draw, 500*time.Millisecond)
	if early {
		time.Sleep(pause / 10)
		return
	}
	until := time.Now().Add(time.Second)
	for begun := c.served.Load(); c.served.Load() < begun+10 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(pause)
}

// everythingHappened refuses a load that left something out: then nothing was shown. What is rare is asked of many kills only.
func (c *chaos) everythingHappened(kills int) {
	c.t.Helper()
	require.Greater(c.t, len(c.turns), kills)
	want := []string{
		"started", "queued", "steering", "duplicate", "reply lost",
		"ends answered", "ends cancelled", "ends interrupted", "ends merged", "ends withdrawn",
	}
	if kills >= 100 {
		want = append(want, "merged", "queue_full", "ends failed")
	}
	for _, what := range want {
		require.NotZero(c.t, c.seen[what], what)
	}
}

// rand draws for one of the crowd: always the same for the same seed.
func (c *chaos) rand(who string, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", who, n)
	return rand.New(rand.NewPCG(c.seed, h.Sum64())) //nolint:gosec // a load, no secret
}

func chaosSession(i int) string { return fmt.Sprintf("s%d", i) }

func quiet(s *protocol.State) bool {
	return s.ActiveRun == nil && len(s.Queue) == 0 && len(s.PendingSteers) == 0
}

func (c *chaos) crowd() (everybody, watchers *sync.WaitGroup) {
	everybody, watchers = new(sync.WaitGroup), new(sync.WaitGroup)
	for i := range chaosTalkers {
		everybody.Go(func() { c.talk(i) })
	}
	for i := range chaosHosts {
		everybody.Go(func() { c.host(i) })
	}
	for i := range chaosWatchers {
		watchers.Go(func() { c.watch(i) })
	}
	return everybody, watchers
}

func (c *chaos) join(group *sync.WaitGroup, what string) {
	c.t.Helper()
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Fail(c.t, what, "seed %d\n%s", c.seed, strings.Join(c.faults, "\n"))
	}
}

func endsWithin(cmd *exec.Cmd, limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		return fmt.Errorf("the server did not end within %s", limit)
	}
}

func (c *chaos) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults) < 20 {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

func (c *chaos) happened(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

// shown writes a frame down as it came.
func shown(frame any) string {
	data, err := json.Marshal(frame)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func upTo(draw *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(draw.Int64N(int64(limit)))
}
