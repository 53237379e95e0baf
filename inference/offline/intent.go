package offline

import (
	"slices"
	"strings"
	"unicode"
)

// intent is what the newest user turn wants, as far as fixed rules can tell.
type intent string

const (
	intentStatus    intent = "status"
	intentFailed    intent = "failed"
	intentDone      intent = "done"
	intentCancelled intent = "cancelled"
	intentStage     intent = "stage"
	intentSaid      intent = "said"
	intentHello     intent = "hello"
	intentThanks    intent = "thanks"
	intentHelp      intent = "help"
	intentSteer     intent = "steer"
	intentNone      intent = "none"
)

// Words that tell an intent. A phrase matches whole words only.
var (
	askWords = []string{
		"what", "which", "how", "is", "are", "was", "were", "did", "do", "does", "has", "have", "where", "who", "why", "when",
		"can", "could", "show", "tell", "list", "give", "any", "status", "whats",
	}
	steerWords = []string{
		"focus", "use", "avoid", "stop", "skip", "prefer", "make", "keep", "change", "switch", "ignore", "prioritize",
		"prioritise", "try", "retry", "start", "continue", "add", "remove", "always", "never", "lets", "wait", "pause",
		"resume", "run", "dont", "instead", "rerun", "write", "fix", "deploy", "build", "test", "review", "note", "limit",
	}
	steerPhrases = []string{"do not", "from now on", "make sure", "be careful", "go on", "go ahead", "let us", "i want you to", "you should"}
	topics       = []struct {
		intent  intent
		phrases []string
	}{
		{intentHelp, []string{"help", "what can you do", "who are you", "what are you", "how do you work"}},
		{intentSaid, []string{
			"did i say", "have i said", "i said", "did i ask", "have i asked", "did i tell", "have i told", "did i write",
			"my last message", "my messages", "our conversation", "do you remember", "the conversation", "i told you",
		}},
		{intentFailed, []string{"fail", "fails", "failed", "failing", "failure", "failures", "error", "errors", "wrong", "broke", "broken"}},
		{intentCancelled, []string{"cancelled", "canceled", "aborted", "skipped"}},
		{intentDone, []string{
			"done", "succeeded", "success", "successful", "successes", "finished", "completed", "accomplished", "passed", "worked", "ready",
		}},
		{intentStage, []string{"stage", "step", "where are we", "current", "currently", "working on", "doing now"}},
		{intentStatus, []string{"status", "progress", "state", "update", "summary", "summarize", "overview", "how is it going", "hows it going", "workflow"}},
		{intentThanks, []string{"thanks", "thank you", "thx", "cheers"}},
		{intentHello, []string{"hi", "hello", "hey", "good morning", "good afternoon", "good evening", "greetings"}},
	}
)

// intentOf matches rules in the order of their certainty: an instruction is told by how it begins, whatever it speaks of
// ("stop retrying the failed stage" is no question), a question by its topic.
func intentOf(text string) intent {
	words := wordsOf(text)
	if len(words) == 0 {
		return intentNone
	}
	plain := words
	for len(plain) > 1 && slices.Contains([]string{"please", "ok", "okay", "now", "and", "then", "so"}, plain[0]) {
		plain = plain[1:]
	}
	asks := strings.HasSuffix(strings.TrimSpace(text), "?") || slices.Contains(askWords, plain[0]) && !startsWith(plain, steerPhrases)
	if !asks && (slices.Contains(steerWords, plain[0]) || startsWith(plain, steerPhrases)) {
		return intentSteer
	}
	for _, topic := range topics {
		for _, phrase := range topic.phrases {
			if contains(words, strings.Fields(phrase)) {
				return topic.intent
			}
		}
	}
	return intentNone
}

// wordsOf gives the words of text in lower case, without apostrophes: "What's" is "whats".
func wordsOf(text string) []string {
	text = strings.NewReplacer("'", "", "’", "").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func startsWith(words, phrases []string) bool {
	for _, phrase := range phrases {
		want := strings.Fields(phrase)
		if len(words) >= len(want) && slices.Equal(words[:len(want)], want) {
			return true
		}
	}
	return false
}

func contains(words, phrase []string) bool {
	for i := 0; i+len(phrase) <= len(words); i++ {
		if slices.Equal(words[i:i+len(phrase)], phrase) {
			return true
		}
	}
	return false
}
