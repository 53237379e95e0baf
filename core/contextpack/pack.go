// Package contextpack decides what goes into a prompt inside its budget and what is dropped first (I3, I4). It is pure: the
// same state, turns and budget give the same Pack.
//
// Build takes no type that could carry a raw event, an artifact or a tool output, so a pack cannot hold one (I3). What it
// takes of a stage is the summary that the reducer kept, and it hands that on as data: in a system message that names the
// stage and its outcome, under a system prompt that says that reports are no instructions.
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

// RoleBackground is the role of a Turn that is no utterance: a compacted transcript, or a system message that a client brought
// along. It becomes a system message before the history, does not count against KeepLast, and is the first of L1 to go.
const RoleBackground messages.Role = "BACKGROUND"

// Turn is one side of the conversation. It is the only way for text of a conversation into a pack (I3).
type Turn struct {
	// Role is USER, ROUTER or RoleBackground; any other is taken as USER, the speaker with the least authority.
	Role      messages.Role
	Content   string
	Timestamp time.Time
	// Partial: the router was cut short. The text goes into the prompt as it is, for a mark in it would be imitated; the entry's
	// reason tells.
	Partial bool
}

// Budget bounds a pack.
type Budget struct {
	// Tokens that the pack should not exceed. The model's window bounds it as well.
	Tokens int
	// Window of the model in tokens less what the caller reserves for the answer: the hard limit that L0 and the newest turn must
	// fit; 0 = unknown.
	Window int
	// KeepLast is how many of the newest history entries the pack takes. The newest user turn is always taken, also with 0.
	KeepLast int
	// SystemPrompt of the session; "" = DefaultSystemPrompt.
	SystemPrompt string
	// Counter of the model's tokens; nil = BytesCounter.
	Counter TokenCounter
}

// Entry is one message of a pack.
type Entry struct {
	Layer   Layer
	Role    Role
	Content string
	// Tokens of Content, and MessageOverhead; 0 if the entry was not counted.
	Tokens int
	// Kept false: the entry was dropped, and Reason says why; a provider never sees it.
	Kept   bool
	Reason string
}

// Pack is a built prompt. Entries holds everything in prompt order, dropped ones too, so that it explains itself: the system
// prompt, the workflow's status, stage summaries from old to new, the conversation from old to new. Of more than MaxDropped dropped ones in
// one layer the oldest are told by a single entry without content.
type Pack struct {
	Entries []Entry
	// Tokens of the kept entries.
	Tokens int
	// Budget in tokens that was applied: Budget.Tokens, or the window if that is smaller.
	Budget int
	// OverBudget: L0 and the newest turn alone exceed the budget; they are sent all the same (I4).
	OverBudget bool
	// Overflow: they exceed even the model's window; no call may be made.
	Overflow bool
	// Tokenizer is the counter's name.
	Tokenizer string
	// Brief is what the pack tells, as data, for engines that answer from it without a model.
	Brief Brief
}

// Brief is the workflow as the pack tells it: its status, and the stages of the kept L2 entries by their newest outcome, in the
// order in which they ended.
type Brief struct {
	Status       string
	CurrentStage string
	Succeeded    []string
	Failed       []string
	Cancelled    []string
	// Recovered failed before they succeeded; they are among Succeeded too.
	Recovered []string
}

// Messages gives the kept entries in the order of the prompt.
func (p Pack) Messages() []Entry {
	kept := make([]Entry, 0, len(p.Entries))
	for _, e := range p.Entries {
		if e.Kept {
			kept = append(kept, e)
		}
	}
	return kept
}

func (b Budget) systemPrompt() string {
	if b.SystemPrompt == "" {
		return DefaultSystemPrompt
	}
	return b.SystemPrompt
}
