package contextpack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// MaxDropped bounds how many dropped entries of one layer a Pack lists one by one: a session may have a million ended stages.
const MaxDropped = 200

// Why an entry was kept or dropped.
const (
	reasonL0     = "kept: never dropped (L0)"
	reasonNewest = "kept: newest user turn, never dropped"
	reasonFits   = "kept: within the budget"
	reasonOverL2 = "dropped: oldest L2 entry over the budget"
	reasonOverL1 = "dropped: oldest L1 entry over the budget"
	reasonBlank  = "dropped: blank"
)

// candidate is a turn that may become an entry of L1.
type candidate struct {
	turn Turn
	// newest: this is the newest user turn.
	newest bool
	// dropped says why the turn is dropped whatever the budget; "" if it is not.
	dropped string
}

// classify gives the turns in prompt order: background before history, each from old to new. Blank ones are dropped before the
// window is counted: providers refuse an empty message, and would refuse every later request that still has it.
func classify(turns []Turn, keepLast int) []candidate {
	var background, history []candidate
	for _, t := range turns {
		c := candidate{turn: t}
		if strings.TrimSpace(t.Content) == "" {
			c.dropped = reasonBlank
		}
		if t.Role == RoleBackground {
			background = append(background, c)
		} else {
			history = append(history, c)
		}
	}
	window(history, max(keepLast, 0))
	return slices.Concat(background, history)
}

// window drops what is older than the newest keepLast entries, but never the newest user turn.
func window(history []candidate, keepLast int) {
	beyond := fmt.Sprintf("dropped: beyond the newest %d entries", keepLast)
	seen, found := 0, false
	for i := range slices.Backward(history) {
		c := &history[i]
		if c.dropped != "" {
			continue
		}
		seen++
		switch {
		case !found && c.role() == RoleUser:
			c.newest, found = true, true
		case seen > keepLast:
			c.dropped = beyond
		}
	}
}

func (c candidate) role() Role {
	switch c.turn.Role {
	case messages.RoleRouter:
		return RoleAssistant
	case RoleBackground:
		return RoleSystem
	case messages.RoleUser:
	}
	return RoleUser
}

func (c candidate) keptReason() string {
	if c.turn.Partial {
		return reasonFits + " (cut short)"
	}
	return reasonFits
}

// layer collects the entries of L1 or L2 from the newest to the oldest.
type layer struct {
	name    Layer
	entries []Entry
	// fits turns false with the first entry that has no place; no older one is kept after it.
	fits bool
	// dropped counts those in entries; unlisted counts those that are not.
	dropped, unlisted int
}

func (l *layer) listFull() bool { return l.dropped >= MaxDropped }

func (l *layer) drop(e Entry, reason string) {
	e.Reason = reason
	l.entries = append(l.entries, e)
	l.dropped++
}

// inOrder gives the entries oldest first, after one that stands for all that are not listed.
func (l *layer) inOrder() []Entry {
	if l.unlisted > 0 {
		l.entries = append(l.entries, Entry{
			Layer:  l.name,
			Role:   RoleSystem,
			Reason: fmt.Sprintf("dropped: %d older %s entries, not listed", l.unlisted, l.name),
		})
	}
	slices.Reverse(l.entries)
	return l.entries
}

// add puts a stage in the list of its outcome.
func (b *Brief) add(stage router.L2Entry) {
	switch stage.Outcome {
	case router.OutcomeSuccess:
		b.Succeeded = append(b.Succeeded, stage.StageID)
	case router.OutcomeFailure:
		b.Failed = append(b.Failed, stage.StageID)
	case router.OutcomeCancelled:
		b.Cancelled = append(b.Cancelled, stage.StageID)
	}
}

func (b *Brief) reverse() {
	slices.Reverse(b.Succeeded)
	slices.Reverse(b.Failed)
	slices.Reverse(b.Cancelled)
	slices.Reverse(b.Recovered)
}
