package slots_test

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/slots"
)

// owner is an actor that keeps what it is told until somebody asks.
type owner struct{ told []any }

// tell asks an owner what it was told since the last time; a control message, so that it does not overtake what it asks for.
type tell struct{}

func (tell) ControlMessage() {}

// Receive implements actor.Actor.
func (o *owner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case slots.Granted, slots.Wanted:
		o.told = append(o.told, m)
	case tell:
		ctx.Respond(o.told)
		o.told = nil
	}
}

// process is the slots of a process and one owner of all tickets.
type process struct {
	t   testing.TB
	sys *kernel.System
	*slots.Slots
	owner *actor.PID
}

func newProcess(t testing.TB, cfg slots.Config) *process {
	t.Helper()
	require.NoError(t, cfg.Validate())
	sys := kernel.New(kernel.Config{})
	pid, err := sys.Spawn(sys.Props(func() actor.Actor { return new(owner) }, kernel.PropsOptions{}))
	require.NoError(t, err)
	p := &process{t: t, sys: sys, Slots: slots.New(sys, cfg), owner: pid}
	t.Cleanup(p.stop)
	return p
}

func (p *process) stop() { require.NoError(p.t, p.sys.Shutdown(context.Background())) }

// told gives what owners were told since the last time.
func (p *process) told() []any {
	p.t.Helper()
	answer, err := p.sys.Ask(p.t.Context(), p.owner, tell{})
	require.NoError(p.t, err)
	told, ok := answer.([]any)
	require.True(p.t, ok)
	return told
}

func (p *process) try(need slots.Need) *slots.Ticket { return p.Try(need, p.owner) }

func (p *process) ask(need slots.Need) *slots.Ticket { return p.Ask(need, p.owner) }

func (p *process) empty() {
	p.t.Helper()
	require.Equal(p.t, slots.Stats{}, p.Stats(), "everything is given back")
}

func TestConfigSaysWhatCannotBe(t *testing.T) {
	t.Parallel()
	require.NoError(t, slots.Config{Max: 1, PerProvider: map[string]int{"a": 0, "b": 7}}.Validate())
	require.ErrorContains(t, slots.Config{}.Validate(), "runs.max_concurrent is 0")
	require.ErrorContains(t, slots.Config{Max: 1, PerProvider: map[string]int{"a": -1}}.Validate(), "provider a")
}

func TestWaitersAreGrantedInOrderAndToldOnce(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 1})
	held := p.try(slots.Need{})
	require.True(t, held.Granted())
	require.True(t, held.Adopt())
	require.False(t, held.Adopt(), "by one only")
	first, second := p.ask(slots.Need{}), p.ask(slots.Need{})
	require.Empty(t, p.told())
	require.False(t, first.Granted())
	require.False(t, first.Adopt(), "it waits")
	held.Release()
	require.Equal(t, []any{slots.Granted{Ticket: first}}, p.told())
	require.True(t, first.Cancel(), "nobody has begun under it")
	require.Equal(t, []any{slots.Granted{Ticket: second}}, p.told())
	require.True(t, second.Adopt())
	require.False(t, second.Cancel(), "work goes on under it")
	require.Equal(t, slots.Stats{Used: 1}, p.Stats())
	second.Release()
	p.empty()
}

func TestEndsAreIdempotent(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 1})
	held := p.try(slots.Need{Lease: "a"})
	waitsForLease, waitsForSlot := p.ask(slots.Need{Lease: "a"}), p.ask(slots.Need{})
	require.Equal(t, slots.Stats{Used: 1, Waiting: 1, Leases: 1, WaitingForLease: 1}, p.Stats())
	for _, ticket := range []*slots.Ticket{waitsForLease, waitsForSlot, held} {
		require.True(t, ticket.Cancel())
		require.False(t, ticket.Cancel())
		ticket.Release()
		require.False(t, ticket.Adopt())
		require.False(t, ticket.Granted())
		require.False(t, ticket.Change(slots.Need{Lease: "b"}), "what has ended does not come back")
	}
	p.empty()
	require.Empty(t, p.told())
}

func TestProviderAtItsLimitHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 3, PerProvider: map[string]int{"slow": 1}})
	slow := p.try(slots.Need{Provider: "slow"})
	require.Nil(t, p.try(slots.Need{Provider: "slow"}))
	waits := p.ask(slots.Need{Provider: "slow"})
	fast := p.try(slots.Need{Provider: "fast"})
	require.NotNil(t, fast, "it takes nothing that the waiter could have")
	also := p.ask(slots.Need{})
	require.True(t, also.Granted())
	require.Equal(t, []any{slots.Granted{Ticket: also}}, p.told())
	require.Nil(t, p.try(slots.Need{Provider: "fast"}), "the limit of all")
	slow.Release()
	require.Equal(t, []any{slots.Granted{Ticket: waits}}, p.told())
	for _, ticket := range []*slots.Ticket{waits, fast, also} {
		ticket.Release()
	}
	p.empty()
}

// Who waits for a lease holds no slot, and who holds a lease and waits for a slot keeps its turn.
func TestLeaseComesFirstAndIsServedInOrder(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 2})
	holder := p.try(slots.Need{Lease: "talk"})
	require.Nil(t, p.try(slots.Need{Lease: "talk"}))
	first, second := p.ask(slots.Need{Lease: "talk"}), p.ask(slots.Need{Lease: "talk"})
	require.Equal(t, slots.Stats{Used: 1, Leases: 1, WaitingForLease: 2}, p.Stats())
	other := p.ask(slots.Need{})
	require.True(t, other.Granted(), "the other slot is free")
	later := p.ask(slots.Need{})
	holder.Release()
	require.True(t, first.Granted(), "it was asked for before the later one")
	require.False(t, later.Granted())
	require.False(t, second.Granted())
	other.Cancel()
	first.Cancel()
	require.True(t, later.Granted())
	require.True(t, second.Granted())
	later.Release()
	second.Release()
	p.empty()
}

func TestChangeKeepsThePlace(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 1})
	held := p.try(slots.Need{Provider: "a"})
	first, second := p.ask(slots.Need{Provider: "a"}), p.ask(slots.Need{Provider: "b"})
	require.False(t, first.Change(slots.Need{Provider: "b", Lease: "talk"}))
	held.Release()
	require.Equal(t, []any{slots.Granted{Ticket: first}}, p.told())
	require.True(t, first.Change(slots.Need{Provider: "b", Lease: "talk", Interrupts: true}), "nothing else to take")
	require.False(t, first.Change(slots.Need{Provider: "c", Lease: "talk"}), "another slot, which is told")
	require.Equal(t, []any{slots.Granted{Ticket: first}}, p.told(), "it is older than the one that waits")
	require.False(t, first.Change(slots.Need{Provider: "c", Lease: "other"}))
	require.Equal(t, []any{slots.Granted{Ticket: first}}, p.told(), "it is older than the one that waits")
	require.False(t, second.Granted())
	require.True(t, first.Adopt())
	require.False(t, first.Change(slots.Need{}), "work goes on under it")
	first.Release()
	second.Release()
	p.empty()
}

func TestInterruptAsksTheHolderToEnd(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 1})
	works := p.try(slots.Need{Lease: "talk"})
	require.True(t, works.Adopt())
	plain := p.ask(slots.Need{Lease: "talk"})
	require.Empty(t, p.told(), "it waits its turn")
	urgent := p.ask(slots.Need{Lease: "talk", Interrupts: true})
	require.Equal(t, []any{slots.Wanted{Ticket: works}}, p.told())
	require.False(t, plain.Change(slots.Need{Lease: "talk", Interrupts: true}))
	require.Equal(t, []any{slots.Wanted{Ticket: works}}, p.told(), "a waiter that becomes urgent asks as well")
	require.False(t, plain.Change(slots.Need{Lease: "talk", Interrupts: true}))
	require.Empty(t, p.told(), "it has asked")
	works.Release()
	require.Equal(t, []any{slots.Granted{Ticket: plain}, slots.Wanted{Ticket: plain}}, p.told(), "the other one waits on")
	plain.Release()
	require.Equal(t, []any{slots.Granted{Ticket: urgent}}, p.told())
	urgent.Release()
	p.empty()
}

// The holder was not at work yet when it was asked to end.
func TestHolderThatBeginsIsRemindedOfAnInterrupt(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 1})
	held := p.try(slots.Need{})
	holder := p.ask(slots.Need{Lease: "talk"})
	urgent := p.ask(slots.Need{Lease: "talk", Interrupts: true})
	require.Empty(t, p.told(), "there is nothing to end")
	held.Release()
	require.Equal(t, []any{slots.Granted{Ticket: holder}, slots.Wanted{Ticket: holder}}, p.told())
	require.True(t, urgent.Cancel())
	holder.Release()
	p.empty()
}

func TestLineages(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 9})
	p.Continue("t2", "t1")
	p.Continue("t3", "t2")
	p.Continue("", "t1")
	p.Continue("t1", "")
	p.Continue("t1", "t1")
	p.Continue("t1", "t3") // would be a circle
	holder := p.try(slots.Need{Lease: "t3"})
	for _, token := range []string{"t1", "t2", "t3"} {
		require.False(t, p.Free(slots.Need{Lease: token}), "%s is of the same lineage", token)
	}
	p.Forget("t3")
	require.True(t, p.Free(slots.Need{Lease: "t3"}), "a token that was replaced is a conversation of its own")
	require.False(t, p.Free(slots.Need{Lease: "t2"}))
	holder.Release()
	p.empty()
}

// W48: a session that wakes up finds its newest token in use by another one, which could not know of the lineage.
func TestLineageThatIsNotedLateJoinsTheLease(t *testing.T) {
	t.Parallel()
	p := newProcess(t, slots.Config{Max: 9})
	holder := p.try(slots.Need{Lease: "t2"})
	waits := p.ask(slots.Need{Lease: "t2"})
	p.Continue("t2", "t1")
	require.False(t, p.Free(slots.Need{Lease: "t1"}), "t2 goes on with it")
	owner := p.ask(slots.Need{Lease: "t1"})
	p.Forget("t2")
	require.False(t, p.Free(slots.Need{Lease: "t1"}))
	holder.Release()
	require.True(t, waits.Granted())
	require.False(t, owner.Granted(), "one at a time, in order")
	waits.Release()
	require.True(t, owner.Granted())
	owner.Release()
	p.empty()
}
