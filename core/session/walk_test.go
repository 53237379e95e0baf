package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// walk drives a session with random commands, crashes, stops and clock jumps. The kit checks the invariants after each
// command; the walk predicts the answers to submissions with a dumb twin.
type walk struct {
	t    testing.TB
	kit  *testkit.SessionKit
	pick func(n int) int // 0 <= pick(n) < n
	twin twin
	// taken: no run slot is free.
	taken bool
	// log holds every record in the order of the appends, never pruned.
	log []messages.Record
}

// twin knows what a user may expect of a session: turns are admitted, wait in order, and end.
type twin struct {
	open  []string
	byKey map[string]known
}

type known struct {
	turn  string
	req   *messages.SubmitTurn
	until time.Time
}

func newWalk(t testing.TB, pick func(n int) int) *walk {
	t.Helper()
	cfg := session.DefaultConfig()
	cfg.QueueLimit, cfg.KeepLast, cfg.IdempotencyWindow = 1+pick(5), 1+pick(3), time.Hour
	cfg.ResumeEngines = []string{"codex"}
	cfg.RecoveryPolicy = []session.RecoveryPolicy{
		session.RecoveryResume, session.RecoveryResume, session.RecoveryResume, session.RecoveryAsk, session.RecoveryDrop,
	}[pick(5)]
	if pick(4) == 0 {
		cfg.TokensPerDay = 5 + uint64(pick(50)) //nolint:gosec // small
	}
	if pick(4) == 0 {
		cfg.Settle = time.Second
	}
	cfg.CheckpointEvery, cfg.MaxFinals, cfg.RecoveryMaxAttempts = 4+pick(40), 1000, 1+pick(3)
	return &walk{t: t, pick: pick, kit: testkit.NewSessionKit(t, testkit.WithConfig(cfg)), twin: twin{byKey: make(map[string]known)}}
}

func (w *walk) one(options ...string) string { return options[w.pick(len(options))] }

func (w *walk) chance(percent int) bool { return w.pick(100) < percent }

// step does one random thing.
func (w *walk) step() {
	w.t.Helper()
	w.clock()
	switch live := w.kit.State().Live; {
	case live.Draining && w.chance(30):
		w.restart()
		return
	case (live.Asked.RunID != "" || live.Held || live.Settling) && w.chance(40):
		w.slots()
		return
	}
	switch n := w.pick(100); {
	case n < 30:
		w.submit()
	case n < 33:
		w.withdraw()
	case n < 40:
		w.steer()
	case n < 50:
		w.run(session.RunStreamed{RunID: w.staleRun(), Attempt: 1, Text: w.one("a", "bc ", "déf", "")})
	case n < 53:
		w.run(session.RunPhased{
			Phase: messages.Phase(w.one("starting_engine", "streaming", "finalizing", "aborted", "")), Reason: w.one("", "a limit"),
		})
	case n < 54:
		w.run([]session.Command{
			session.RunRetried{RunID: w.staleRun(), Attempt: 1, Reason: "truncated"},
			session.ToolsAsked{RunID: w.staleRun(), Attempt: 1, CallIDs: []string{"c"}},
			session.ToolsMoved{RunID: w.staleRun(), Attempt: 1, Actions: []*messages.ToolAction{{Id: "c", Phase: "started"}}},
		}[w.pick(3)])
	case n < 70:
		w.finish()
	case n < 77:
		w.abort()
	case n < 79:
		w.run(session.GraceOver{RunID: w.staleRun(), Attempt: 1})
	case n < 84:
		w.record()
	case n < 86:
		w.config()
	case n < 89:
		w.run(session.Ack{Seq: w.kit.State().Live.NextSeq * uint64(w.pick(11)) / 10})
	case n < 91:
		w.run(session.Tick{})
	case n < 92:
		w.run(session.Touch{})
	case n < 93:
		w.slots()
	case n < 94:
		w.run([]session.Command{session.Drain{}, session.Suspend{}}[w.pick(2)])
	case n < 97:
		// A crash between the decision and the append: nothing of it happened.
		before := w.kit.State()
		w.kit.Decide(session.RunFinished{Outcome: messages.OutcomeCompleted, Content: "lost"})
		require.Empty(w.t, testkit.DiffStates(before, w.kit.State()))
		w.restart()
	default:
		w.restart()
	}
}

// clock lets time pass: mostly little, sometimes hours, sometimes backward.
func (w *walk) clock() {
	switch n := w.pick(100); {
	case n < 70:
		w.kit.Advance(time.Duration(w.pick(1000)) * time.Millisecond)
	case n < 72:
		w.kit.Advance(time.Duration(w.pick(90)) * time.Minute)
	case n < 74:
		w.kit.Advance(-time.Duration(w.pick(90)) * time.Minute)
	}
}

func (w *walk) run(cmd session.Command) testkit.Result {
	w.t.Helper()
	r := w.kit.Run(cmd)
	w.note(r)
	return r
}

func (w *walk) restart() {
	w.t.Helper()
	if last := w.kit.State().Ledger.LastTime; w.chance(10) && !last.IsZero() { // a downtime, which may be too long for what waits
		w.kit.Advance(last.Sub(w.kit.Now()) + time.Duration(w.pick(40))*time.Minute)
	}
	w.note(w.kit.Restart())
}

// note lets the twin see what ended.
func (w *walk) note(r testkit.Result) {
	w.log = append(w.log, r.Records...)
	for _, record := range r.Ledger {
		switch record := record.(type) {
		case *messages.RunEnded:
			w.twin.end(record.GetTurnIds()...)
		case *messages.TurnEnded:
			w.twin.end(record.GetTurnId())
		case *messages.TurnInjected:
			w.twin.end(record.GetTurnId())
		}
	}
}

func (m *twin) end(ids ...string) {
	var left []string
	for _, id := range m.open {
		if !contains(ids, id) {
			left = append(left, id)
		}
	}
	m.open = left
}

func contains(ids []string, id string) bool {
	for _, other := range ids {
		if other == id {
			return true
		}
	}
	return false
}

func (w *walk) submit() {
	w.t.Helper()
	req := &messages.SubmitTurn{
		Text: w.one("one", "two", "three", " ", ""), Mode: w.one("", "CHAT", "STEERING", "STEERING", "loud"),
		QueueMode: w.one("", "collect", "Collect", "followup", "followup", "Followup", "steer", "STEER", "steer_backlog", "interrupt", "fifo"),
		Sender:    w.one("", "", "ann"), TaskResult: w.chance(10),
		IdempotencyKey: w.one("", "", "k1", "k2", "k3", "k4", "k5", "k6"),
	}
	if w.chance(10) {
		req.Resume = &messages.ResumeToken{Engine: w.one("codex", "codex", "other"), Token: w.one("t1", "t2")}
	}
	if w.chance(50) {
		req.Text, req.Mode = w.one("one", "two"), w.one("", "STEERING")
	}
	want := w.predict(req)
	r := w.run(session.Submit{Request: req})
	var got string
	switch reply := r.Reply.(type) {
	case *messages.Failure:
		got = reply.GetCode()
	case *messages.TurnAccepted:
		got = fmt.Sprintf("%s %s %d", reply.GetDisposition(), reply.GetTurnId(), reply.GetPosition())
		if reply.GetDisposition() != string(messages.DispositionDuplicate) {
			w.twin.admit(req, reply.GetTurnId(), r.State.Ledger.LastTime.Add(w.kit.Config().IdempotencyWindow))
		}
	default:
		got = fmt.Sprintf("%T", reply)
	}
	require.Regexp(w.t, "^("+want+")", got, "%v", req)
}

func (m *twin) admit(req *messages.SubmitTurn, id string, until time.Time) {
	m.open = append(m.open, id)
	if key := req.GetIdempotencyKey(); key != "" {
		m.byKey[key] = known{id, req, until}
	}
}

// predict says how the answer to a submission begins. Whether a followup merges is for the kit's twin to say.
func (w *walk) predict(req *messages.SubmitTurn) string {
	s := w.kit.State()
	now := w.kit.Now()
	if now.Before(s.Ledger.LastTime) {
		now = s.Ledger.LastTime
	}
	switch {
	case strings.TrimSpace(req.GetText()) == "":
		return string(messages.CodeEmptyInput)
	case req.GetMode() == "loud":
		return string(messages.CodeInvalidMode)
	case req.GetQueueMode() == "fifo":
		return string(messages.CodeInvalidQueueMode)
	case req.GetResume().GetEngine() == "other":
		return string(messages.CodeUnsupportedResume)
	}
	if k, ok := w.twin.byKey[req.GetIdempotencyKey()]; ok && (contains(w.twin.open, k.turn) || now.Before(k.until)) {
		if same(k.req, req) {
			return string(messages.DispositionDuplicate) + " " + k.turn
		}
		return string(messages.CodeIdempotencyConflict)
	}
	switch open := len(w.twin.open); {
	case s.Live.Draining:
		return string(messages.CodeDraining)
	case w.unpaid(now):
		return string(messages.CodeBudgetExceeded)
	case open == 0 && (w.taken || w.settles(req)):
		return string(messages.DispositionQueued) + " turn_[0-9]+ 0"
	case open == 0:
		return string(messages.DispositionStarted)
	case s.Ledger.Queue.Len() >= w.kit.Config().QueueLimit,
		w.offers(req) && len(s.Ledger.Queue.Offered) >= w.kit.Config().QueueLimit:
		return string(messages.CodeQueueFull)
	case w.offers(req):
		return string(messages.DispositionSteering) + " turn_"
	case w.mode(req) == "interrupt":
		return string(messages.DispositionQueued) + " turn_[0-9]+ 0"
	case w.mode(req) == "followup", w.mode(req) == "steer":
		return string(messages.DispositionQueued) + " turn_|" + string(messages.DispositionMerged) + " turn_"
	default:
		return string(messages.DispositionQueued) + " turn_"
	}
}

// mode is the queue mode that a request asks for.
func (w *walk) mode(req *messages.SubmitTurn) string {
	if req.GetQueueMode() != "" {
		return strings.ToLower(req.GetQueueMode())
	}
	if own := w.kit.State().Ledger.Config.GetQueueMode(); own != "" {
		return strings.ToLower(own)
	}
	return "collect"
}

// offers says whether a new turn is offered to the active run.
func (w *walk) offers(req *messages.SubmitTurn) bool {
	run := w.kit.State().Ledger.Active
	if run == nil || run.Aborted || run.ID != w.kit.State().Live.Working {
		return false
	}
	mode := w.mode(req)
	return mode == "steer" || mode == "steer_backlog" || mode == "followup" && req.GetTaskResult()
}

func same(a, b *messages.SubmitTurn) bool {
	mode := func(r *messages.SubmitTurn) string {
		if r.GetMode() == "" {
			return "CHAT"
		}
		return r.GetMode()
	}
	return a.GetText() == b.GetText() && mode(a) == mode(b) && a.GetSender() == b.GetSender() && a.GetTaskResult() == b.GetTaskResult() &&
		a.GetResume().GetEngine() == b.GetResume().GetEngine() && a.GetResume().GetToken() == b.GetResume().GetToken() &&
		strings.EqualFold(a.GetQueueMode(), b.GetQueueMode())
}

func (w *walk) finish() {
	w.t.Helper()
	c := session.RunFinished{RunID: w.staleRun(), Attempt: 1, Outcome: messages.OutcomeCompleted, Content: w.one("", "yes", "no")}
	switch w.pick(6) {
	case 0:
		c.Outcome, c.Error = messages.OutcomeFailed, messages.Fail(messages.CodeProviderError, "no")
	case 1:
		c.Outcome, c.Error = messages.OutcomeIncomplete, messages.FailRetryable(messages.CodeTruncated, "cut")
	case 2:
		c.Outcome, c.FinishReason = messages.OutcomeIncomplete, "length"
	case 3:
		c.Outcome = messages.OutcomeCancelled
	case 4:
		c.Resume = &messages.ResumeToken{Engine: "codex", Token: w.one("t1", "t2", "t3")}
	}
	w.run(c)
}

// staleRun is mostly "", which is the active run; else one that may have ended.
func (w *walk) staleRun() string {
	if w.chance(90) {
		return ""
	}
	return fmt.Sprintf("run_%d", 1+w.pick(20))
}

func (w *walk) abort() {
	w.t.Helper()
	n := 1 + w.pick(20)
	if len(w.twin.open) > 0 && w.chance(70) {
		_, err := fmt.Sscanf(w.twin.open[w.pick(len(w.twin.open))], "turn_%d", &n)
		require.NoError(w.t, err)
	}
	req := &messages.Abort{Scope: w.one("", "run", "turn", "session", "world"), Reason: w.one("", "enough")}
	switch req.GetScope() {
	case "run":
		req.RunId = fmt.Sprintf("run_%d", n)
	case "turn":
		req.TurnId = fmt.Sprintf("turn_%d", n)
	}
	w.run(session.Abort{Request: req})
}

func (w *walk) record() {
	w.t.Helper()
	var all []messages.Event
	for range 1 + w.pick(3) {
		all = append(all, w.event())
	}
	c := session.Record{Events: all}
	if w.chance(40) {
		expected := w.kit.State().Router.EventSequence + uint64(w.pick(2))
		c.Expected = &expected
	}
	w.run(c)
}

func (w *walk) event() messages.Event {
	switch w.pick(8) {
	case 0:
		return &messages.WorkflowStarted{WorkflowId: "w"}
	case 1:
		return &messages.StageStarted{StageId: w.one("build", "test")}
	case 2:
		return &messages.StageCompleted{StageId: "build", Summary: w.one("", "built"), NextStageId: w.one("", "test")}
	case 3:
		return &messages.StageFailed{StageId: "test", Reason: "red"}
	case 4:
		return &messages.WorkflowCompleted{}
	case 5:
		return &messages.ForeignEvent{Type: "acme.x", Json: []byte(`{"type":"acme.x"}`)}
	case 6:
		return &messages.UnknownEvent{Type: "later", Version: 2, Payload: []byte{1}}
	}
	return &messages.SteeringNoteAdded{Content: "forged"}
}

func (w *walk) config() {
	w.t.Helper()
	c := &messages.SessionConfig{}
	if w.chance(50) {
		n := uint32(w.pick(5)) //nolint:gosec // below 5
		c.ConversationKeepLast = &n
	}
	if w.chance(30) {
		mode := w.one("collect", "COLLECT", "followup", "Steer", "steer_backlog", "interrupt", "fifo")
		c.QueueMode = &mode
	}
	w.run(session.Start{Config: c})
}

// settle lets everything come to its end: no accepted message is left without one.
func (w *walk) settle() {
	w.t.Helper()
	w.kit.TakeSlots(false)
	w.restart()
	for len(w.twin.open) > 0 {
		before := len(w.twin.open)
		if run, held := w.heldRun(); held {
			w.run(session.KeepAlive{RunID: run, Decision: "continue"})
		}
		w.run(session.RunFinished{Outcome: messages.OutcomeCompleted, Content: "done"})
		require.Less(w.t, len(w.twin.open), before, "a run that finished ends a turn")
	}
	require.False(w.t, w.kit.State().Ledger.Open())
}
