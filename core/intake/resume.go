package intake

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/correx/correx-actors/messages"
)

// Stored is the newest resume token that a session's runs reported, with the lineage that it continues.
type Stored struct {
	Token   *messages.ResumeToken
	Lineage string
	// TurnID leads the run that reported it: what was said after that run is new to the engine.
	TurnID messages.TurnID
}

// Limits of a token, in bytes.
const (
	maxEngineBytes = 256
	maxTokenBytes  = 4096
)

// CheckResume refuses an explicit token that no run could resume; nil if it is fine or absent.
func CheckResume(token *messages.ResumeToken, engines []string) *messages.Failure {
	switch {
	case token == nil:
		return nil
	case token.GetEngine() == "" || token.GetToken() == "":
		return messages.Fail(messages.CodeInvalidField, "resume needs both engine and token")
	case !utf8.ValidString(token.GetEngine()) || !utf8.ValidString(token.GetToken()):
		return messages.Fail(messages.CodeInvalidField, "resume is not valid UTF-8")
	case len(token.GetEngine()) > maxEngineBytes:
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("resume.engine has over %d bytes", maxEngineBytes))
	case len(token.GetToken()) > maxTokenBytes:
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("resume.token has over %d bytes", maxTokenBytes))
	case !slices.Contains(engines, token.GetEngine()):
		return messages.Fail(messages.CodeUnsupportedResume, fmt.Sprintf("no engine %q keeps conversations that could be resumed", token.GetEngine()))
	}
	return nil
}

// Resume says which token a run resumes and of which lineage that is: the explicit one, else the session's stored one, unless
// its engine is not known any more. Both are empty for a run that resumes nothing.
func Resume(explicit *messages.ResumeToken, stored Stored, engines []string) (token *messages.ResumeToken, lineage string) {
	known := stored.Token != nil && slices.Contains(engines, stored.Token.GetEngine())
	switch {
	case explicit != nil && (stored.Token == nil || !Same(explicit, stored.Token)):
		return explicit, ConversationOf(explicit, "").String()
	case known:
		return stored.Token, stored.Lineage
	}
	return nil, ""
}

// Continue is what a session stores when a run that resumed a lineage ("" = none) reports a token: an engine that gives a new
// token for each answer goes on with the lineage, and a run that resumed nothing begins one.
func Continue(lineage string, token *messages.ResumeToken) Stored {
	if lineage == "" {
		lineage = ConversationOf(token, "").String()
	}
	return Stored{Token: token, Lineage: lineage}
}

// Same says whether two tokens are one.
func Same(a, b *messages.ResumeToken) bool {
	return a.GetEngine() == b.GetEngine() && a.GetToken() == b.GetToken()
}
