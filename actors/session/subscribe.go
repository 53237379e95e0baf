package session

import (
	"github.com/asynkron/protoactor-go/actor"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// subscriber gets the session's output.
type subscriber struct {
	pid    *actor.PID
	events bool
}

// subscribe adds a subscriber; keep leaves an existing subscription of the same sender as it is.
func (s *Session) subscribe(ctx actor.Context, pid *actor.PID, events, keep bool) {
	if _, ok := s.subscribers[pid.GetId()]; ok && keep {
		return
	}
	if s.subscribers == nil {
		s.subscribers = make(map[string]*subscriber)
	}
	s.subscribers[pid.GetId()] = &subscriber{pid: pid, events: events}
	ctx.Watch(pid)
}

func (s *Session) unsubscribe(ctx actor.Context, pid *actor.PID) {
	if pid == nil || s.subscribers[pid.GetId()] == nil {
		return
	}
	delete(s.subscribers, pid.GetId())
	ctx.Unwatch(pid)
}

// subscribed answers Subscribe and catches the subscriber up: first the answer, then finals that nobody acknowledged, then
// either the kept items or, when some are not kept any more, a gap and the present state (I11). From then on it gets what is
// published, without a seam: this runs between two items.
func (s *Session) subscribed(ctx actor.Context, p *pending, m *messages.Subscribe) {
	if p.sender == nil {
		return
	}
	s.subscribe(ctx, p.sender, m.GetEvents(), m.GetKeep())
	next := s.state.Live.NextSeq
	oldest := s.now().Add(-s.deps.Core.FinalTTL)
	s.answer(p, &messages.Subscribed{
		NextSeq:       next,
		PendingFinals: uint32(len(s.state.Ledger.Finals.After(0, oldest))), //nolint:gosec // bounded by MaxFinals
		State:         s.view(),
	})
	if m.AfterSeq == nil {
		return
	}
	items, whole := s.output.after(m.GetAfterSeq(), next)
	if !whole {
		s.catchUp(p.sender, m.GetAfterSeq(), next)
		return
	}
	for _, item := range items {
		s.deps.Kernel.TellAs(p.sender, item, s.self)
	}
}

// catchUp brings a subscriber over items that are not kept: finals that nobody acknowledged, the gap, the present state.
func (s *Session) catchUp(pid *actor.PID, after, next uint64) {
	tell := func(msg any) { s.deps.Kernel.TellAs(pid, msg, s.self) }
	for _, run := range s.state.Ledger.Finals.After(after, s.now().Add(-s.deps.Core.FinalTTL)) {
		tell(messages.NewIntent(s.key, run.GetFinalSeq(), core.Response(run)))
	}
	gap := &messages.Gap{SessionId: string(s.key.Session), FromSeq: after + 1, ToSeq: next - 1}
	if gap.GetFromSeq() > gap.GetToSeq() {
		gap.FromSeq = next
		gap.ToSeq = max(next, after)
	}
	tell(gap)
	tell(s.resync(next - 1))
}

// carryOver brings subscribers over an activation that begins anew in place: its numbers start in a new block, and the end of
// a run may be stored that nobody was told. After is the last number that was published.
func (s *Session) carryOver(after uint64) {
	next := s.state.Live.NextSeq
	for _, sub := range s.subscribers {
		if after+1 < next {
			s.catchUp(sub.pid, after, next)
		}
	}
	s.announce(s.state.Router.EventSequence)
}

func (s *Session) resync(upTo uint64) *messages.Resync {
	r := &messages.Resync{SessionId: string(s.key.Session), UpToSeq: upTo, State: s.view()}
	if run := s.state.Ledger.Active; run != nil {
		r.RunId, r.Attempt, r.Text = run.ID, run.Attempt, s.state.Live.Text.String()
	}
	return r
}
