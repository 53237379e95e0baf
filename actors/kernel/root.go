package kernel

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// spawnRequest asks the root supervisor for a new top-level actor; the answer is its PID or an error.
type spawnRequest struct {
	group any // a name, or the *actor.Props
	props *actor.Props
}

// stopAll asks the root supervisor to stop its groups in reverse order and then itself.
type stopAll struct{}

// ControlMessage lets it overtake spawn requests.
func (stopAll) ControlMessage() {}

// group is the actors of one Props, or of one name, that are stopped together.
type group struct {
	key     any
	members map[string]*actor.PID
	told    bool // to stop
}

// root is the parent of all top-level actors.
type root struct {
	groups  []*group // in the order of their first spawn
	byActor map[string]*group
	closing bool
}

func newRoot() actor.Actor { return &root{byActor: make(map[string]*group)} }

// Receive implements actor.Actor.
func (r *root) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *spawnRequest:
		ctx.Respond(r.spawn(ctx, msg))
	case *actor.Terminated:
		r.forget(msg.Who)
		r.stopNext(ctx)
	case stopAll:
		if !r.closing {
			r.closing = true
			r.stopNext(ctx)
		}
	}
}

// spawn gives a PID or an error. The producer runs here, so a panic in it must not reach the other actors.
func (r *root) spawn(ctx actor.Context, req *spawnRequest) (answer any) {
	if r.closing {
		return ErrStopped
	}
	defer func() {
		if reason := recover(); reason != nil {
			answer = fmt.Errorf("spawn: producer panicked: %v", reason)
		}
	}()
	pid, err := ctx.SpawnNamed(req.props, rand.Text())
	if err != nil {
		return fmt.Errorf("spawn: %w", err)
	}
	g := r.groupOf(req.group)
	g.members[pid.Id] = pid
	r.byActor[pid.Id] = g
	return pid
}

func (r *root) groupOf(key any) *group {
	if i := slices.IndexFunc(r.groups, func(g *group) bool { return g.key == key }); i >= 0 {
		return r.groups[i]
	}
	g := &group{key: key, members: make(map[string]*actor.PID)}
	r.groups = append(r.groups, g)
	return g
}

// forget drops an actor that has ended. An empty group of a name keeps its place in the order; one of Props is dropped.
func (r *root) forget(pid *actor.PID) {
	g := r.byActor[pid.Id]
	if g == nil {
		return
	}
	delete(r.byActor, pid.Id)
	delete(g.members, pid.Id)
	if _, named := g.key.(string); !named && len(g.members) == 0 {
		r.groups = slices.DeleteFunc(r.groups, func(other *group) bool { return other == g })
	}
}

// stopNext stops the last group that still has members, or the root itself when there is none.
func (r *root) stopNext(ctx actor.Context) {
	if !r.closing {
		return
	}
	for len(r.groups) > 0 && len(r.groups[len(r.groups)-1].members) == 0 {
		r.groups = r.groups[:len(r.groups)-1]
	}
	if len(r.groups) == 0 {
		ctx.Stop(ctx.Self())
		return
	}
	last := r.groups[len(r.groups)-1]
	if last.told {
		return
	}
	last.told = true
	for _, pid := range last.members {
		ctx.Stop(pid)
	}
}
