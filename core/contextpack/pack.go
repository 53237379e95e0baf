// Package contextpack decides what goes into a prompt inside its budget and what is dropped first (I3, I4). Pure.
package contextpack

import (
	"time"

	"github.com/correx/correx-actors/messages"
)

// Layer is an entry's priority: L0 is never dropped, L2 is dropped first.
type Layer string

// Layers.
const (
	L0 Layer = "L0"
	L1 Layer = "L1"
	L2 Layer = "L2"
)

// Role is the speaker of an entry in the request to a provider.
type Role string

// Roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Turn is one side of the conversation. It is the only way for text of a conversation into a pack (I3).
type Turn struct {
	Role      messages.Role
	Content   string
	Timestamp time.Time
	Partial   bool
}

// TokenCounter counts the tokens of a text for one model.
type TokenCounter interface {
	Count(text string) int
	// Name says which vocabulary or estimate it is, for explanations.
	Name() string
}

// Budget bounds a pack.
type Budget struct {
	// Tokens that the pack should not exceed.
	Tokens int
	// Window of the model in tokens, the hard limit that L0 and the newest turn must fit; 0 = unknown.
	Window int
	// KeepLast is how many of the newest history entries the pack takes; the newest user turn is always among them.
	KeepLast int
	// SystemPrompt of the session; "" = DefaultSystemPrompt.
	SystemPrompt string
	Counter      TokenCounter
}

// Entry is one message of a pack.
type Entry struct {
	Layer   Layer
	Role    Role
	Content string
	Tokens  int
	// Kept false: the entry was dropped, and Reason says why; a provider never sees it.
	Kept   bool
	Reason string
}

// Pack is a built prompt. Entries holds everything in prompt order, dropped ones too, so that it explains itself.
type Pack struct {
	Entries []Entry
	// Tokens of the kept entries.
	Tokens int
	Budget int
	// OverBudget: L0 and the newest turn alone exceed the budget; they are sent all the same (I4).
	OverBudget bool
	// Overflow: they exceed even the model's window; no call may be made.
	Overflow  bool
	Tokenizer string
	// Brief is what the pack tells, as data, for engines that answer from it without a model.
	Brief Brief
}

// Brief is the workflow as the pack tells it.
type Brief struct {
	Status       string
	CurrentStage string
	Succeeded    []string
	Failed       []string
	Cancelled    []string
}

// Messages yields the kept entries in the order of the prompt.
func (p Pack) Messages() []Entry {
	kept := make([]Entry, 0, len(p.Entries))
	for _, e := range p.Entries {
		if e.Kept {
			kept = append(kept, e)
		}
	}
	return kept
}
