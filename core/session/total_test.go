package session_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// types lists the names of everything that a session's streams may hold.
var types = []string{
	"workflow_started", "stage_started", "stage_completed", "stage_failed", "steering_note_added", "foreign_event", "not_yet_known",
	"session_configured", "turn_admitted", "turn_returned", "turn_injected", "run_started", "run_suspended", "run_ended", "turn_ended", "abort_requested",
	"output_reserved", "session_alive", "finals_acked", "ledger_checkpoint",
}

// eventTypes is how many of types are of the event log; they come first.
const eventTypes = 7

// FuzzReduce: no record can panic the process (I13), neither when it is folded nor in what is decided on top of it.
func FuzzReduce(f *testing.F) {
	kit := testkit.NewSessionKit(f)
	kit.Run(session.Record{Events: []messages.Event{&messages.StageStarted{StageId: "build"}}})
	kit.Submit("one", func(r *messages.SubmitTurn) { r.Mode = "STEERING" })
	kit.Submit("two")
	kit.Answer("1")
	kit.Submit("three")
	base := kit.State()
	for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
		for _, rec := range kit.Stored(stream) {
			f.Add(uint8(slices.Index(types, rec.Type)), rec.Payload, false)
		}
	}
	for _, m := range hostile() {
		name, _, payload, err := messages.EncodeLedger(m)
		require.NoError(f, err)
		f.Add(uint8(slices.Index(types, name)), payload, true)
	}
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte, fresh bool) {
		s := base
		if fresh {
			s = session.New(base.Key)
		}
		rec := messages.Record{Type: types[int(kind)%len(types)], Version: 1, Payload: payload, Stream: messages.StreamLedger}
		if int(kind)%len(types) < eventTypes {
			rec.Stream = messages.StreamEvents
		}
		rec.Seq = s.Ledger.Head + 1
		s, err := session.Reduce(s, session.DefaultConfig(), rec)
		if err == nil {
			drive(s)
		}
	})
}

// hostile are records that no build of ours writes.
func hostile() []messages.LedgerRecord {
	zero := uint32(0)
	run := &messages.RunStarted{RunId: "run_1", TurnIds: []string{"a", "b", "c"}}
	return []messages.LedgerRecord{
		&messages.SessionConfigured{Config: &messages.SessionConfig{ConversationKeepLast: &zero}},
		&messages.TurnAdmitted{},
		&messages.RunStarted{},
		run,
		&messages.RunEnded{RunId: "run_1", Content: "x"},
		&messages.LedgerCheckpoint{Active: run},
		&messages.LedgerCheckpoint{Active: run, OpenTurns: []*messages.Turn{{}}, Finals: []*messages.Final{{}}},
		&messages.LedgerCheckpoint{Active: &messages.RunStarted{}, ActiveAborted: true},
		&messages.TurnAdmitted{Turn: &messages.Turn{TurnId: "turn_1"}, Placement: "merged", MergedInto: "turn_9"},
		&messages.TurnAdmitted{Turn: &messages.Turn{}, Placement: "nowhere"},
		&messages.TurnReturned{TurnId: "turn_2", Placement: "offered"},
		&messages.TurnInjected{TurnId: "turn_2"},
		&messages.LedgerCheckpoint{ // one id twice, in one entry and in two
			OpenTurns: []*messages.Turn{{}, {}, {}}, Waiting: []*messages.WaitingEntry{{}, {TurnIds: []string{"", ""}}},
		},
		&messages.LedgerCheckpoint{OpenTurns: []*messages.Turn{{}, {}}, OfferedTurnIds: []string{"", ""}},
	}
}

// drive runs a whole life on top of a state: whatever it is, deciding does not panic.
func drive(s session.State) {
	cfg, now := session.DefaultConfig(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg.CheckpointEvery = 2
	for _, cmd := range []session.Command{
		session.Recover{Epoch: 1},
		session.Start{},
		session.Submit{Request: &messages.SubmitTurn{Text: "hello"}, TurnID: "turn_x"},
		session.Submit{Request: &messages.SubmitTurn{Text: "steer", QueueMode: "steer"}, TurnID: "turn_y"},
		session.SteerAsked{RunID: "run_x", Attempt: 1, TurnID: "turn_y"},
		session.Submit{Request: &messages.SubmitTurn{Text: "also", QueueMode: "followup"}, TurnID: "turn_z"},
		session.Withdraw{TurnID: "turn_z"},
		session.Submit{Request: &messages.SubmitTurn{Text: "first", QueueMode: "interrupt"}, TurnID: "turn_i"},
		session.Tick{},
		session.Suspend{},
		session.Recover{Epoch: 2},
	} {
		s = session.Decide(s, cfg, cmd, now).Next
	}
	for range 5 {
		if run := s.Ledger.Active; run != nil {
			s = session.Decide(s, cfg, session.RunStreamed{RunID: run.ID, Attempt: run.Attempt, Text: "x"}, now).Next
			s = session.Decide(s, cfg, session.RunFinished{
				RunID: run.ID, Attempt: run.Attempt, Outcome: messages.OutcomeCompleted, Content: "x",
			}, now).Next
		}
	}
	s = session.Decide(s, cfg, session.Abort{Request: &messages.Abort{Scope: "session"}}, now).Next
	s = session.Decide(s, cfg, session.Ack{Seq: s.Live.NextSeq}, now.Add(time.Hour)).Next
	for _, run := range s.Ledger.Finals.After(0, time.Time{}) {
		_ = session.Response(run)
	}
	_, _ = s.Turn("turn_x")
	_ = s.View()
}

func TestReduceOfRecordsThatDoNotFitChangesOnlyTheHead(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("one")
	kit.Submit("two")
	s := kit.State()
	for _, m := range []messages.LedgerRecord{
		&messages.RunEnded{RunId: "run_9", Content: "x"},
		&messages.RunSuspended{RunId: "run_9"},
		&messages.AbortRequested{RunId: "run_9"},
		&messages.TurnEnded{TurnId: "turn_9"},
		&messages.RunStarted{RunId: "run_2", TurnIds: []string{"turn_2"}, Attempt: 1},
		&messages.RunStarted{RunId: "run_9", TurnIds: []string{"turn_9"}, Attempt: 1},
		&messages.FinalsAcked{UpTo: 100},
		&messages.TurnAdmitted{},
		&messages.TurnReturned{TurnId: "turn_2", Placement: "back"},
		&messages.TurnInjected{TurnId: "turn_2", RunId: "run_1"},
		&messages.TurnInjected{TurnId: "turn_9", RunId: "run_1"},
		&messages.SessionAlive{At: timestamppb.New(start.Add(-time.Hour))},
		&messages.SessionAlive{},
		&messages.OutputReserved{UpTo: 1},
	} {
		got, err := session.Reduce(s, kit.Config(), ledgerRecord(t, s.Ledger.Head+1, m))
		require.NoError(t, err)
		require.Equal(t, s.Ledger.Head+1, got.Ledger.Head)
		got.Ledger.Head, got.Ledger.SinceCheckpoint = s.Ledger.Head, s.Ledger.SinceCheckpoint
		require.Empty(t, testkit.DiffStates(s, got), "%T", m)
	}
}

func TestReduceRefusesWhatANewerBuildWrote(t *testing.T) {
	t.Parallel()
	s := session.New(messages.NewKey("s"))
	rec := ledgerRecord(t, 1, &messages.OutputReserved{UpTo: 1})
	later := rec
	later.Type = "turn_frozen"
	_, err := session.Reduce(s, session.DefaultConfig(), later)
	require.ErrorIs(t, err, messages.ErrUnknownType)

	later.Flags = messages.FlagIgnorable
	got, err := session.Reduce(s, session.DefaultConfig(), later)
	require.NoError(t, err)
	require.Equal(t, uint64(1), got.Ledger.Head)

	rec.Payload, rec.Flags = []byte{0xff}, messages.FlagIgnorable
	_, err = session.Reduce(s, session.DefaultConfig(), rec)
	require.Error(t, err, "damage is not ignorable")
	rec.Stream, rec.Type = messages.StreamEvents, "stage_started"
	_, err = session.Reduce(s, session.DefaultConfig(), rec)
	require.Error(t, err)
}

func ledgerRecord(t *testing.T, seq uint64, m messages.LedgerRecord) messages.Record {
	t.Helper()
	name, version, payload, err := messages.EncodeLedger(m)
	require.NoError(t, err)
	return messages.Record{Stream: messages.StreamLedger, Seq: seq, Type: name, Version: version, Payload: payload}
}

func TestSubmitRefusesFieldsThatNoRecordCanHold(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	long, broken := strings.Repeat("x", 257), "a\xff"
	for name, edit := range map[string]func(*messages.SubmitTurn){
		"text is not valid UTF-8":                                func(r *messages.SubmitTurn) { r.Text = broken },
		"idempotency_key is not valid UTF-8":                     func(r *messages.SubmitTurn) { r.IdempotencyKey = broken },
		"sender is not valid UTF-8":                              func(r *messages.SubmitTurn) { r.Sender = broken },
		"model is not valid UTF-8":                               func(r *messages.SubmitTurn) { r.Model = broken },
		"idempotency_key has 257 bytes, at most 256 are allowed": func(r *messages.SubmitTurn) { r.IdempotencyKey = long },
		"sender has 257 bytes, at most 256 are allowed":          func(r *messages.SubmitTurn) { r.Sender = long },
		"model has 257 bytes, at most 256 are allowed":           func(r *messages.SubmitTurn) { r.Model = long },
	} {
		requireRefusal(t, kit.Submit("hello", edit), messages.CodeInvalidField, name)
	}
	requireRefusal(t, kit.Submit("hello", func(r *messages.SubmitTurn) { r.QueueMode = strings.Repeat("ä", 200) }),
		messages.CodeInvalidQueueMode, `no queue mode "`+strings.Repeat("ä", 128)+`…"; use collect, followup, steer, steer_backlog or interrupt`)
	requireRefusal(t, kit.Submit("hello", func(r *messages.SubmitTurn) { r.Resume = &messages.ResumeToken{Engine: broken, Token: "t"} }),
		messages.CodeInvalidField, "resume is not valid UTF-8")
	for reason, text := range map[string]string{
		broken:                    "reason is not valid UTF-8",
		strings.Repeat("x", 1025): "reason has 1025 bytes, at most 1024 are allowed",
	} {
		requireRefusal(t, kit.Run(session.Abort{Request: &messages.Abort{Reason: reason}}), messages.CodeInvalidField, text)
	}
	for _, id := range []string{broken, strings.Repeat("ü", 200)} {
		_ = kit.Run(session.Abort{Request: &messages.Abort{Scope: "turn", TurnId: id}})
		_ = kit.Run(session.Abort{Request: &messages.Abort{RunId: id}})
	}
	requireRefusal(t, kit.Run(session.Start{Config: &messages.SessionConfig{Model: &broken}}), messages.CodeInvalidField, "config.model is not valid UTF-8")
	requireRefusal(t, kit.Run(session.Start{Config: &messages.SessionConfig{Model: &long}}), messages.CodeInvalidField,
		"config.model has 257 bytes, at most 256 are allowed")
	many := slices.Repeat([]messages.Event{&messages.WorkflowCompleted{}}, session.MaxEvents+1)
	requireRefusal(t, kit.Run(session.Record{Events: many}), messages.CodeInvalidField, "1001 events, at most 1000 are allowed")
	kit.Run(session.Record{Events: many[1:]})
	require.False(t, kit.State().Ledger.Open())
}

func requireRefusal(t *testing.T, r testkit.Result, code messages.Code, text string) {
	t.Helper()
	failure, ok := r.Reply.(*messages.Failure)
	require.True(t, ok, "%v", r.Reply)
	require.Equal(t, string(code), failure.GetCode())
	require.Equal(t, text, failure.GetMessage())
	require.False(t, failure.GetRetryable())
}

// The content hash tells apart submissions whose fields run into the same bytes.
func TestIdempotencyComparesFieldByField(t *testing.T) {
	t.Parallel()
	first := &messages.SubmitTurn{Text: "ab", Sender: "c", Model: "d", IdempotencyKey: "k"}
	for _, other := range []*messages.SubmitTurn{
		{Text: "a", Sender: "bc", Model: "d"},
		{Text: "ab", Sender: "cd"},
		{Text: "ab", Sender: "c", Model: "d", Mode: "STEERING"},
		{Text: "ab", Sender: "d", Model: "c"},
		{Text: "ab", Sender: "c", Model: "d", QueueMode: "collect"},
		{Text: "ab", Sender: "c", Model: "d", TaskResult: true},
	} {
		kit := testkit.NewSessionKit(t)
		kit.Run(session.Submit{Request: proto.CloneOf(first)})
		other.IdempotencyKey = "k"
		requireRefusal(t, kit.Run(session.Submit{Request: other}), messages.CodeIdempotencyConflict,
			"the idempotency key was used for another turn: turn_1")
		other.QueueMode, other.IdempotencyKey = "Collect", "k2"
		kit.Run(session.Submit{Request: proto.CloneOf(other)})
		other.QueueMode = "COLLECT"
		reply, ok := kit.Run(session.Submit{Request: other}).Reply.(*messages.TurnAccepted)
		require.True(t, ok, "a mode's case does not count")
		require.Equal(t, "duplicate", reply.GetDisposition())
		again := proto.CloneOf(first)
		again.Mode, again.Subscribe = "CHAT", true
		reply, ok = kit.Run(session.Submit{Request: again}).Reply.(*messages.TurnAccepted)
		require.True(t, ok)
		require.Equal(t, "duplicate", reply.GetDisposition())
	}
}

// I11: a block that runs out in the middle of a long answer is followed by the next one before any of its numbers is used.
func TestOutputNumbersAreReservedInBlocksAhead(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("tell me everything")
	reservations := 0
	for range 10_000 {
		r := kit.Run(session.RunStreamed{Text: "x"})
		reservations += len(r.Ledger)
		require.GreaterOrEqual(t, r.State.Ledger.OutputReserved, r.State.Live.NextSeq-1+1024, "a quarter of a block is left")
	}
	require.Equal(t, 2, reservations)
	before := kit.State().Ledger.OutputReserved
	r := kit.Restart()
	require.Equal(t, before+1, r.Published()[0].Seq)
}

func TestDecideIsDeterministicAndLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	kit.Submit("one", func(r *messages.SubmitTurn) { r.Mode = "STEERING" })
	kit.Submit("two")
	kit.Run(session.RunStreamed{Text: "1"})
	finish := session.RunFinished{Outcome: messages.OutcomeCompleted, Content: "1"}
	a, b := kit.Decide(finish), kit.Decide(finish)
	require.Empty(t, testkit.DiffStates(a.Next, b.Next))
	require.Len(t, b.Effects, len(a.Effects))
	for i := range a.Effects {
		require.Equal(t, printEffect(a.Effects[i]), printEffect(b.Effects[i]))
	}
	require.NotEmpty(t, testkit.DiffStates(a.Next, kit.State()))
	kit.Answer("1") // the kit compares the state with what is stored
}

// Two decisions on one state do not see each other, whatever room its slices have left.
func TestStatesThatShareAPastDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	submit := func(text string) session.Submit {
		return session.Submit{Request: &messages.SubmitTurn{Text: text}, TurnID: "turn_" + text}
	}
	kit.Submit("active")
	for range 15 {
		kit.Submit("waiting")
		a, b := kit.Decide(submit("a")).Next, kit.Decide(submit("b")).Next
		require.Equal(t, "a", lastText(a))
		require.Equal(t, "b", lastText(b))
	}
	for range 15 {
		finish := session.RunFinished{Outcome: messages.OutcomeCompleted}
		finish.Content = "a"
		a := kit.Decide(finish).Next
		finish.Content = "b"
		b := kit.Decide(finish).Next
		answer := func(s session.State) string { return s.Ledger.History[len(s.Ledger.History)-2].Content }
		require.Equal(t, []string{"a", "b"}, []string{answer(a), answer(b)})
		kit.Answer("x")
	}
	aborted := kit.Decide(session.Abort{Request: &messages.Abort{}}).Next
	require.True(t, aborted.Ledger.Active.Aborted)
	require.False(t, kit.State().Ledger.Active.Aborted)
}

func lastText(s session.State) string {
	turns := s.Ledger.Queue.Turns()
	return turns[len(turns)-1].GetText()
}

func TestConfigValidateNamesEverySettingThatCannotBe(t *testing.T) {
	t.Parallel()
	require.NoError(t, session.DefaultConfig().Validate())
	err := session.Config{}.Validate()
	require.Error(t, err)
	for _, name := range []string{
		"conversation.keep_last", "conversation.token_budget", "limits.max_input_bytes", "queue.limit", "steer.deadline", "idempotency.window",
		"interrupt.grace", "recovery.max_age", "recovery.max_attempts", "output.final_ttl", "max_finals", "checkpoint_every",
	} {
		require.ErrorContains(t, err, name+" is 0, want more than 0")
	}
	require.ErrorContains(t, err, `queue.mode is "", want collect, followup, steer, steer_backlog or interrupt`)
	cfg := session.DefaultConfig()
	cfg.KeepLast = 1001
	require.EqualError(t, cfg.Validate(), "conversation.keep_last is 1001, at most 1000")
	cfg = session.DefaultConfig()
	cfg.MergeWindow = 0
	require.NoError(t, cfg.Validate(), "0: followups of one instant merge")
	cfg.MergeWindow = -1
	require.EqualError(t, cfg.Validate(), "queue.merge_window is -1ns, want 0 or more")
	require.Equal(t, 225*time.Second, session.DefaultConfig().AliveEvery())
}
