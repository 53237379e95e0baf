// Package intake says what a request gets before anything is decided about it: which conversation it continues, and with which
// resume token. Pure.
package intake

import (
	"errors"
	"fmt"
	"strings"

	"github.com/correx/correx-actors/messages"
)

// Conversation says what a run continues: the conversation that an engine keeps under a resume token, or that of its session.
type Conversation struct {
	// Engine and Token; both empty = the session's own conversation.
	Engine string
	Token  string
	// Session is empty when a token is given.
	Session messages.SessionID
}

const (
	keyResume  = "resume"
	keySession = "session"
)

// ErrInvalidKey is wrapped when a text is no conversation's.
var ErrInvalidKey = errors.New("invalid conversation key")

// ConversationOf gives the conversation of a token, or of the session if there is none.
func ConversationOf(token *messages.ResumeToken, session messages.SessionID) Conversation {
	if token == nil {
		return Conversation{Session: session}
	}
	return Conversation{Engine: token.GetEngine(), Token: token.GetToken()}
}

// String is the conversation's one text: resume:<engine>:<token> or session:<id>, each part escaped, so that no two
// conversations have the same text.
func (c Conversation) String() string {
	if c.Session != "" {
		return keySession + ":" + messages.EscapeKeyPart(string(c.Session))
	}
	return keyResume + ":" + messages.EscapeKeyPart(c.Engine) + ":" + messages.EscapeKeyPart(c.Token)
}

// ParseConversation reads a text back. It takes only what String writes. Errors: ErrInvalidKey.
func ParseConversation(s string) (Conversation, error) {
	kind, rest, _ := strings.Cut(s, ":")
	parts := strings.Split(rest, ":")
	for i, part := range parts {
		plain, err := messages.UnescapeKeyPart(part)
		if err != nil {
			return Conversation{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
		}
		parts[i] = plain
	}
	switch {
	case kind == keyResume && len(parts) == 2:
		return Conversation{Engine: parts[0], Token: parts[1]}, nil
	case kind == keySession && len(parts) == 1 && parts[0] != "":
		return Conversation{Session: messages.SessionID(parts[0])}, nil
	}
	return Conversation{}, fmt.Errorf("%w: %q is neither resume:<engine>:<token> nor session:<id>", ErrInvalidKey, s)
}
