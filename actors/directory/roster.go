package directory

import (
	"iter"
	"sync"

	"github.com/correx/correx-actors/messages"
)

// maxQuarantined bounds the sessions that are remembered as quarantined; of more, the list tells what their rows do.
const maxQuarantined = 10_000

// roster is what the list of sessions knows beside the journal's rows. The directory's actor writes it and any number of
// lists read it, so that a list, however long, holds up no session's message.
type roster struct {
	mu sync.RWMutex
	// active are the sessions in memory.
	active keySet
	// quarantined are those whose last activation found that their records are damaged. A session that leaves memory stays
	// here until another activation succeeds.
	quarantined map[messages.Key]struct{}
}

func (r *roster) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.quarantined = keySet{}, nil
}

func (r *roster) entered(key messages.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active.add(key)
}

// left forgets a session that is in memory no more; refused says whether this activation was refused.
func (r *roster) left(key messages.Key, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active.remove(key)
	if !refused {
		delete(r.quarantined, key)
	}
}

func (r *roster) refuses(key messages.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.quarantined) >= maxQuarantined {
		return
	}
	if r.quarantined == nil {
		r.quarantined = make(map[messages.Key]struct{})
	}
	r.quarantined[key] = struct{}{}
}

// count gives how many sessions are in memory, and how many are remembered as quarantined.
func (r *roster) count() (active, quarantined int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.active.len(), len(r.quarantined)
}

// look says where a session is.
func (r *roster) look(key messages.Key) (active, quarantined bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, quarantined = r.quarantined[key]
	return r.active.has(key), quarantined
}

// rosterChunk is how many keys are read at once; the lock is not held while they are used.
const rosterChunk = 256

// sessions goes through a tenant's sessions in memory after an id, in order.
func (r *roster) sessions(tenant messages.TenantID, after messages.SessionID) iter.Seq[messages.Key] {
	return func(yield func(messages.Key) bool) {
		last := messages.Key{Tenant: tenant, Session: after}
		keys := make([]messages.Key, 0, rosterChunk)
		for {
			keys = r.after(keys[:0], last, rosterChunk)
			for _, key := range keys {
				if key.Tenant != tenant || !yield(key) {
					return
				}
			}
			if len(keys) < rosterChunk {
				return
			}
			last = keys[len(keys)-1]
		}
	}
}

// after appends up to n sessions behind a key, of any tenant.
func (r *roster) after(dst []messages.Key, key messages.Key, n int) []messages.Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.active.after(dst, key, n)
}
