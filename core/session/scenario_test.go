package session_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// Each file of testdata shows one rule as a conversation: commands go through a testkit.SessionKit, which checks the
// invariants after each, and what is printed is what they did. Of every command: at=1s sets the time since the start, after=1s moves it.
func TestScenarios(t *testing.T) {
	t.Parallel()
	// Not datadriven.Walk: rapid and the fuzzer put their failures into testdata too.
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := &scenario{cfg: session.DefaultConfig()}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

// scenario is one conversation.
type scenario struct {
	cfg session.Config
	kit *testkit.SessionKit
}

// start is the kit's first time.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "config" {
		return s.config(t, d)
	}
	if s.kit == nil {
		s.kit = testkit.NewSessionKit(t, testkit.WithConfig(s.cfg))
	}
	if at := duration(t, d, "at"); at != 0 {
		s.kit.Advance(start.Add(at).Sub(s.kit.Now()))
	}
	s.kit.Advance(duration(t, d, "after"))
	switch d.Cmd {
	case "given":
		s.kit.Given(events(t, d)...)
		return ""
	case "restart":
		return printResult(s.kit.Restart())
	case "slots":
		s.kit.TakeSlots(d.HasArg("taken"))
		return ""
	case "explain":
		return printReply(s.kit.Explain("", func(r *messages.SubmitTurn) { proto.Merge(r, submission(d)) })) + "\n"
	case "view":
		return printView(s.kit.State().View())
	case "history":
		return printHistory(s.kit.State())
	case "turn":
		return s.turn(t, d)
	case "finals":
		return printFinals(s.kit.State().Ledger.Finals.After(0, time.Time{}))
	case "stored":
		return printStored(t, s.kit.Stored(messages.StreamLedger))
	case "settings":
		return printSettings(s.kit)
	case "fill":
		var n int
		d.ScanArgs(t, "n", &n)
		var last testkit.Result
		for range n {
			last = s.kit.Submit("filler")
		}
		return printState(last.State)
	}
	return printResult(s.kit.Run(s.command(t, d)))
}

func (s *scenario) command(t *testing.T, d *datadriven.TestData) session.Command {
	t.Helper()
	run, attempt := str(d, "run"), uint32(number(t, d, "attempt"))
	if run != "" && attempt == 0 {
		attempt = 1
	}
	switch d.Cmd {
	case "start":
		return session.Start{Config: sessionConfig(t, d)}
	case "touch":
		return session.Touch{}
	case "submit":
		return session.Submit{Request: submission(d)}
	case "withdraw":
		return session.Withdraw{TurnID: str(d, "turn")}
	case "accept", "refuse":
		return session.SteerAnswered{
			RunID: run, Attempt: attempt, TurnID: str(d, "turn"), Accepted: d.Cmd == "accept", Reason: str(d, "reason"),
		}
	case "ask":
		return session.SteerAsked{RunID: run, Attempt: attempt, TurnID: str(d, "turn"), BeforeCall: uint32(number(t, d, "call"))}
	case "overdue":
		return session.OfferOver{TurnID: str(d, "turn")}
	case "record":
		c := session.Record{Events: events(t, d)}
		if d.HasArg("expected") {
			expected := uint64(number(t, d, "expected"))
			c.Expected = &expected
		}
		return c
	case "abort":
		return session.Abort{Request: &messages.Abort{
			Scope: str(d, "scope"), TurnId: str(d, "turn"), RunId: str(d, "run"), Reason: str(d, "reason"),
		}}
	case "ack":
		return session.Ack{Seq: uint64(number(t, d, "seq"))}
	case "phase":
		return session.RunPhased{RunID: run, Attempt: attempt, Phase: messages.Phase(str(d, "to")), Reason: str(d, "reason")}
	case "retry":
		return session.RunRetried{RunID: run, Attempt: attempt, Reason: str(d, "reason")}
	case "ask_tools":
		return session.ToolsAsked{RunID: run, Attempt: attempt, CallIDs: strings.Split(strings.ReplaceAll(str(d, "ids"), " ", ""), ",")}
	case "tools":
		return session.ToolsMoved{RunID: run, Attempt: attempt, Actions: actions(d)}
	case "stream":
		return session.RunStreamed{RunID: run, Attempt: attempt, Text: str(d, "text")}
	case "finish":
		return finish(t, d, run, attempt)
	case "grace":
		return session.GraceOver{RunID: run, Attempt: attempt}
	case "grant":
		return session.SlotGranted{RunID: run}
	case "slot_over":
		return session.SlotOver{RunID: run, Ask: uint64(number(t, d, "ask"))}
	case "wanted":
		return session.LeaseWanted{RunID: run}
	case "settle_over":
		return session.SettleOver{}
	case "start_failed":
		return session.StartFailed{RunID: run, Attempt: attempt}
	case "start_again":
		return session.StartAgain{RunID: run, Attempt: attempt}
	case "keep":
		return session.KeepAlive{RunID: run, Decision: str(d, "decision")}
	case "tick":
		return session.Tick{}
	case "drain":
		return session.Drain{}
	case "suspend":
		return session.Suspend{}
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return nil
}

func finish(t *testing.T, d *datadriven.TestData, run string, attempt uint32) session.Command {
	t.Helper()
	c := session.RunFinished{
		RunID: run, Attempt: attempt, Outcome: messages.OutcomeCompleted, Content: str(d, "text"), FinishReason: str(d, "reason"),
	}
	if d.HasArg("outcome") {
		c.Outcome = messages.Outcome(str(d, "outcome"))
	}
	if d.HasArg("error") {
		c.Error = messages.Fail(messages.Code(str(d, "error")), "it broke")
	}
	if d.HasArg("resume") {
		c.Resume = &messages.ResumeToken{Engine: "codex", Token: str(d, "resume")}
	}
	c.ResumeLost = d.HasArg("lost")
	if d.HasArg("tokens") {
		n := uint64(number(t, d, "tokens"))
		c.Usage = &messages.Usage{InputTokens: &n, OutputTokens: &n, Source: string(messages.UsageReported)}
	}
	return c
}

func submission(d *datadriven.TestData) *messages.SubmitTurn {
	req := &messages.SubmitTurn{
		Text: str(d, "text"), Mode: str(d, "mode"), QueueMode: str(d, "queue"), IdempotencyKey: str(d, "key"),
		Sender: str(d, "sender"), Model: str(d, "model"), TaskResult: d.HasArg("task_result"),
	}
	if d.HasArg("resume") {
		req.Resume = &messages.ResumeToken{Engine: str(d, "resume"), Token: "x"}
		if d.HasArg("token") {
			req.Resume.Token = str(d, "token")
		}
	}
	if d.HasArg("attach") {
		req.Attachments = []*messages.Attachment{{Name: str(d, "attach")}}
	}
	return req
}

func sessionConfig(t *testing.T, d *datadriven.TestData) *messages.SessionConfig {
	t.Helper()
	if len(d.CmdArgs) == 0 {
		return nil
	}
	c := &messages.SessionConfig{}
	if d.HasArg("model") {
		model := str(d, "model")
		c.Model = &model
	}
	if d.HasArg("queue") {
		mode := str(d, "queue")
		c.QueueMode = &mode
	}
	if d.HasArg("keep_last") {
		n := uint32(number(t, d, "keep_last"))
		c.ConversationKeepLast = &n
	}
	if d.HasArg("token_budget") {
		n := uint32(number(t, d, "token_budget"))
		c.TokenBudget = &n
	}
	return c
}

// config changes the process's settings, before the first other command.
func (s *scenario) config(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	require.Nil(t, s.kit, "config comes first")
	for name, field := range map[string]*int{
		"keep_last": &s.cfg.KeepLast, "queue_limit": &s.cfg.QueueLimit, "max_input_bytes": &s.cfg.MaxInputBytes,
		"max_attempts": &s.cfg.RecoveryMaxAttempts, "max_finals": &s.cfg.MaxFinals, "checkpoint_every": &s.cfg.CheckpointEvery,
	} {
		if d.HasArg(name) {
			*field = number(t, d, name)
		}
	}
	for name, field := range map[string]*time.Duration{
		"window": &s.cfg.IdempotencyWindow, "max_age": &s.cfg.RecoveryMaxAge, "final_ttl": &s.cfg.FinalTTL,
		"merge_window": &s.cfg.MergeWindow, "steer_deadline": &s.cfg.SteerDeadline,
		"settle": &s.cfg.Settle, "slot_timeout": &s.cfg.SlotTimeout,
	} {
		if d.HasArg(name) {
			*field = duration(t, d, name)
		}
	}
	if d.HasArg("model") {
		s.cfg.Model = str(d, "model")
	}
	s.cfg.TokensPerDay = uint64(number(t, d, "tokens_per_day"))
	if d.HasArg("policy") {
		s.cfg.RecoveryPolicy = session.RecoveryPolicy(str(d, "policy"))
	}
	if d.HasArg("engine") {
		s.cfg.ResumeEngines = []string{str(d, "engine")}
	}
	if d.HasArg("serves") {
		only := str(d, "serves")
		s.cfg.ServesModel = func(_, model string) bool { return model == only }
	}
	if d.HasArg("queue") {
		s.cfg.QueueMode = messages.QueueMode(str(d, "queue"))
	}
	return ""
}

// turn tells of a turn as get_turn does: an open one from the state, an ended one from the index.
func (s *scenario) turn(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	status, ok := s.kit.State().Turn(str(d, "id"))
	if d.HasArg("key") {
		status, ok = s.kit.State().TurnByKey(str(d, "key"))
	}
	from := "state"
	if !ok {
		from = "index"
		status, ok = s.kit.Turn(str(d, "id"))
	}
	if !ok {
		return "unknown"
	}
	return from + ": " + printStatus(status)
}

func events(t *testing.T, d *datadriven.TestData) []messages.Event {
	t.Helper()
	var all []messages.Event
	for line := range strings.Lines(d.Input) {
		e, err := messages.EventFromJSON([]byte(line))
		require.NoError(t, err, line)
		all = append(all, e)
	}
	return all
}

// str gives an argument; one in parentheses may hold spaces, and \n is a newline.
func str(d *datadriven.TestData, name string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == name {
			return strings.ReplaceAll(strings.Join(arg.Vals, ", "), `\n`, "\n")
		}
	}
	return ""
}

func number(t *testing.T, d *datadriven.TestData, name string) int {
	t.Helper()
	var n int
	d.MaybeScanArgs(t, name, &n)
	return n
}

func duration(t *testing.T, d *datadriven.TestData, name string) time.Duration {
	t.Helper()
	text := str(d, name)
	if text == "" {
		return 0
	}
	value, err := time.ParseDuration(text)
	require.NoError(t, err)
	return value
}
