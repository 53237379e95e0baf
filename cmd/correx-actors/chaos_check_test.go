package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

// watcher follows all sessions on one connection, and reconnects after the last number that it has.
type watcher struct {
	c     *chaos
	acks  bool
	seen  map[string]*seen
	calls int
}

// seen is what a watcher has of one session.
type seen struct {
	last uint64
	// jumped: a final came from behind a gap, which must be told next.
	jumped bool
	gap    bool
	// run, attempt and text are the running answer as its deltas add up; known is false until its beginning was seen.
	run     string
	attempt uint32
	text    string
}

// watch follows until all is calm, and then once more until nothing comes.
func (c *chaos) watch(n int) {
	w := &watcher{c: c, acks: n == 0, seen: make(map[string]*seen)}
	for i := range chaosSessions {
		w.seen[chaosSession(i)] = &seen{}
	}
	for c.t.Context().Err() == nil {
		calm := c.calm.Load()
		if w.connected() && calm && w.quiet() {
			return
		}
	}
}

// quiet: the answer of every turn is known.
func (w *watcher) quiet() bool {
	for i := range chaosSessions {
		state, err := w.c.client.Session(w.c.t.Context(), chaosSession(i))
		if err != nil || state.ActiveRun != nil || len(state.Queue) > 0 {
			return false
		}
	}
	return true
}

// connected follows over one connection; true if it was ended by silence.
func (w *watcher) connected() bool {
	l := &line{c: w.c}
	defer l.drop()
	conn, err := w.c.client.Dial(w.c.t.Context())
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return false
	}
	l.conn = conn
	for session, s := range w.seen {
		s.jumped, s.gap = false, false
		after := s.last
		if conn.Send(w.c.t.Context(), &protocol.Subscribe{SessionID: session, AfterSeq: &after}) != nil {
			return false
		}
	}
	begun := time.Now()
	for {
		wait := time.Second
		frame, ok := l.receive(wait)
		if !ok {
			return time.Since(begun) > wait
		}
		begun = time.Now()
		w.frame(l, frame)
		if w.calls++; rand.IntN(300) == 0 && !w.c.calm.Load() {
			return false // the client goes in the middle of something and comes back
		}
	}
}

func (w *watcher) frame(l *line, frame protocol.ServerFrame) {
	switch f := frame.(type) {
	case *protocol.Gap:
		w.seen[f.SessionID].gap = true
	case *protocol.Resync:
		s := w.seen[f.SessionID]
		if !s.gap || f.UpToSeq < s.last {
			w.c.fault("I11: resync up to %d of %s after item %d, gap told: %t", f.UpToSeq, f.SessionID, s.last, s.gap)
		}
		s.last, s.gap, s.jumped = f.UpToSeq, false, false
		s.run, s.attempt, s.text = f.RunID, f.Attempt, f.Text
	case protocol.OutputItem:
		w.item(f)
		session, seq := f.Place()
		if final, ok := f.(*protocol.RouterResponse); ok {
			w.c.final(final)
			if w.acks && session[len(session)-1]%2 == 1 {
				_ = l.conn.Send(w.c.t.Context(), &protocol.Ack{SessionID: session, Seq: seq})
			}
		}
	}
}

// item checks the number of an item, that everybody gets the same under it, and that deltas add up to the final text.
func (w *watcher) item(f protocol.OutputItem) {
	session, seq := f.Place()
	s := w.seen[session]
	_, final := f.(*protocol.RouterResponse)
	switch {
	case seq <= s.last:
		w.c.fault("I11: item %d of %s comes after item %d: %+v", seq, session, s.last, f)
	case s.gap || s.jumped && !final:
		w.c.fault("I11: no resync before item %d of %s after item %d", seq, session, s.last)
	case seq != s.last+1 && !final:
		w.c.fault("I11: item %d of %s after item %d, no gap was told: %+v", seq, session, s.last, f)
	}
	s.jumped = s.jumped || seq != s.last+1
	s.last = seq
	w.c.same(session, seq, f)
	switch f := f.(type) {
	case *protocol.StreamDelta:
		if f.Offset == 0 {
			s.run, s.attempt, s.text = f.RunID, f.Attempt, ""
		}
		if f.RunID != s.run || f.Attempt != s.attempt || f.Offset != uint64(len(s.text)) {
			w.c.fault("delta at %d of %s, attempt %d, but the text has %d bytes of %s, attempt %d",
				f.Offset, f.RunID, f.Attempt, len(s.text), s.run, s.attempt)
		}
		s.text += f.Text
	case *protocol.StreamFinalize:
		if f.RunID == s.run && f.Attempt == s.attempt && f.Text != s.text {
			w.c.fault("the deltas of %s add up to %q, its final is %q", f.RunID, s.text, f.Text)
		}
	}
}

func (c *chaos) same(session string, seq uint64, f protocol.OutputItem) {
	data, err := json.Marshal(f)
	if err != nil {
		c.fault("%v", err)
		return
	}
	c.mu.Lock()
	before, known := c.items[session][seq]
	c.items[session][seq] = string(data)
	c.mu.Unlock()
	if known && before != string(data) {
		c.fault("I11: item %d of %s is %s and %s", seq, session, before, data)
	}
}

func (c *chaos) final(f *protocol.RouterResponse) {
	c.mu.Lock()
	before := c.finals[f.RunID]
	c.finals[f.RunID] = f
	c.mu.Unlock()
	if before != nil && before.Seq != f.Seq {
		c.fault("I9: run %s has two finals, %d and %d", f.RunID, before.Seq, f.Seq)
	}
}

// verify asks the last server for everything that was acknowledged.
func (c *chaos) verify() {
	c.t.Helper()
	logs := make(map[string][]protocol.StoredEvent)
	for i := range chaosSessions {
		session := chaosSession(i)
		logs[session] = c.log(session, 0)
		c.verifyLog(session, logs[session])
	}
	ends := make(map[string]int)
	l := &line{c: c}
	defer l.drop()
	for _, turn := range c.turns {
		ends[c.verifyTurn(l, turn, logs[turn.session])]++
	}
	c.t.Logf("%d turns ended: %v; %d finals", len(c.turns), ends, len(c.finals))
}

// verifyTurn: exactly one end, by id and by key, the same as was published, and a note if and only if a run took it.
func (c *chaos) verifyTurn(l *line, turn *chaosTurn, log []protocol.StoredEvent) (state string) {
	answer, _, _ := l.ask(&protocol.GetTurn{SessionID: turn.session, TurnID: turn.id})
	byKey, _, _ := l.ask(&protocol.GetTurn{SessionID: turn.session, IdempotencyKey: turn.key})
	end, ok := answer.(*protocol.Turn)
	same, found := byKey.(*protocol.Turn)
	if !ok || !found {
		c.fault("I7: turn %s: %v, by key %s: %v", turn.id, answer, turn.key, byKey)
		return "unknown"
	}
	if end.TurnID != same.TurnID || end.State != same.State || end.Content != same.Content {
		c.fault("I7: turn %+v is by key %+v", end, same)
	}
	if slices.Contains([]string{"queued", "running"}, end.State) {
		c.fault("I7: turn %+v has no end", end)
	}
	final := c.finals[end.RunID]
	switch taken := end.Outcome != ""; {
	case taken != (final != nil):
		c.fault("I9: turn %+v in %s has the final %+v", end, turn.session, final)
	case taken && (final.Content != end.Content || final.Outcome != end.Outcome || !slices.Contains(final.TurnIDs, turn.id)):
		c.fault("I9: turn %+v has another final %+v", end, final)
	}
	notes := 0
	for _, stored := range log {
		var note struct {
			Type, Content string
			TurnID        string `json:"turn_id"`
		}
		if json.Unmarshal(stored.Event, &note) == nil && note.Type == "steering_note_added" && note.TurnID == turn.id {
			if notes++; note.Content != turn.text {
				c.fault("I2: the note of %+v says %q", turn, note.Content)
			}
		}
	}
	if want := turn.mode == protocol.ModeSteering && end.Outcome != ""; want != (notes == 1) || notes > 1 {
		c.fault("I2: turn %+v (%+v) has %d notes", turn, end, notes)
	}
	if end.Reason == "" {
		return end.State
	}
	return end.State + " (" + end.Reason + ")"
}

// verifyLog: no acknowledged event is lost or doubled, no number is left out, and the state is the fold (I1).
func (c *chaos) verifyLog(session string, log []protocol.StoredEvent) {
	c.t.Helper()
	status, stage := "IDLE", ""
	var stages []string
	times := make(map[string]int)
	for i, stored := range log {
		if stored.Sequence != uint64(i)+1 {
			c.fault("I1: event %d of %s has number %d", i+1, session, stored.Sequence)
		}
		var event struct {
			Type        string
			StageID     string `json:"stage_id"`
			NextStageID string `json:"next_stage_id"`
			Summary     string
			Reason      string
		}
		require.NoError(c.t, json.Unmarshal(stored.Event, &event))
		times[string(stored.Event)]++
		switch event.Type {
		case "workflow_started", "orchestration_resumed":
			status = "RUNNING"
		case "orchestration_paused":
			status = "PAUSED"
		case "workflow_completed":
			status = "COMPLETED"
		case "stage_started":
			stage = event.StageID
		case "stage_completed":
			stage = event.NextStageID
			stages = append(stages, event.StageID+" SUCCESS "+event.Summary)
		case "stage_failed":
			stages = append(stages, event.StageID+" FAILURE "+event.Reason)
		case "stage_cancelled":
			stages = append(stages, event.StageID+" CANCELLED "+event.Reason)
		}
	}
	for seq, event := range c.marks[session] {
		if seq > uint64(len(log)) || string(log[seq-1].Event) != event {
			c.fault("I6: event %d of %s was acknowledged and is lost: %s", seq, session, event)
		}
		if isMark := event[:14] == `{"type":"mark"`; isMark && times[event] != 1 {
			c.fault("I6: %s is %d times in %s", event, times[event], session)
		}
	}
	state, err := c.client.Session(c.t.Context(), session)
	require.NoError(c.t, err)
	got := make([]string, len(state.L2Memory))
	for i, s := range state.L2Memory {
		got[i] = s.StageID + " " + s.Outcome + " " + s.Summary
	}
	if state.WorkflowStatus != status || state.CurrentStageID != stage || state.EventSequence != uint64(len(log)) ||
		state.L2Total != uint64(len(stages)) || !slices.Equal(got, stages[max(0, len(stages)-len(got)):]) {
		c.fault("I1: the state of %s is not the fold of its %d events: %+v, want %s %s %d", session, len(log), state, status, stage, len(stages))
	}
}
