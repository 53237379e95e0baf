package testkit

import (
	"fmt"
	"strings"

	"github.com/correx/correx-actors/messages"
)

// death is the end of a process as its journal sees it.
type death struct {
	// at is the append at which the process dies, counted from 1; after says that this one is still stored.
	at    int
	after bool
	seen  int
	story []string // the appends up to the one at which it died
}

// DieAt makes the journal that of a process which dies at the n-th append from now on, with after once that is stored, else
// before. Nobody is told how the append went, and what comes later is not stored and has no answer. Revive ends it.
func (j *FaultyJournal) DieAt(n int, after bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.death = &death{at: n, after: after}
}

// Dead says whether the append of DieAt has come.
func (j *FaultyJournal) Dead() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.death != nil && j.death.seen >= j.death.at
}

// Revive is the start of the next process: the journal does again what it is asked to.
func (j *FaultyJournal) Revive() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.death = nil
}

// alive says what becomes of an append.
func (j *FaultyJournal) alive(op heldAppend) (store, tell bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.death
	if d == nil {
		return true, true
	}
	d.seen++
	if d.seen > d.at {
		return false, false
	}
	d.story = append(d.story, describeAppend(op))
	return d.seen < d.at || d.after, d.seen < d.at
}

// describeAppend tells of what types an append's records are.
func describeAppend(op heldAppend) string {
	var b strings.Builder
	b.WriteString(op.key.String())
	for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
		var types []string
		for i := range op.batch.Records {
			if rec := &op.batch.Records[i]; rec.Stream == stream {
				types = append(types, rec.Type)
			}
		}
		if len(types) > 0 {
			fmt.Fprintf(&b, " %s: %s", stream, strings.Join(types, ", "))
		}
	}
	return b.String()
}
