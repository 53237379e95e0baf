package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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

const (
	chaosSessions = 20
	chaosTalkers  = 6
	chaosHosts    = 4
	chaosWatchers = 3
)

// chaos is a crowd of clients around a server that keeps dying, and what they were promised meanwhile.
type chaos struct {
	t      *testing.T
	m      *machine
	client *client.Client
	// calm: the last server is up; who has nothing open any more ends.
	calm atomic.Bool
	keys atomic.Int64

	mu     sync.Mutex
	faults []string
	turns  map[string]*chaosTurn        // by id, once acknowledged
	marks  map[string]map[uint64]string // by session and sequence: acknowledged events
	items  map[string]map[uint64]string // by session and number: what anybody was sent
	finals map[string]*protocol.RouterResponse
}

// chaosTurn is an acknowledged turn.
type chaosTurn struct {
	session, id, run, key, text, mode string
}

// TestChaosOfKilledServers lets clients talk, steer, abort, record and listen while the server is killed again and again, now
// and then stopped in order, and then asks for everything that was acknowledged (I1, I2, I6, I7, I8, I9, I11).
func TestChaosOfKilledServers(t *testing.T) {
	t.Parallel()
	cycles, pause := 10, 800*time.Millisecond
	if os.Getenv("CORREX_SOAK") == "1" {
		cycles, pause = 150, 1800*time.Millisecond
	}
	c := newChaos(t)
	args := []string{
		"--set", "offline.delay=2ms", "--set", "session.idle=50ms", "--set", "recovery.max_attempts=6",
		"--set", "drain.timeout=100ms", "--set", "output.keep=100", "--set", "log.level=warn",
	}
	server := c.m.serve(args...)
	everybody, watchers := c.crowd()
	for cycle := range cycles {
		c.busy(time.Now().Add(2 * time.Second))
		time.Sleep(rand.N(pause))
		if cycle%4 == 3 {
			require.NoError(t, server.Process.Signal(syscall.SIGTERM))
			require.NoError(t, endsWithin(server, 20*time.Second))
		} else {
			c.m.kill(server)
		}
		server = c.m.serve(args...)
	}
	c.calm.Store(true)
	c.join(everybody, "a client never got its answer")
	for i := range chaosSessions {
		c.m.await(chaosSession(i), func(s *protocol.State) bool { return s.ActiveRun == nil && len(s.Queue) == 0 })
	}
	c.join(watchers, "a watcher never got what was published")
	c.verify()
	require.Empty(t, c.faults)
	require.Greater(t, len(c.turns), cycles)
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{
		t: t, m: newMachine(t), turns: make(map[string]*chaosTurn), marks: make(map[string]map[uint64]string),
		items: make(map[string]map[uint64]string), finals: make(map[string]*protocol.RouterResponse),
	}
	for i := range chaosSessions {
		c.marks[chaosSession(i)], c.items[chaosSession(i)] = make(map[uint64]string), make(map[uint64]string)
	}
	var err error
	c.client, err = client.New(c.m.url, "")
	require.NoError(t, err)
	return c
}

// busy waits until the server has taken some turns, on slow machines too.
func (c *chaos) busy(until time.Time) {
	taken := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.turns)
	}
	for begun := taken(); taken() < begun+10 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}

func chaosSession(i int) string { return fmt.Sprintf("s%d", i) }

func (c *chaos) crowd() (everybody, watchers *sync.WaitGroup) {
	everybody, watchers = new(sync.WaitGroup), new(sync.WaitGroup)
	for range chaosTalkers {
		everybody.Go(c.talk)
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
		require.Fail(c.t, what, c.faults)
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

// line is a connection that is made again whenever it is lost.
type line struct {
	c    *chaos
	conn *client.Conn
}

// ask repeats a frame until it is answered. again says that it may have been carried out before.
func (l *line) ask(frame protocol.ClientFrame) (answer protocol.ServerFrame, refused *protocol.Error, again bool) {
	for ; ; again = true {
		answer, err := l.once(frame)
		switch {
		case err == nil:
			return answer, nil, again
		case !errors.As(err, &refused) || refused.Retryable:
			time.Sleep(10 * time.Millisecond)
		default:
			return nil, refused, again
		}
	}
}

func (l *line) once(frame protocol.ClientFrame) (protocol.ServerFrame, error) {
	ctx := l.c.t.Context()
	if l.conn == nil {
		conn, err := l.c.client.Dial(ctx)
		if err != nil {
			return nil, err
		}
		l.conn = conn
	}
	answer, err := l.conn.Ask(ctx, frame)
	var refused *protocol.Error
	switch {
	case err == nil:
	case !errors.As(err, &refused):
		l.drop()
	case strings.Contains(refused.Message, "did not answer in time"):
		l.c.fault("a session took %T %+v and never answered", frame, frame)
	}
	return answer, err
}

func (l *line) drop() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// talk submits turns, some of them twice, and aborts now and then.
func (c *chaos) talk() {
	l := &line{c: c}
	defer l.drop()
	for !c.calm.Load() {
		session := chaosSession(rand.IntN(chaosSessions))
		key := fmt.Sprintf("k%d", c.keys.Add(1))
		turn := &chaosTurn{session: session, key: key, text: "what is the status? " + key, mode: protocol.ModeChat}
		if rand.IntN(2) == 0 {
			turn.mode = protocol.ModeSteering
		}
		c.submit(l, turn)
		switch rand.IntN(6) {
		case 0:
			c.submit(l, turn)
		case 1:
			scope := []protocol.Abort{
				{Scope: protocol.ScopeRun},
				{Scope: protocol.ScopeTurn, TurnID: turn.id},
				{Scope: protocol.ScopeSession},
				{Scope: protocol.ScopeRun, RunID: turn.run},
			}[rand.IntN(4)]
			scope.SessionID = session
			if _, refused, _ := l.ask(&scope); refused != nil {
				c.fault("abort of %s: %v", session, refused)
			}
		case 2:
			l.drop()
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
}

func (c *chaos) submit(l *line, turn *chaosTurn) {
	answer, refused, again := l.ask(&protocol.ChatInput{
		SessionID: turn.session, Text: turn.text, Mode: turn.mode, IdempotencyKey: turn.key,
	})
	accepted, ok := answer.(*protocol.TurnAccepted)
	switch {
	case !ok:
		c.fault("submit %s: %v, %v", turn.key, answer, refused)
		return
	case turn.id != "" && accepted.TurnID != turn.id:
		c.fault("I8: key %s is turn %s and turn %s", turn.key, turn.id, accepted.TurnID)
	case turn.id == "" && !again && accepted.Disposition == "duplicate":
		c.fault("I8: key %s is a duplicate at once", turn.key)
	}
	turn.id, turn.run = accepted.TurnID, accepted.RunID
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns[turn.id] = turn
}

// host records events of its sessions, each batch with the sequence that it expects.
func (c *chaos) host(n int) {
	l := &line{c: c}
	defer l.drop()
	heads := make(map[string]uint64)
	for batch := 0; !c.calm.Load(); batch++ {
		session := chaosSession(n + chaosHosts*rand.IntN(chaosSessions/chaosHosts))
		events := chaosEvents(fmt.Sprintf("%d-%d", n, batch))
		for !c.record(l, session, heads, events) {
		}
		time.Sleep(rand.N(10 * time.Millisecond))
	}
}

// record tries once, and finds out what became of it.
func (c *chaos) record(l *line, session string, heads map[string]uint64, events []json.RawMessage) (done bool) {
	head := heads[session]
	answer, refused, _ := l.ask(&protocol.RecordEvents{SessionID: session, Events: events, ExpectedSequence: &head})
	if refused != nil && refused.Code != "sequence_conflict" {
		c.fault("record: %v", refused)
		return true
	}
	first := uint64(0)
	if recorded, ok := answer.(*protocol.EventsRecorded); ok {
		first = recorded.FirstSequence
		if first != head+1 || recorded.LastSequence != head+uint64(len(events)) {
			c.fault("record after %d: %+v", head, recorded)
		}
	} else { // a note came between, or an answer was lost
		for _, stored := range c.log(session, head) {
			heads[session] = stored.Sequence
			if string(stored.Event) == string(events[0]) {
				first = stored.Sequence
			}
		}
	}
	if first == 0 {
		return false
	}
	heads[session] = max(heads[session], first+uint64(len(events))-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, event := range events {
		c.marks[session][first+uint64(i)] = string(event)
	}
	return true
}

// log reads a session's event log as a client does, whatever becomes of the server meanwhile.
func (c *chaos) log(session string, after uint64) (all []protocol.StoredEvent) {
	for {
		page, err := c.client.Events(c.t.Context(), session, after, 500)
		if err != nil && c.t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil || len(page.Events) == 0 {
			return all
		}
		all = append(all, page.Events...)
		after = page.Next
	}
}

func chaosEvents(mark string) []json.RawMessage {
	events := []json.RawMessage{json.RawMessage(`{"type":"mark","n":"` + mark + `"}`)}
	stage := "stage-" + mark
	more := [][]string{
		{},
		{`{"type":"workflow_started","workflow_id":"` + mark + `"}`, `{"type":"stage_started","stage_id":"` + stage + `"}`},
		{`{"type":"stage_completed","stage_id":"` + stage + `","summary":"done ` + mark + `","next_stage_id":"n` + mark + `"}`},
		{`{"type":"stage_failed","stage_id":"` + stage + `","reason":"` + strings.Repeat("r", 500) + `"}`, `{"type":"orchestration_paused"}`},
		{`{"type":"orchestration_resumed"}`, `{"type":"stage_cancelled","stage_id":"` + stage + `","reason":"x"}`},
		{`{"type":"workflow_completed"}`},
	}
	for _, event := range more[rand.IntN(len(more))] {
		events = append(events, json.RawMessage(event))
	}
	return events
}

// receive gives the next frame, or false when none comes for a while or the connection is lost.
func (l *line) receive(wait time.Duration) (protocol.ServerFrame, bool) {
	ctx, cancel := context.WithTimeout(l.c.t.Context(), wait)
	defer cancel()
	frame, err := l.conn.Receive(ctx)
	return frame, err == nil
}
