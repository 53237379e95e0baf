package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/correx/correx-actors/core/contextpack"
)

const (
	// maxExact bounds the work for one text, in bytes; of a longer one samples of this size in total are counted.
	maxExact = 1 << 20
	// maxSlice bounds what the codec gets at once, in bytes.
	maxSlice = 8 << 10
	// maxSpace bounds a run of white space in a slice, in bytes: the codec's time is quadratic in one that has line breaks in
	// it (16 kB of "\n " take half a second).
	maxSpace = 128
)

// o200k counts tokens of the o200k_base vocabulary.
type o200k struct {
	load  func() *codec.Codec
	cache *cache
}

func newO200k(cached int) *o200k {
	return &o200k{load: sync.OnceValue(loadO200k), cache: newCache(cached)}
}

func loadO200k() *codec.Codec {
	c := codec.NewO200kBase()
	// What a provider gets is JSON, in which a byte that is no UTF-8 has become a replacement character.
	c.SetErrorMode(codec.ErrorModeReplace)
	return c
}

// Name implements contextpack.TokenCounter.
func (*o200k) Name() string { return "o200k_base" }

// Count implements contextpack.TokenCounter. The result is exact for a text up to 8 KiB without white space that runs over 128
// bytes; of longer texts it may be over by about a token for each 8 KiB, and over 1 MiB it is extrapolated from samples.
func (o *o200k) Count(text string) int {
	if text == "" {
		return 0
	}
	key := o.cache.key(text)
	if n, ok := o.cache.find(key); ok {
		return n
	}
	n := o.count(text)
	o.cache.add(key, n)
	return n
}

func (o *o200k) count(text string) int {
	if len(text) <= maxExact {
		return o.exact(text)
	}
	// Spread evenly, so that what stands at the begin does not speak for the rest. A rune that is cut at a sample's edge counts as
	// a replacement character or two.
	const samples = maxExact / maxSlice
	tokens := 0
	for i := range samples {
		start := i * (len(text) / samples)
		tokens += o.exact(text[start : start+maxSlice])
	}
	return int(float64(tokens) * float64(len(text)) / maxExact)
}

func (o *o200k) exact(text string) int {
	tokens := 0
	for len(text) > 0 {
		n := sliceLen(text)
		tokens += o.slice(text[:n])
		text = text[n:]
	}
	return tokens
}

func (o *o200k) slice(text string) int {
	n, err := o.load().Count(text)
	if err != nil {
		return contextpack.BytesCounter{}.Count(text)
	}
	return n
}

// sliceLen gives the length of the piece of text to count next. It prefers to cut where the vocabulary's splitting rule cuts
// as well, before a space between two words, so that the pieces' counts add up to that of the whole.
func sliceLen(text string) int {
	if len(text) <= maxSpace {
		return len(text)
	}
	// word is the end of the last character that is no space: between it and i there is white space only.
	word, cut := 0, 0
	for i := 0; i < len(text); {
		switch {
		case i >= maxSlice && cut > 0:
			return cut
		case i >= maxSlice, i-word >= maxSpace:
			return i
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsSpace(r) {
			if i > maxSlice/2 && i == word+1 && text[word] == ' ' && unicode.IsLetter(r) {
				cut = word
			}
			word = i + size
		}
		i += size
	}
	return len(text)
}
