package queue_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Each file of testdata shows one rule. A bare session around the queue carries out what is decided: its run starts when nothing
// runs, offers go back when it ends, an interrupt stops it. at=1s sets the time, after=1s moves it.
func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := &scenario{shell: newShell(queue.Config{MergeWindow: 500 * time.Millisecond, Limit: 20})}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type scenario struct{ *shell }

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	for _, arg := range d.CmdArgs {
		if arg.Key == "at" || arg.Key == "after" {
			moved, err := time.ParseDuration(arg.Vals[0])
			require.NoError(t, err)
			if arg.Key == "at" {
				s.now = start
			}
			s.now = s.now.Add(moved)
		}
	}
	switch d.Cmd {
	case "limit":
		_, err := fmt.Sscanf(d.CmdArgs[0].Key, "%d", &s.cfg.Limit)
		require.NoError(t, err)
		return ""
	case "submit":
		return s.describe(s.submit(parseTurn(t, d)))
	case "refuse": // also unanswered, or too late
		return s.refuse(d.CmdArgs[0].Key) + s.state()
	case "inject":
		s.inject(d.CmdArgs[0].Key)
		return s.state()
	case "remove":
		s.q = s.q.Remove(d.CmdArgs[0].Key)
		return s.state()
	case "finish":
		return strings.Join(append(s.finish(), s.state()), "")
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

// parseTurn reads "submit id mode [sender=ann] [chat=STEERING] [token=x] [engine=e] [task]".
func parseTurn(t *testing.T, d *datadriven.TestData) (*messages.Turn, messages.QueueMode) {
	t.Helper()
	require.GreaterOrEqual(t, len(d.CmdArgs), 2)
	turn := &messages.Turn{TurnId: d.CmdArgs[0].Key, Mode: string(messages.ChatModeChat), Resume: nil}
	for _, arg := range d.CmdArgs[2:] {
		switch arg.Key {
		case "sender":
			turn.Sender = arg.Vals[0]
		case "chat":
			turn.Mode = arg.Vals[0]
		case "token":
			turn.Resume = &messages.ResumeToken{Engine: "e", Token: arg.Vals[0]}
		case "engine":
			turn.Resume = &messages.ResumeToken{Engine: arg.Vals[0], Token: "x"}
		case "task":
			turn.TaskResult = true
		case "at", "after":
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
	}
	mode := messages.QueueMode(d.CmdArgs[1].Key)
	require.True(t, mode.Valid(), mode)
	return turn, mode
}

// start is when all scenarios begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// shell is the least that a session does around a queue.
type shell struct {
	cfg     queue.Config
	q       queue.Queue
	now     time.Time
	active  []*messages.Turn
	stopped bool
}

func newShell(cfg queue.Config) *shell { return &shell{cfg: cfg, now: start} }

// activity is what the rules are told of the run.
func (s *shell) activity() queue.Activity {
	return queue.Activity{Busy: s.active != nil, Stoppable: s.active != nil && !s.stopped, Steerable: s.active != nil && !s.stopped}
}

// submit places a turn; false if the limit refuses it.
func (s *shell) submit(turn *messages.Turn, mode messages.QueueMode) (queue.Placement, bool) {
	p := queue.Decide(s.q, turn, mode, s.now, s.activity(), s.cfg)
	if queue.Full(s.q, p.Place, s.cfg) {
		return p, false
	}
	turn.QueueMode = string(p.Mode)
	s.q = s.q.Put(turn, p.Place, p.Into, s.now)
	s.stopped = s.stopped || p.Interrupts
	s.next()
	return p, true
}

func (s *shell) describe(p queue.Placement, ok bool) string {
	if !ok {
		return "refused: queue_full\n"
	}
	line := fmt.Sprintf("%s as %s", p.Place, p.Mode)
	if p.Into != "" {
		line += " into " + p.Into
	}
	return line + ": " + p.Reason + "\n" + s.state()
}

// refuse is a fall back of an offered turn.
func (s *shell) refuse(id string) string {
	turn, _, offered := s.q.Find(func(t *messages.Turn) bool { return t.GetTurnId() == id })
	if !offered {
		return "not offered\n"
	}
	p := queue.Fallback(s.q, turn, messages.QueueMode(turn.GetQueueMode()), s.now, s.cfg)
	s.q = s.q.Return(id, p.Place, p.Into, "", s.now)
	if p.Into != "" {
		return fmt.Sprintf("%s returns, %s into %s\n", id, p.Place, p.Into)
	}
	return fmt.Sprintf("%s returns to the %s\n", id, p.Place)
}

func (s *shell) inject(id string) {
	if _, _, offered := s.q.Find(func(t *messages.Turn) bool { return t.GetTurnId() == id }); offered {
		s.q = s.q.Remove(id)
	}
}

// finish ends the run: offers go back in their order, and the next entry starts.
func (s *shell) finish() []string {
	if s.active == nil {
		return nil
	}
	said := []string{fmt.Sprintf("%s ends, interrupted: %t\n", names(s.active), s.stopped)}
	s.active, s.stopped = nil, false
	for _, turn := range s.q.Offered {
		said = append(said, s.refuse(turn.GetTurnId()))
	}
	s.next()
	return said
}

func (s *shell) next() {
	if s.active != nil || len(s.q.Waiting) == 0 {
		return
	}
	var ids []string
	for _, t := range s.q.Waiting[0].Turns {
		ids = append(ids, t.GetTurnId())
	}
	s.q, s.active = s.q.Take(ids)
}

func (s *shell) state() string {
	line := "active " + names(s.active)
	if s.stopped {
		line += " (stopped)"
	}
	var waiting []string
	for _, e := range s.q.Waiting {
		waiting = append(waiting, names(e.Turns))
	}
	if len(s.q.Offered) > 0 {
		line += ", offered " + strings.Join(strings.Split(names(s.q.Offered), "+"), " ")
	}
	return fmt.Sprintf("%s, waiting %v\n", line, waiting)
}

func names(turns []*messages.Turn) string {
	if len(turns) == 0 {
		return "nothing"
	}
	var ids []string
	for _, t := range turns {
		ids = append(ids, t.GetTurnId())
	}
	return strings.Join(slices.Clone(ids), "+")
}
