package main

import (
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

// watcher follows all sessions on one connection, and reconnects after the last number that it has.
type watcher struct {
	c    *chaos
	draw *rand.Rand
	acks bool
	seen map[string]*seen
}

// seen is what a watcher has of one session.
type seen struct {
	last uint64
	// jumped: a final came from behind a gap, which must be told next.
	jumped bool
	gap    bool
	// run, attempt and text are the running answer as its deltas add up.
	run     string
	attempt uint32
	text    string
}

// acknowledged says whether the answers of a session are: those of half of them, so that the others are kept.
func acknowledged(session string) bool { return session[len(session)-1]%2 == 1 }

// watch follows until all is calm, and then once more until nothing comes.
func (c *chaos) watch(n int) {
	w := &watcher{c: c, draw: c.rand("watcher", n), acks: n == 0, seen: make(map[string]*seen)}
	for i := range chaosSessions {
		w.seen[chaosSession(i)] = &seen{}
	}
	for c.t.Context().Err() == nil {
		calm := c.calm.Load() && w.quiet()
		if w.connected() && calm {
			return
		}
	}
}

// quiet: the answer of every turn is known.
func (w *watcher) quiet() bool {
	for i := range chaosSessions {
		state, err := w.c.client.Session(w.c.t.Context(), chaosSession(i))
		if err != nil || !quiet(state) {
			return false
		}
	}
	return true
}

// connected follows over one connection; true if it was ended by silence.
func (w *watcher) connected() bool {
	l := &line{c: w.c}
	defer l.drop()
	for session, s := range w.seen {
		s.jumped, s.gap = false, false
		after := s.last
		if !l.send(&protocol.Subscribe{SessionID: session, AfterSeq: &after}) {
			time.Sleep(10 * time.Millisecond)
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
		if w.draw.IntN(300) == 0 && !w.c.calm.Load() {
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
			if w.acks && acknowledged(session) {
				l.send(&protocol.Ack{SessionID: session, Seq: seq})
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
		w.c.fault("I11: item %d of %s comes after item %d: %s", seq, session, s.last, shown(f))
	case s.gap || s.jumped && !final:
		w.c.fault("I11: no resync before item %d of %s after item %d", seq, session, s.last)
	case seq != s.last+1 && !final:
		w.c.fault("I11: item %d of %s after item %d, no gap was told: %s", seq, session, s.last, shown(f))
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

// same: a number is never used for two items.
func (c *chaos) same(session string, seq uint64, f protocol.OutputItem) {
	c.mu.Lock()
	before := c.items[session][seq]
	c.items[session][seq] = f
	c.mu.Unlock()
	if before != nil && !reflect.DeepEqual(before, f) {
		c.fault("I11: item %d of %s is %s and %s", seq, session, shown(before), shown(f))
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
