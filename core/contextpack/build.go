package contextpack

import (
	"slices"

	"github.com/correx/correx-actors/core/router"
)

// Build makes the pack of a session's next prompt.
//
// L0 and the newest user turn are always in it. Over the budget the oldest L2 entry goes first, then the next, and only when
// no L2 entry is left the oldest of L1 (I4). So L2 and L1 each keep an unbroken newest part: an old entry never stays in the
// place of a newer one because it happens to be shorter.
//
// The window of KeepLast entries and the budget cut between any two entries, so the history may begin with an answer whose
// question fell out. Such an answer stays: history is plain text, so unlike a tool result it is valid by itself, users refer to it
// ("the second option"), and without it every even window would be one entry shorter than asked for.
func Build(state router.State, turns []Turn, budget Budget) Pack {
	b := newBuilder(state, budget)
	top := []Entry{
		b.exempt(b.entry(L0, RoleSystem, budget.systemPrompt()), reasonL0),
		b.exempt(b.entry(L0, RoleSystem, statusText(state)), reasonL0),
	}
	conversation := classify(turns, budget.KeepLast)
	var newest Entry
	if i := slices.IndexFunc(conversation, func(c candidate) bool { return c.newest }); i >= 0 {
		newest = b.exempt(b.entry(L1, RoleUser, conversation[i].turn.Content), reasonNewest)
	}
	b.pack.OverBudget = b.pack.Tokens > b.pack.Budget
	b.pack.Overflow = budget.Window > 0 && b.pack.Tokens > budget.Window

	// Filled newest first, L1 before L2: what has no place any more is what eviction from the other end would take.
	history, whole := b.history(conversation, newest)
	stages := b.stages(state.L2, whole)
	b.pack.Entries = slices.Concat(top, stages, history)
	return b.pack
}

// builder is a pack on the way.
type builder struct {
	counter TokenCounter
	pack    Pack
}

func newBuilder(state router.State, budget Budget) *builder {
	b := &builder{counter: budget.Counter}
	if b.counter == nil {
		b.counter = BytesCounter{}
	}
	b.pack.Tokenizer = b.counter.Name()
	b.pack.Budget = max(budget.Tokens, 0)
	if budget.Window > 0 {
		b.pack.Budget = min(b.pack.Budget, budget.Window)
	}
	b.pack.Brief.Status = string(state.WorkflowStatus())
	b.pack.Brief.CurrentStage = state.CurrentStageID
	return b
}

// entry makes a counted entry, not yet kept.
func (b *builder) entry(layer Layer, role Role, content string) Entry {
	return Entry{Layer: layer, Role: role, Content: content, Tokens: max(b.counter.Count(content), 0) + MessageOverhead}
}

// exempt keeps e whatever it costs.
func (b *builder) exempt(e Entry, reason string) Entry {
	b.pack.Tokens += e.Tokens
	e.Kept, e.Reason = true, reason
	return e
}

// fits says whether e has a place within the budget.
func (b *builder) fits(e Entry) bool { return e.Tokens <= b.pack.Budget-b.pack.Tokens }

// history gives the entries of L1 in prompt order, and whether the budget had a place for every turn of the window.
func (b *builder) history(conversation []candidate, newest Entry) ([]Entry, bool) {
	l := layer{name: L1, fits: true}
	for _, c := range slices.Backward(conversation) {
		if c.newest {
			l.entries = append(l.entries, newest)
			continue
		}
		if (c.dropped != "" || !l.fits) && l.listFull() {
			l.unlisted++
			continue
		}
		e := b.entry(L1, c.role(), c.turn.Content)
		switch {
		case c.dropped != "":
			l.drop(e, c.dropped)
		case l.fits && b.fits(e):
			l.entries = append(l.entries, b.exempt(e, c.keptReason()))
		default:
			l.fits = false
			l.drop(e, reasonOverL1)
		}
	}
	return l.inOrder(), l.fits
}

// stages gives the entries of L2 in prompt order; none has a place (fits is false) if L1 has lost one already.
func (b *builder) stages(memory router.Memory, fits bool) []Entry {
	l := layer{name: L2, fits: fits}
	told := make(map[string]router.StageOutcome)
	for stage := range memory.Backward() {
		if !l.fits && l.listFull() {
			break
		}
		e := b.entry(L2, RoleSystem, stageText(stage))
		if l.fits = l.fits && b.fits(e); !l.fits {
			l.drop(e, reasonOverL2)
			continue
		}
		l.entries = append(l.entries, b.exempt(e, reasonFits))
		newest, ok := told[stage.StageID]
		switch {
		case !ok:
			told[stage.StageID] = stage.Outcome
			b.pack.Brief.add(stage)
		case stage.Outcome == router.OutcomeFailure && newest == router.OutcomeSuccess:
			told[stage.StageID] = stage.Outcome // once, however often it failed
			b.pack.Brief.Recovered = append(b.pack.Brief.Recovered, stage.StageID)
		}
	}
	l.unlisted = memory.Len() - len(l.entries)
	b.pack.Brief.reverse()
	return l.inOrder()
}
