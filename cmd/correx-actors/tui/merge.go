package tui

import (
	"strings"

	"github.com/correx/correx-actors/messages/protocol"
)

const (
	roleUser = "USER"
	// mergeWindow bounds how many entries of the transcript are compared with the server's history.
	mergeWindow = 128
)

// merge brings the transcript up to the server's history, which holds the newest exchanges: what both have stays where it is,
// what only the server has is put between. Items carry no identity that a history has, so the two are aligned by role and
// text; equal texts may stand for each other, since they look the same. Active is the run whose answer is not in the history.
func (t *transcript) merge(history []protocol.HistoryEntry, active string) {
	var ours []*entry
	for _, e := range t.entries {
		if e.kind == kindUser && e.failure == "" || e.kind == kindAnswer && e.run != active && (e.text != "" || e.open) {
			ours = append(ours, e)
		}
	}
	ours = ours[max(0, len(ours)-mergeWindow):]
	pairs := align(ours, history)
	var after *entry
	for i, theirs := range history {
		if e := pairs[i]; e != nil {
			e.confirm(theirs)
			after = e
			continue
		}
		fresh := heard(theirs)
		if theirs.Role != roleUser && after != nil && after.kind == kindUser {
			fresh.run = after.run
		}
		t.insert(t.placeFor(after, pairs[i:]), fresh)
		after = fresh
	}
	for _, e := range t.entries {
		if e.kind == kindAnswer && e.open && e.run != active {
			e.finish("", "its end was missed")
		}
	}
}

// heard makes an entry of one that only the server has.
func heard(h protocol.HistoryEntry) *entry {
	if h.Role == roleUser {
		return &entry{kind: kindUser, text: h.Content, stage: stageEnded}
	}
	e := &entry{kind: kindAnswer, text: h.Content}
	if h.Partial {
		e.finish("", "not completed")
	}
	return e
}

// confirm takes over what the server's history knows of an entry.
func (e *entry) confirm(h protocol.HistoryEntry) {
	switch {
	case e.kind == kindUser && e.stage == stageUnsent:
		// It is sent again with its key, and then the server tells.
	case e.kind == kindUser:
		e.stage = max(e.stage, stageBegun)
	case e.open:
		e.finish(h.Content, outcomeCompleted)
		if h.Partial {
			e.finish("", "not completed")
		}
	}
}

// placeFor is where an entry goes that follows another: behind it and the notes under it, else before the next one that both
// sides have, else before the inputs that wait.
func (t *transcript) placeFor(after *entry, later []*entry) int {
	for i, e := range t.entries {
		if after != nil && e == after {
			for i++; i < len(t.entries) && (t.entries[i].kind == kindNote || t.entries[i].kind == kindFailure); {
				i++
			}
			return i
		}
		if after != nil {
			continue
		}
		for _, next := range later {
			if next != nil && e == next {
				return i
			}
		}
	}
	return t.openEnd()
}

// align gives for each entry of the history the entry of ours that it is, nil = none: the longest common subsequence.
func align(ours []*entry, history []protocol.HistoryEntry) []*entry {
	rows := make([][]int, len(ours)+1)
	rows[len(ours)] = make([]int, len(history)+1)
	for i := len(ours) - 1; i >= 0; i-- {
		rows[i] = make([]int, len(history)+1)
		for j := len(history) - 1; j >= 0; j-- {
			rows[i][j] = max(rows[i+1][j], rows[i][j+1])
			if ours[i].same(history[j]) {
				rows[i][j] = max(rows[i][j], 1+rows[i+1][j+1])
			}
		}
	}
	pairs := make([]*entry, len(history))
	for i, j := 0, 0; i < len(ours) && j < len(history); {
		switch {
		case rows[i][j] == rows[i+1][j]:
			i++ // of equal ones the newest: what is older may lie before the history
		case ours[i].same(history[j]) && rows[i][j] == 1+rows[i+1][j+1]:
			pairs[j] = ours[i]
			i, j = i+1, j+1
		default:
			j++
		}
	}
	return pairs
}

// same says whether an entry may be the one of the history. An open answer has a part of it; an own input may have been merged
// with others.
func (e *entry) same(h protocol.HistoryEntry) bool {
	if (e.kind == kindUser) != (h.Role == roleUser) {
		return false
	}
	if e.kind == kindUser {
		return e.text == h.Content || e.key != "" && strings.Contains(h.Content, e.text)
	}
	return e.text == h.Content || e.open && (e.torn || strings.HasPrefix(h.Content, e.text))
}
