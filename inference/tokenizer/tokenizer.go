// Package tokenizer counts the tokens of prompts: exactly for OpenAI's newer models, by an estimate for all others. The
// vocabulary is compiled in and loaded when the first text is counted, so a process that never counts pays nothing and no
// network is ever used.
//
// Counts decide what a context pack holds; they are not what a provider bills.
package tokenizer

import (
	"math"
	"strconv"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
)

// shared is the counter of every o200k model of the process: the vocabulary takes several megabytes and never changes, and the
// cache beside it knows hashes and numbers only, so sessions that share it learn nothing of each other.
var shared = newO200k(cachedCounts)

// For gives the counter for a model, by its provider's name for it. A name may have a path or a fine-tuning mark around it
// ("openai/gpt-4o", "ft:gpt-4o-mini:acme"). It costs nothing and the counter is safe for concurrent use.
func For(model string) contextpack.TokenCounter {
	if usesO200k(model) {
		return shared
	}
	return contextpack.BytesCounter{}
}

// Estimating gives the counters of a provider whose unknown vocabularies take that many bytes a token; those that are known are
// counted exactly all the same.
func Estimating(bytesPerToken float64) func(model string) contextpack.TokenCounter {
	return func(model string) contextpack.TokenCounter {
		if usesO200k(model) {
			return shared
		}
		return Factor(bytesPerToken)
	}
}

// Factor estimates tokens by a stated number of bytes a token, rounded up. One that is not above 0 is that of BytesCounter.
type Factor float64

// Count implements contextpack.TokenCounter.
func (f Factor) Count(text string) int {
	if !(f > 0) {
		return contextpack.BytesCounter{}.Count(text)
	}
	return int(math.Ceil(float64(len(text)) / float64(f)))
}

// Name implements contextpack.TokenCounter.
func (f Factor) Name() string {
	if !(f > 0) {
		return contextpack.BytesCounter{}.Name()
	}
	return "bytes/" + strconv.FormatFloat(float64(f), 'f', -1, 64)
}

// o200kFamilies are the model families of that vocabulary: a name belongs to one if it is the same or goes on with other
// than a letter or digit.
var o200kFamilies = []string{
	"gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "codex-mini", "computer-use-preview", "o1", "o3", "o4",
}

func usesO200k(model string) bool {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	for _, family := range o200kFamilies {
		if rest, ok := strings.CutPrefix(name, family); ok && (rest == "" || !isWord(rest[0])) {
			return true
		}
	}
	return false
}

func isWord(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
