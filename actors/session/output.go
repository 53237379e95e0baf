package session

import (
	"google.golang.org/protobuf/proto"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// output keeps a session's newest items for subscribers that come back, within its bounds. It costs an idle session nothing
// before the first item.
type output struct {
	config OutputConfig
	items  []*messages.DeliveryIntent
	bytes  int
}

func newOutput(config OutputConfig) *output { return &output{config: config} }

func (o *output) add(item *messages.DeliveryIntent) {
	o.items = append(o.items, item)
	o.bytes += itemSize(item)
	drop := 0
	for len(o.items)-drop > o.config.Keep || o.bytes > o.config.KeepBytes && len(o.items)-drop > 1 {
		o.bytes -= itemSize(o.items[drop])
		o.items[drop] = nil
		drop++
	}
	o.items = o.items[drop:]
}

// kept is the number of kept items.
func (o *output) kept() int {
	if o == nil {
		return 0
	}
	return len(o.items)
}

// clear lets go of all items: a reader that asks for them is told of the gap.
func (o *output) clear() { o.items, o.bytes = nil, 0 }

// itemSize is what an item holds in memory, about.
func itemSize(item *messages.DeliveryIntent) int { return proto.Size(item) + 128 }

// after gives the kept items with a number greater than seq, and whether nothing between is missing; next is the number of
// the next item.
func (o *output) after(seq, next uint64) (items []*messages.DeliveryIntent, whole bool) {
	if seq >= next {
		return nil, false // the reader comes from another journal: its number means nothing here
	}
	if len(o.items) == 0 {
		return nil, seq+1 == next
	}
	first := o.items[0].GetSeq()
	if seq+1 < first {
		return nil, false
	}
	skip := min(seq+1-first, uint64(len(o.items)))
	return o.items[skip:], true
}

// publish numbers are decided; here the item goes out and is kept.
func (s *Session) publish(e core.Publish) {
	item := messages.NewIntent(s.key, e.Seq, e.Intent)
	s.output.add(item)
	for _, sub := range s.subscribers {
		s.deps.Kernel.TellAs(sub.pid, item, s.self)
	}
}

func (s *Session) announce(head uint64) {
	for _, sub := range s.subscribers {
		if sub.events {
			s.deps.Kernel.TellAs(sub.pid, &messages.EventsAdvanced{SessionId: string(s.key.Session), Sequence: head}, s.self)
		}
	}
}
