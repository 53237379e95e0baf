package memory

import (
	"container/list"

	"github.com/correx/correx-actors/persistence"
)

// index holds the entries of one index of a session, and their order: the oldest is in front.
type index struct {
	byName map[string]*list.Element
	order  list.List // of persistence.IndexPut
}

// put carries one put out; the session's row has the time of its append. The caller holds mu.
func (s *session) put(p persistence.IndexPut) {
	x := s.index[p.Index]
	if x == nil {
		x = &index{byName: make(map[string]*list.Element)}
		s.index[p.Index] = x
	}
	if at := x.byName[p.Name]; at != nil {
		x.remove(at)
	}
	if p.Value == nil {
		return
	}
	x.byName[p.Name] = x.order.PushBack(p)
	for range persistence.TrimPerPut {
		oldest := x.order.Front()
		if oldest == nil {
			return
		}
		expires := oldest.Value.(persistence.IndexPut).Expires
		expired := !expires.IsZero() && !expires.After(s.info.LastAppend)
		if !expired && (p.Keep == 0 || x.order.Len() <= p.Keep) {
			return
		}
		x.remove(oldest)
	}
}

func (x *index) remove(at *list.Element) {
	delete(x.byName, at.Value.(persistence.IndexPut).Name)
	x.order.Remove(at)
}

// lookUp gives the value of an entry, which stays the journal's. The caller holds mu.
func (s *session) lookUp(in persistence.Index, name string) ([]byte, bool) {
	x := s.index[in]
	if x == nil || x.byName[name] == nil {
		return nil, false
	}
	return x.byName[name].Value.(persistence.IndexPut).Value, true
}
