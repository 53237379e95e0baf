package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// SessionKit runs the rules of one session without actors: it is the shell of core/session with a journal in memory and a
// clock that the test moves. It adds to a command what the shell adds (turn ids, what the index knows) and stores every
// decision through the codec before it takes effect.
//
// After every command it checks that what was stored folds to the decision's state, that the output is numbered and ordered as
// promised (I9, I11), that turns wait in the order that their modes promise (a twin of the queue), end exactly once and can be
// found (I5, I7, I8), that offers are recorded before they are handed over, that explain tells what submit does, and that
// steering notes are right (I2). A broken promise fails the test with the commands that led to it. Use it from one goroutine.
type SessionKit struct {
	t     testing.TB
	cfg   session.Config
	key   messages.Key
	now   time.Time
	state session.State
	// folded is what the stored bytes alone say; it never meets the decisions' values.
	folded  session.State
	journal *sessionJournal
	check   *sessionCheck
	epoch   uint64
	turns   int
	// taken: no run slot is free.
	taken bool
	trail []string // the last commands, for failure texts
}

// SessionOption changes a SessionKit before its first command.
type SessionOption func(*SessionKit)

// WithConfig runs the session under cfg instead of session.DefaultConfig.
func WithConfig(cfg session.Config) SessionOption { return func(k *SessionKit) { k.cfg = cfg } }

// WithKey names the session; else it is "s" of the default tenant.
func WithKey(key messages.Key) SessionOption { return func(k *SessionKit) { k.key = key } }

// StartingAt sets the clock; else it is 2026-01-01T00:00:00Z.
func StartingAt(now time.Time) SessionOption { return func(k *SessionKit) { k.now = now } }

// Result is what one command did.
type Result struct {
	// Records as they were stored, of both streams.
	Records []messages.Record
	// Events and Ledger are the records decoded again.
	Events []messages.Event
	Ledger []messages.LedgerRecord
	// Checkpoint: the ledger before the first record of Ledger was pruned.
	Checkpoint bool
	Effects    []session.Effect
	// Reply to the sender; nil = none.
	Reply messages.Reply
	State session.State
}

// Published gives the numbered output items among the effects, in order.
func (r Result) Published() []session.Publish {
	var items []session.Publish
	for _, e := range r.Effects {
		if p, ok := e.(session.Publish); ok {
			items = append(items, p)
		}
	}
	return items
}

// Started gives the order of the run that the command started; false if it started none.
func (r Result) Started() (session.RunOrder, bool) {
	for _, e := range r.Effects {
		if s, ok := e.(session.StartRun); ok {
			return s.Order, true
		}
	}
	return session.RunOrder{}, false
}

// NewSessionKit makes a session that does not exist yet.
func NewSessionKit(t testing.TB, opts ...SessionOption) *SessionKit {
	t.Helper()
	k := &SessionKit{
		t:   t,
		cfg: session.DefaultConfig(),
		key: messages.NewKey("s"),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, opt := range opts {
		opt(k)
	}
	if err := k.cfg.Validate(); err != nil {
		t.Fatalf("session kit: %v", err)
	}
	k.state, k.folded = session.New(k.key), session.New(k.key)
	k.journal = newSessionJournal(k.key)
	k.check = newSessionCheck()
	return k
}

// Given puts events into the log of the session before its first command.
func (k *SessionKit) Given(events ...messages.Event) *SessionKit {
	k.t.Helper()
	if k.epoch > 0 {
		k.t.Fatalf("session kit: Given after the first command")
	}
	if _, err := k.store(session.Decision{At: k.now, Host: events}); err != nil {
		k.t.Fatalf("session kit: given events: %v", err)
	}
	k.state = k.folded
	return k
}

// Now is the kit's time.
func (k *SessionKit) Now() time.Time { return k.now }

// Advance moves the clock, back too if d is negative.
func (k *SessionKit) Advance(d time.Duration) { k.now = k.now.Add(d) }

// State is the session's state.
func (k *SessionKit) State() session.State { return k.state }

// Config is what the session runs under.
func (k *SessionKit) Config() session.Config { return k.cfg }

// TakeSlots says whether all run slots are taken: then a run waits until the test runs SlotGranted or SlotOver. At first they
// are free.
func (k *SessionKit) TakeSlots(taken bool) { k.taken = taken }

// free says whether a slot can be had at once; a session that waits for one is not served before others that do.
func (k *SessionKit) free(session.AskSlot) bool {
	return !k.taken && k.state.Live.Asked == (session.AskSlot{})
}

// Run carries out one command. Reports of a run may leave RunID and Attempt empty: the active ones are meant. A Submit needs
// no TurnID: it gets turn_1 and so on. Prior and Ended are looked up as the shell does.
func (k *SessionKit) Run(cmd session.Command) Result {
	k.t.Helper()
	k.activate()
	return k.run(cmd)
}

// Decide says what cmd would do and does nothing: a crash between the decision and the append.
func (k *SessionKit) Decide(cmd session.Command) session.Decision {
	k.t.Helper()
	k.activate()
	return session.DecideWith(k.state, k.cfg, k.complete(cmd), k.now, k.free)
}

// Submit is Run of a turn with this text; edit may change the request.
func (k *SessionKit) Submit(text string, edit ...func(*messages.SubmitTurn)) Result {
	k.t.Helper()
	req := &messages.SubmitTurn{Text: text}
	for _, e := range edit {
		e(req)
	}
	return k.Run(session.Submit{Request: req})
}

// Explain says what Submit with the same arguments would do, and does nothing.
func (k *SessionKit) Explain(text string, edit ...func(*messages.SubmitTurn)) messages.Reply {
	k.t.Helper()
	k.activate()
	req := &messages.SubmitTurn{Text: text}
	for _, e := range edit {
		e(req)
	}
	submit := session.Submit{Request: req, TurnID: "turn_explained", Prior: k.journal.prior(req.GetIdempotencyKey())}
	return session.Explain(k.state, k.cfg, submit, k.now, k.free)
}

// Answer is Run of the active run's end with this answer.
func (k *SessionKit) Answer(content string) Result {
	k.t.Helper()
	return k.Run(session.RunFinished{Outcome: messages.OutcomeCompleted, Content: content, FinishReason: "stop"})
}

// Restart forgets the state, as a crash does, and brings the session back from what is stored. It gives what Recover did.
func (k *SessionKit) Restart() Result {
	k.t.Helper()
	k.activate()
	replayed := k.Replay()
	if diff := DiffStates(replayed, k.state); diff != "" {
		k.failf("replay of all stored records (first) differs from the state that decided them: %s", diff)
	}
	k.check.output.restarted()
	k.state = replayed
	k.folded = k.Replay()
	k.epoch++
	return k.run(session.Recover{Epoch: k.epoch})
}

// Replay folds what is stored, from the first event and the oldest kept ledger record.
func (k *SessionKit) Replay() session.State {
	k.t.Helper()
	s, err := k.journal.fold(k.cfg)
	if err != nil {
		k.failf("replay: %v", err)
	}
	return s
}

// Stored gives the records of a stream that are kept, as read from their bytes.
func (k *SessionKit) Stored(stream messages.Stream) []messages.Record {
	k.t.Helper()
	records, err := k.journal.records(stream)
	if err != nil {
		k.failf("read %s: %v", stream, err)
	}
	return records
}

// Turn gives what the journal's index holds of a turn; of an open one ask State.
func (k *SessionKit) Turn(id messages.TurnID) (*messages.TurnStatus, bool) {
	status, ok := k.journal.turns[id]
	return status, ok
}

func (k *SessionKit) activate() {
	k.t.Helper()
	if k.epoch == 0 {
		k.epoch = 1
		k.run(session.Recover{Epoch: k.epoch})
	}
}

func (k *SessionKit) run(cmd session.Command) Result {
	k.t.Helper()
	cmd = k.complete(cmd)
	k.remember(cmd)
	before := k.state
	d := session.DecideWith(before, k.cfg, cmd, k.now, k.free)
	if diff := DiffStates(k.folded, before); diff != "" {
		k.failf("Decide changed the state (second) that it was given: %s", diff)
	}
	result, err := k.store(d)
	if err != nil {
		k.failf("%v", err)
	}
	if diff := DiffStates(k.folded, d.Next); diff != "" {
		k.failf("the stored records fold to a state (first) that differs from the decision's (second): %s", diff)
	}
	k.state = d.Next
	result.Effects, result.Reply, result.State = d.Effects, d.Reply, d.Next
	if err := k.check.after(k, cmd, before, result); err != nil {
		k.failf("%v", err)
	}
	return result
}

// complete adds what the shell adds to a command; reports that name no run are of the active one.
func (k *SessionKit) complete(cmd session.Command) session.Command {
	switch c := cmd.(type) { //nolint:gochecksumtype // the others are complete
	case session.Submit:
		if c.TurnID == "" {
			c.TurnID = fmt.Sprintf("turn_%d", k.turns+1)
		}
		if c.Prior == nil {
			c.Prior = k.journal.prior(c.Request.GetIdempotencyKey())
		}
		return c
	case session.Abort:
		c.Ended = c.Ended || k.journal.ended(c.Request)
		return c
	case session.Withdraw:
		c.Ended = k.journal.turns[c.TurnID]
		return c
	case session.SlotGranted:
		if c.RunID == "" {
			c.RunID = k.state.Live.Asked.RunID
		}
		return c
	case session.SlotOver:
		if c.RunID == "" {
			c.RunID, c.Ask = k.state.Live.Asked.RunID, k.state.Live.Asks
		}
		return c
	case session.SettleOver:
		if c.Settle == 0 {
			c.Settle = k.state.Live.Settles
		}
		return c
	}
	return k.completeReport(cmd)
}

func (k *SessionKit) completeReport(cmd session.Command) session.Command {
	active := func(id *messages.RunID, attempt *uint32) {
		if run := k.state.Ledger.Active; run != nil && *id == "" {
			*id, *attempt = run.ID, run.Attempt
		}
	}
	switch c := cmd.(type) { //nolint:gochecksumtype // the others report nothing of a run
	case session.RunPhased:
		active(&c.RunID, &c.Attempt)
		return c
	case session.RunRetried:
		active(&c.RunID, &c.Attempt)
		return c
	case session.ToolsAsked:
		active(&c.RunID, &c.Attempt)
		return c
	case session.ToolsMoved:
		active(&c.RunID, &c.Attempt)
		return c
	case session.RunStreamed:
		active(&c.RunID, &c.Attempt)
		return c
	case session.RunFinished:
		active(&c.RunID, &c.Attempt)
		return c
	case session.GraceOver:
		active(&c.RunID, &c.Attempt)
		return c
	case session.SteerAnswered:
		active(&c.RunID, &c.Attempt)
		return c
	case session.SteerAsked:
		active(&c.RunID, &c.Attempt)
		return c
	case session.LeaseWanted:
		active(&c.RunID, new(uint32))
		return c
	case session.StartFailed:
		active(&c.RunID, &c.Attempt)
		return c
	case session.StartAgain:
		active(&c.RunID, &c.Attempt)
		return c
	}
	return cmd
}

// store writes a decision's records and folds what was written.
func (k *SessionKit) store(d session.Decision) (Result, error) {
	result := Result{Checkpoint: d.Checkpoint}
	records, err := k.journal.append(d, k.epoch)
	if err != nil {
		return result, err
	}
	result.Records = records
	for _, rec := range records {
		if k.folded, err = session.Reduce(k.folded, k.cfg, rec); err != nil {
			return result, fmt.Errorf("reduce %s record %d: %w", rec.Stream, rec.Seq, err)
		}
		if rec.Stream == messages.StreamEvents {
			event, err := messages.DecodeEvent(rec.Type, rec.Version, rec.Payload)
			if err != nil {
				return result, err
			}
			result.Events = append(result.Events, event)
			continue
		}
		record, err := messages.DecodeLedger(rec.Type, rec.Version, rec.Payload)
		if err != nil {
			return result, err
		}
		result.Ledger = append(result.Ledger, record)
		if _, ok := record.(*messages.TurnAdmitted); ok {
			k.turns++
		}
	}
	return result, nil
}

// trailLength is how many commands a failure tells.
const trailLength = 30

func (k *SessionKit) remember(cmd session.Command) {
	if len(k.trail) == trailLength {
		k.trail = k.trail[1:]
	}
	k.trail = append(k.trail, fmt.Sprintf("%s %T%s", k.now.Format("15:04:05.000"), cmd, strings.TrimPrefix(show(cmd), "{}")))
}

func (k *SessionKit) failf(format string, args ...any) {
	k.t.Helper()
	k.t.Fatalf("session kit: %s\nthe last commands were:\n  %s", fmt.Sprintf(format, args...), strings.Join(k.trail, "\n  "))
}
