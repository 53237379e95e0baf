package contextpack

// MessageOverhead is what a message costs beside its content: the chat format's marks around it and its role, in tokens.
const MessageOverhead = 3

// TokenCounter counts the tokens of a text for one model. It gives the same number for the same text each time, never a negative one.
type TokenCounter interface {
	Count(text string) int
	// Name says which vocabulary or estimate it is, for explanations.
	Name() string
}

// BytesCounter estimates four bytes to a token, rounded up: near the truth for English prose, and above it for the scripts
// that take several bytes a character.
type BytesCounter struct{}

// Count implements TokenCounter.
func (BytesCounter) Count(text string) int { return (len(text) + 3) / 4 }

// Name implements TokenCounter.
func (BytesCounter) Name() string { return "bytes/4" }
