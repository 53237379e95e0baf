package main

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

// chaosKept is how many answers a session keeps for redelivery, chaosRemembered how many entries of history.
const (
	chaosKept       = 1000
	chaosRemembered = 12
)

// chaosPhases are ranks: within an attempt they only rise.
var chaosPhases = map[string]int{
	"accepted": 1, "queued_in_session": 2, "waiting_for_slot": 3, "dispatched": 4, "starting_engine": 5, "streaming": 6,
	"finalizing": 7, "completed": 8, "failed": 8, "aborted": 8,
}

// chaosRun is a run as its items show it, in the order of their numbers.
type chaosRun struct {
	attempt uint32
	rank    int
	final   bool
	// began are the items that told the beginnings of its attempts, stopped is the first that told of a turn that interrupts it.
	began   []uint64
	stopped uint64
}

// outputCheck goes through the items of one session that anybody got. Some are missing: they were kept for nobody.
type outputCheck struct {
	*verdict
	runs map[string]*chaosRun
	// open is the run that works and has no final.
	open string
	// told are the turns whose end was announced.
	told map[string]bool
}

// verifyOutput: one run works at a time (I5), its phases rise, its final comes once and last (I9), and each end is announced once.
func (v *verdict) verifyOutput(session string) {
	o := &outputCheck{verdict: v, runs: make(map[string]*chaosRun), told: make(map[string]bool)}
	for _, seq := range slices.Sorted(maps.Keys(v.items[session])) {
		switch f := v.items[session][seq].(type) {
		case *protocol.RunPhase:
			o.phase(f)
		case *protocol.StreamDelta:
			o.works(f.RunID, f)
		case *protocol.StreamFinalize:
			o.works(f.RunID, f)
		case *protocol.TurnState:
			o.ended(f)
		case *protocol.RouterResponse:
			o.finished(f)
		default:
			v.fault("nobody expects %s", shown(f))
		}
	}
	if o.open != "" {
		v.fault("I9: run %s of %s worked and has no final", o.open, session)
	}
}

// run gives the run of an item, which must not have had its final.
func (o *outputCheck) run(id string, f protocol.OutputItem) *chaosRun {
	if o.runs[id] == nil {
		o.runs[id] = &chaosRun{}
	}
	if o.runs[id].final {
		o.fault("I9: after the final of its run comes %s", shown(f))
	}
	return o.runs[id]
}

// works notes that an item shows its run at work.
func (o *outputCheck) works(id string, f protocol.OutputItem) {
	o.run(id, f)
	if o.open != "" && o.open != id {
		o.fault("I5: run %s has no final, and there comes %s", o.open, shown(f))
	}
	o.open = id
}

func (o *outputCheck) phase(f *protocol.RunPhase) {
	run, rank := o.run(f.RunID, f), chaosPhases[f.Phase]
	if rank == 0 || f.Attempt < run.attempt || f.Attempt == run.attempt && rank <= run.rank || f.PreviousPhase != "" && chaosPhases[f.PreviousPhase] >= rank {
		o.fault("run %+v gets the phase %s", run, shown(f))
	}
	run.attempt, run.rank = f.Attempt, rank
	interrupts := func(id string) bool { return o.turns[id] != nil && o.turns[id].queueMode == "interrupt" }
	switch {
	case f.Phase == "dispatched":
		run.began = append(run.began, f.Seq)
	case f.Phase == "accepted" && o.open != "" && o.runs[o.open].stopped == 0 && slices.ContainsFunc(f.TurnIDs, interrupts):
		o.runs[o.open].stopped = f.Seq
	}
	if rank >= chaosPhases["dispatched"] && rank < chaosPhases["completed"] {
		o.works(f.RunID, f)
	}
}

func (o *outputCheck) finished(f *protocol.RouterResponse) {
	if o.open != "" {
		o.works(f.RunID, f)
	}
	run := o.run(f.RunID, f)
	run.final, o.open = true, ""
	if run.stopped > 0 && f.Outcome != "interrupted" && f.Outcome != "cancelled" {
		o.fault("I6: attempts began with the items %d, a turn that interrupts the run came with item %d, and its final is %s",
			run.began, run.stopped, shown(f))
	}
}

func (o *outputCheck) ended(f *protocol.TurnState) {
	o.run(f.RunID, f)
	turn, end := o.turns[f.TurnID], o.ends[f.TurnID]
	if turn == nil || o.told[f.TurnID] {
		o.fault("I7: turn %+v, told: %t, ends with %s", turn, o.told[f.TurnID], shown(f))
		return
	}
	o.told[f.TurnID] = true
	emitted := turn.mode == protocol.ModeSteering && end.Outcome != "" && end.State != "merged"
	if f.State != end.State || f.Reason != end.Reason && end.State != "merged" || f.MergedInto != end.MergedInto || f.SteeringEmitted != emitted {
		o.fault("I7: the end %s was announced as %s", shown(end), shown(f))
	}
}

// verifyOrder: turns that queue by coming last are answered in the order in which they came, over all restarts. Only those are
// compared of which one was acknowledged before the other was sent.
func (v *verdict) verifyOrder(session string) {
	var queued []*chaosTurn
	for id, turn := range v.turns {
		if turn.session == session && v.finals[v.ends[id].RunID] != nil && slices.Contains([]string{"", "collect", "followup"}, turn.queueMode) {
			queued = append(queued, turn)
		}
	}
	answered := func(t *chaosTurn) uint64 { return v.finals[v.ends[t.id].RunID].Seq }
	before := slices.SortedFunc(slices.Values(queued), func(a, b *chaosTurn) int { return cmp.Compare(a.acked, b.acked) })
	after := slices.SortedFunc(slices.Values(queued), func(a, b *chaosTurn) int { return cmp.Compare(a.sent, b.sent) })
	var last *chaosTurn
	for _, turn := range after {
		for len(before) > 0 && before[0].acked < turn.sent {
			if last == nil || answered(before[0]) > answered(last) {
				last = before[0]
			}
			before = before[1:]
		}
		if last != nil && answered(turn) < answered(last) {
			v.fault("turn %+v is answered by item %d, before turn %+v, which came before it, by item %d", turn, answered(turn), last, answered(last))
		}
	}
}

// finalsOf gives the finals of a session in their order.
func (c *chaos) finalsOf(session string) []*protocol.RouterResponse {
	var finals []*protocol.RouterResponse
	for _, final := range c.finals {
		if final.SessionID == session {
			finals = append(finals, final)
		}
	}
	slices.SortFunc(finals, func(a, b *protocol.RouterResponse) int { return cmp.Compare(a.Seq, b.Seq) })
	return finals
}

// verifyHistory: the conversation is what the finals say: the texts of the turns of each run, joined, once, and its answer.
func (v *verdict) verifyHistory(session string) {
	var want []protocol.HistoryEntry
	for _, final := range v.finalsOf(session) {
		var texts []string
		for _, id := range final.TurnIDs {
			texts = append(texts, v.turns[id].text)
		}
		want = append(want, protocol.HistoryEntry{Role: "USER", Content: strings.Join(texts, "\n")})
		if strings.TrimSpace(final.Content) != "" {
			want = append(want, protocol.HistoryEntry{Role: "ROUTER", Content: final.Content, Partial: final.Outcome != "completed"})
		}
	}
	want = want[max(0, len(want)-chaosRemembered):]
	state, err := v.client.Session(v.t.Context(), session)
	require.NoError(v.t, err)
	got := slices.Clone(state.ConversationHistory)
	for i := range got {
		got[i].Timestamp = time.Time{}
	}
	if !slices.Equal(got, want) {
		v.fault("I7: the conversation of %s is %s, want %s", session, shown(got), shown(want))
	}
	if !quiet(state) {
		v.fault("I7: something is open in %s: %s", session, shown(state))
	}
}

// acknowledge waits until the answers of half of the sessions are acknowledged.
func (c *chaos) acknowledge() {
	l := &line{c: c}
	defer l.drop()
	for i := range chaosSessions {
		finals := c.finalsOf(chaosSession(i))
		if !acknowledged(chaosSession(i)) || len(finals) == 0 {
			continue
		}
		l.send(&protocol.Ack{SessionID: chaosSession(i), Seq: finals[len(finals)-1].Seq})
		pending := func() bool {
			answer, _, _ := l.ask(&protocol.Subscribe{SessionID: chaosSession(i)})
			subscribed, ok := answer.(*protocol.Subscribed)
			return !ok || subscribed.PendingFinals > 0
		}
		for until := time.Now().Add(20 * time.Second); pending(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				c.fault("answers of %s up to %d were acknowledged, and are still pending", chaosSession(i), finals[len(finals)-1].Seq)
				break
			}
		}
	}
}

// verifyRedelivery: a new subscriber gets the answers that nobody acknowledged, as they were, and none of the others. The next
// number is one that nobody was ever sent (I11).
func (v *verdict) verifyRedelivery(session string) {
	l, begin := &line{c: v.chaos}, uint64(0)
	defer l.drop()
	if !l.send(&protocol.Subscribe{SessionID: session, AfterSeq: &begin}) {
		v.fault("nobody can subscribe to %s", session)
		return
	}
	want := v.finalsOf(session)
	want = want[max(0, len(want)-chaosKept):]
	if acknowledged(session) {
		want = nil
	}
	var got []*protocol.RouterResponse
	for {
		frame, ok := l.receive(10 * time.Second)
		if !ok {
			v.fault("a new subscriber of %s got %d finals and no resync", session, len(got))
			return
		}
		switch f := frame.(type) {
		case *protocol.Subscribed:
			for seq := range v.items[session] {
				if seq >= f.NextSeq {
					v.fault("I11: the next number of %s is %d, but there was an item %d", session, f.NextSeq, seq)
				}
			}
			if f.NextSeq == 1 {
				return // nobody ever said anything there, so there is nothing to catch up on
			}
		case *protocol.RouterResponse:
			got = append(got, f)
		case *protocol.Resync:
			if older := len(got) - len(want); older < 0 || older > 0 && (acknowledged(session) || len(want) < chaosKept) || !reflect.DeepEqual(got[older:], want) {
				v.fault("a new subscriber of %s gets %d finals, want %d: %s, want %s", session, len(got), len(want), shown(got), shown(want))
			}
			return
		}
	}
}
