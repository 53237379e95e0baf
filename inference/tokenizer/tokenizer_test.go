package tokenizer

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
)

func TestForChoosesTheVocabularyByModelName(t *testing.T) {
	t.Parallel()
	exact := []string{
		"gpt-4o", "gpt-4o-mini-2024-07-18", "GPT-4.1-nano", "gpt-5", "gpt-5.1", "o1", "o3-mini", "o4-mini", "chatgpt-4o-latest",
		"openai/gpt-4o", "ft:gpt-4o-mini:acme::id", "gpt-oss:20b", " gpt-4o ",
	}
	for _, model := range exact {
		require.Equal(t, "o200k_base", For(model).Name(), model)
	}
	estimated := []string{"", "llama-3.1-8b", "gpt-4", "gpt-3.5-turbo", "o1x", "o10", "gpt-50", "claude-sonnet", "o", "/", "ft:", "offline"}
	for _, model := range estimated {
		require.Equal(t, "bytes/4", For(model).Name(), model)
	}
}

func TestForSharesOneVocabulary(t *testing.T) {
	t.Parallel()
	require.Same(t, For("gpt-4o").(*o200k), For("o3").(*o200k))
}

// The longer four are the examples of OpenAI's own cookbook for this vocabulary.
func TestCountIsThatOfTheVocabulary(t *testing.T) {
	t.Parallel()
	counter := For("gpt-4o")
	for text, tokens := range map[string]int{
		"":                             0,
		"hello world":                  2,
		"Hello, world!":                4,
		"tiktoken is great!":           6,
		"antidisestablishmentarianism": 6,
		"2 + 2 = 4":                    7,
		"お誕生日おめでとう":                    8,
		"\n\n\n":                       1,
	} {
		require.Equal(t, tokens, counter.Count(text), "%q", text)
	}
}

// Slicing is for bounded time and must not change what an honest text counts.
func TestSlicedCountIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	o := newO200k(1)
	for name, text := range map[string]string{
		"prose": strings.Repeat("The deploy stage failed, because 3 of 12 hosts didn't answer. It was tried again!\n", 400),
		"code":  strings.Repeat("func (o *o200k) Count(text string) int {\n\treturn 42 // why not?\n}\n\n", 400),
		"words": strings.Repeat("Stufe für Stufe läuft der Ablauf weiter ", 900),
	} {
		whole, err := o.load().Count(text)
		require.NoError(t, err)
		require.Equal(t, whole, o.count(text), name)
	}
	chinese := strings.Repeat("部署阶段失败了因为三台主机没有响应", 600)
	whole, err := o.load().Count(chinese)
	require.NoError(t, err)
	require.InDelta(t, whole, o.count(chinese), float64(len(chinese)/maxSlice+1), "no spaces to cut at")
}

func TestLongTextIsExtrapolatedFromAllOfIt(t *testing.T) {
	t.Parallel()
	o := newO200k(1)
	half := strings.Repeat("one two three four ", maxExact/19)
	text := half + strings.Repeat("!?#", maxExact/3)
	require.Greater(t, len(text), maxExact)
	require.InEpsilon(t, o.exact(text), o.count(text), 0.02)
}

func TestSliceLenMakesProgressWithinItsBounds(t *testing.T) {
	t.Parallel()
	for name, text := range hostile(20_000) {
		for rest := text; rest != ""; {
			n := sliceLen(rest)
			require.Positive(t, n, name)
			require.LessOrEqual(t, n, maxSlice+utf8.UTFMax, name)
			if strings.TrimSpace(rest[:n]) == "" {
				require.LessOrEqual(t, n, maxSpace+utf8.UTFMax, "white space costs quadratic time: %s", name)
			}
			rest = rest[n:]
		}
	}
}

// The codec alone needs half a minute for this text, and four times that for twice of it.
func TestHostileTextIsCountedInBoundedTime(t *testing.T) {
	t.Parallel()
	o := newO200k(1)
	start := time.Now()
	require.Positive(t, o.Count(strings.Repeat("\n ", 64<<10)))
	require.Less(t, time.Since(start), 10*time.Second)
}

func TestHostileBytesAreCounted(t *testing.T) {
	t.Parallel()
	o := newO200k(1)
	for name, text := range hostile(10_000) {
		require.Positive(t, o.Count(text), name)
	}
}

func TestCounterIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	o := newO200k(8)
	want := newO200k(8)
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = strings.Repeat("stage ", i+1)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, text := range texts {
				o.Count(text)
			}
		})
	}
	group.Wait()
	for _, text := range texts {
		require.Equal(t, want.Count(text), o.Count(text))
	}
}

func TestCacheForgetsTheLongestUnused(t *testing.T) {
	t.Parallel()
	c := newCache(2)
	a, b, d := c.key("a"), c.key("b"), c.key("d")
	c.add(a, 1)
	c.add(b, 2)
	n, ok := c.find(a)
	require.True(t, ok)
	require.Equal(t, 1, n)
	c.add(d, 3)
	_, ok = c.find(b)
	require.False(t, ok, "b was used before a")
	_, ok = c.find(a)
	require.True(t, ok)
	c.add(d, 3)
	require.Len(t, c.entries, 2)
	require.Equal(t, 2, c.used.Len())
}

func TestCountAsksTheVocabularyOncePerText(t *testing.T) {
	t.Parallel()
	o := newO200k(4)
	o.cache.add(o.cache.key("known"), 99)
	require.Equal(t, 99, o.Count("known"))
	require.Equal(t, 1, o.Count("new"))
	_, ok := o.cache.find(o.cache.key("new"))
	require.True(t, ok)
}

func FuzzCount(f *testing.F) {
	for _, text := range hostile(300) {
		f.Add(text)
	}
	o := newO200k(16)
	f.Fuzz(func(t *testing.T, text string) {
		n := o.Count(text)
		require.GreaterOrEqual(t, n, 0)
		require.LessOrEqual(t, n, 3*len(text), "a byte is at most a replacement character, of three bytes")
	})
}

// Only the first load of a process builds the vocabulary: run it alone, with -benchtime=1x.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		newO200k(1).load()
	}
}

func BenchmarkCount900kB(b *testing.B) {
	text := strings.Repeat("The deploy stage failed, because 3 of 12 hosts didn't answer. ", 900_000/62)
	o := newO200k(1)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		o.count(text)
	}
}

func BenchmarkCountCached(b *testing.B) {
	o := newO200k(16)
	text := strings.Repeat("The deploy stage failed. ", 80)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		o.Count(text)
	}
}

var _ contextpack.TokenCounter = (*o200k)(nil)

func hostile(n int) map[string]string {
	random := make([]byte, n)
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's bytes, the same each time
	for i := range random {
		random[i] = byte(source.Uint32())
	}
	texts := map[string]string{"random bytes": string(random)}
	for name, unit := range map[string]string{
		"one letter": "a", "spaces": " ", "line breaks": "\n", "space and break": " \n", "wide space and break": "\u2003\n",
		"invalid": "\xff", "continuation": "\x80", "cut rune": "\xe2\x82", "zero": "\x00", "marks": "!", "combining": "\u0301",
		"emoji": "👩‍👩‍👧", "mixed case": "aB", "digits": "7", "han": "漢", "apostrophes": "a'", "special": "<|endoftext|>",
	} {
		texts[name] = strings.Repeat(unit, n/len(unit))
	}
	return texts
}

func TestFactorIsStatedWhereTheVocabularyIsUnknown(t *testing.T) {
	t.Parallel()
	count := Estimating(2.5)
	require.Equal(t, "bytes/2.5", count("mine").Name())
	require.Equal(t, 4, count("mine").Count("0123456789"))
	require.Equal(t, 5, count("mine").Count("0123456789a"), "rounded up")
	require.Zero(t, count("mine").Count(""))
	require.Equal(t, "o200k_base", count("gpt-4o").Name(), "what is known is counted exactly")
	for _, none := range []Factor{0, -1, Factor(math.NaN())} {
		require.Equal(t, "bytes/4", none.Name())
		require.Equal(t, 3, none.Count("0123456789"))
	}
}
