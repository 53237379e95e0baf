package session

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/messages"
)

// Entry is one side of the exchange. It is a plain value: an idle session holds a dozen of them.
type Entry struct {
	Role    messages.Role
	Content string
	// At is when it was said; zero = unknown.
	At time.Time
	// Partial: the answer did not complete.
	Partial bool
	TurnID  messages.TurnID
}

// question is the user's side of a run: the texts of its turns in their order.
func question(turns []*messages.Turn) Entry {
	texts := make([]string, len(turns))
	for i, t := range turns {
		texts[i] = t.GetText()
	}
	return Entry{
		Role: messages.RoleUser, Content: strings.Join(texts, "\n"), At: timeOf(turns[0].GetAcceptedAt()), TurnID: turns[0].GetTurnId(),
	}
}

// maxEntry bounds the text of a remembered entry, in bytes: it is there for prompts, which hold far less. The run's end and the
// turn's status have all of it.
const maxEntry = 256 << 10

// remember keeps twice keepLast entries: a question and an answer for each.
func remember(history []Entry, keepLast int, entry Entry) []Entry {
	entry.Content = cutAt(entry.Content, maxEntry)
	if over := len(history) + 1 - 2*keepLast; over > 0 {
		history = history[min(over, len(history)):]
	}
	return append(slices.Clip(slices.Clone(history)), entry)
}

// conversation gives entries in the form that a context pack takes.
func conversation(history []Entry) []contextpack.Turn {
	turns := make([]contextpack.Turn, len(history))
	for i, e := range history {
		turns[i] = contextpack.Turn{Role: e.Role, Content: e.Content, Timestamp: e.At, Partial: e.Partial}
	}
	return turns
}

// record gives the entry in the form that is stored and shown.
func (e Entry) record() *messages.HistoryEntry {
	return &messages.HistoryEntry{
		Role: string(e.Role), Content: e.Content, Timestamp: stampOf(e.At), Partial: e.Partial, TurnId: e.TurnID,
	}
}

func records(history []Entry) []*messages.HistoryEntry {
	var out []*messages.HistoryEntry
	for _, e := range history {
		out = append(out, e.record())
	}
	return out
}

func entries(stored []*messages.HistoryEntry) []Entry {
	var out []Entry
	for _, h := range stored {
		out = append(out, Entry{
			Role: messages.Role(h.GetRole()), Content: h.GetContent(), At: timeOf(h.GetTimestamp()), Partial: h.GetPartial(), TurnID: h.GetTurnId(),
		})
	}
	return out
}

func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func stampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
