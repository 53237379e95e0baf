package directory

import (
	"log/slog"
	"maps"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
)

// table is the directory's actor: the only one that starts sessions, passes requests to them and lets them end.
type table struct {
	sys  *kernel.System
	deps *session.Deps
	log  *slog.Logger

	byKey map[messages.Key]*entry
	byPID map[string]messages.Key
	// roster is what lists read of the table; see there.
	roster *roster
	// peak is the most entries since the maps were made: Go's maps never shrink, so they are made anew after a crowd has left.
	peak int

	// draining is read by sessions that start meanwhile.
	draining *atomic.Bool
	drain    gathering
	suspend  gathering
}

// entry is a session in memory.
type entry struct {
	pid *actor.PID
	// leaving: the session was given leave to end; held requests wait until it has ended or says that it stays.
	leaving bool
	held    []held
	// quarantined: the session says that its records are damaged.
	quarantined bool
}

type held struct {
	request *session.Request
	sender  *actor.PID
}

// gathering waits for one word of each session.
type gathering struct {
	asker   *actor.PID
	waiting map[messages.Key]bool
}

// newTable makes a table that nothing is in yet, also where a restart makes it anew: its sessions have ended with it.
func newTable(sys *kernel.System, deps *session.Deps, r *roster) *table {
	r.clear()
	return &table{
		sys: sys, deps: deps, log: deps.Log, byKey: make(map[messages.Key]*entry), byPID: make(map[string]messages.Key),
		roster: r, draining: new(atomic.Bool),
	}
}

// Receive implements actor.Actor.
func (t *table) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *session.Request:
		t.pass(ctx, m, ctx.Sender())
	case activate:
		for _, key := range m.keys {
			t.find(ctx, key)
		}
	case session.Idle:
		t.idle(m)
	case session.Stay:
		t.stay(ctx, m)
	case session.Quarantined:
		t.quarantined(m)
	case *actor.Terminated:
		t.ended(ctx, m.Who)
	case listActive:
		t.list(ctx)
	case drainAll:
		t.draining.Store(true)
		t.drain = t.gather(ctx, session.Drain{})
	case suspendAll:
		t.draining.Store(true)
		t.suspend = t.gather(ctx, session.Suspend{})
	case session.Drained:
		t.drain.done(t.sys, m.Key)
	case session.Suspended:
		t.suspend.done(t.sys, m.Key)
	}
}

// pass hands a request to its session, or keeps it until the session's end has been seen: nothing is lost or reordered by a
// passivation.
func (t *table) pass(ctx actor.Context, m *session.Request, sender *actor.PID) {
	if err := m.Key.Validate(); err != nil {
		t.sys.TellAs(sender, &session.Answer{
			Key: m.Key, ID: m.ID, Reply: messages.Fail(messages.CodeInvalidSessionID, err.Error()),
		}, ctx.Self())
		return
	}
	e := t.find(ctx, m.Key)
	if e.leaving {
		e.held = append(e.held, held{request: m, sender: sender})
		return
	}
	t.sys.TellAs(e.pid, m, sender)
}

// find gives the session of a key, started if need be.
func (t *table) find(ctx actor.Context, key messages.Key) *entry {
	if e, ok := t.byKey[key]; ok {
		return e
	}
	e := &entry{pid: ctx.Spawn(session.Props(t.deps, key, t.draining))}
	t.roster.entered(key)
	t.byKey[key] = e
	t.byPID[e.pid.GetId()] = key
	t.peak = max(t.peak, len(t.byKey))
	return e
}

func (t *table) idle(m session.Idle) {
	e, ok := t.byKey[m.Key]
	if !ok || !e.pid.Equal(m.Self) || e.leaving {
		return
	}
	e.leaving = true
	t.sys.Tell(e.pid, session.Passivate{Gen: m.Gen})
}

func (t *table) stay(ctx actor.Context, m session.Stay) {
	e, ok := t.byKey[m.Key]
	if !ok || !e.pid.Equal(m.Self) {
		return
	}
	e.leaving = false
	t.release(ctx, e.held)
	e.held = nil
}

func (t *table) quarantined(m session.Quarantined) {
	e, ok := t.byKey[m.Key]
	if !ok || !e.pid.Equal(m.Self) {
		return
	}
	e.quarantined = true
	t.roster.refuses(m.Key)
}

// ended forgets a session and starts it again if something waits for it.
func (t *table) ended(ctx actor.Context, who *actor.PID) {
	key, ok := t.byPID[who.GetId()]
	if !ok {
		return // told twice
	}
	e := t.byKey[key]
	delete(t.byPID, who.GetId())
	delete(t.byKey, key)
	t.roster.left(key, e.quarantined)
	t.shrink()
	t.drain.done(t.sys, key)
	t.suspend.done(t.sys, key)
	t.release(ctx, e.held)
}

// smallTable is not worth shrinking.
const smallTable = 1024

func (t *table) shrink() {
	if t.peak < smallTable || len(t.byKey)*8 > t.peak {
		return
	}
	byKey, byPID := make(map[messages.Key]*entry, len(t.byKey)), make(map[string]messages.Key, len(t.byPID))
	maps.Copy(byKey, t.byKey)
	maps.Copy(byPID, t.byPID)
	t.byKey, t.byPID, t.peak = byKey, byPID, len(byKey)
}

func (t *table) release(ctx actor.Context, waiting []held) {
	for _, h := range waiting {
		t.pass(ctx, h.request, h.sender)
	}
}

func (t *table) list(ctx actor.Context) {
	keys := make(map[messages.Key]bool, len(t.byKey))
	for key := range t.byKey {
		keys[key] = true
	}
	ctx.Respond(keys)
}

// gather tells every session something and answers the asker when each has given its word.
func (t *table) gather(ctx actor.Context, msg any) gathering {
	g := gathering{asker: ctx.Sender(), waiting: make(map[messages.Key]bool, len(t.byKey))}
	for key, e := range t.byKey {
		g.waiting[key] = true
		t.sys.Tell(e.pid, msg)
	}
	g.check(t.sys)
	return g
}

func (g *gathering) done(sys *kernel.System, key messages.Key) {
	if g.waiting == nil {
		return
	}
	delete(g.waiting, key)
	g.check(sys)
}

func (g *gathering) check(sys *kernel.System) {
	if g.asker != nil && len(g.waiting) == 0 {
		sys.Tell(g.asker, gathered{})
		g.asker = nil
	}
}

// gathered answers drainAll and suspendAll.
type gathered struct{}
