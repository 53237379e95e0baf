package contextpack

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

func manyStages(n int) router.State {
	s := router.State{}
	for i := range n {
		s = reduce(s, &messages.StageCompleted{StageId: fmt.Sprintf("stage-%d", i+1), Summary: "all went well"})
	}
	return s
}

func TestUnsetBudgetFieldsMeanTheirDefaults(t *testing.T) {
	t.Parallel()
	p := Build(router.State{}, nil, Budget{Tokens: 4096})
	require.Equal(t, "bytes/4", p.Tokenizer)
	require.Equal(t, DefaultSystemPrompt, p.Entries[0].Content)
	require.Equal(t, "Workflow status: IDLE. No stage is current.", p.Entries[1].Content)
	require.Len(t, p.Entries, 2)
	require.False(t, p.OverBudget)
	require.Less(t, p.Tokens, 4096/8, "the default prompt leaves the budget to the conversation")
}

func TestBytesCounterRoundsUp(t *testing.T) {
	t.Parallel()
	for text, tokens := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2, "語": 1, "語語": 2} {
		require.Equal(t, tokens, BytesCounter{}.Count(text), text)
	}
}

func TestDroppedEntriesOfALongMemoryAreSummarized(t *testing.T) {
	t.Parallel()
	const stages = 1000
	p := Build(manyStages(stages), []Turn{{Role: messages.RoleUser, Content: "q"}}, Budget{Tokens: 60, SystemPrompt: "be helpful", Counter: words{}})
	var kept, listed int
	for _, e := range p.Entries[3:] {
		switch {
		case e.Layer != L2:
		case e.Kept:
			kept++
		default:
			listed++
			require.Equal(t, reasonOverL2, e.Reason)
		}
	}
	require.Positive(t, kept)
	require.Equal(t, MaxDropped, listed)
	rest := p.Entries[2]
	require.Equal(t, Entry{Layer: L2, Role: RoleSystem, Reason: rest.Reason}, rest)
	require.Equal(t, fmt.Sprintf("dropped: %d older L2 entries, not listed", stages-kept-listed), rest.Reason)
}

func TestDroppedTurnsOfALongHistoryAreSummarized(t *testing.T) {
	t.Parallel()
	turns := make([]Turn, 500)
	for i := range turns {
		turns[i] = Turn{Role: messages.RoleUser, Content: "q"}
	}
	p := Build(router.State{}, turns, Budget{Tokens: 1000, KeepLast: 6, Counter: words{}, SystemPrompt: "be helpful"})
	require.Equal(t, "dropped: 294 older L1 entries, not listed", p.Entries[2].Reason)
	require.Len(t, p.Entries, 2+1+MaxDropped+6)
	require.Len(t, p.Messages(), 2+6)

	p = Build(router.State{}, turns, Budget{Tokens: 20, KeepLast: 500, Counter: words{}, SystemPrompt: "be helpful"})
	require.Equal(t, "dropped: 299 older L1 entries, not listed", p.Entries[2].Reason)
}

// Only what is kept or listed is counted: the time of a build does not grow with the age of the session.
func TestBuildCountsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	counter := &counting{}
	Build(manyStages(5000), []Turn{{Role: messages.RoleUser, Content: "q"}}, Budget{Tokens: 60, Counter: counter})
	require.LessOrEqual(t, counter.calls, 3+MaxDropped+10)
}

type counting struct {
	words
	calls int
}

func (c *counting) Count(text string) int {
	c.calls++
	return c.words.Count(text)
}

type negative struct{ words }

func (negative) Count(string) int { return -5 }

func TestNegativeCountIsZero(t *testing.T) {
	t.Parallel()
	p := Build(router.State{}, nil, Budget{Tokens: -1, Counter: negative{}})
	require.Equal(t, 2*MessageOverhead, p.Tokens)
	require.Zero(t, p.Budget)
	require.True(t, p.OverBudget)
}

// L0 is never dropped, so no event may be able to fill it.
func TestLongStageIDIsCutInTheStatus(t *testing.T) {
	t.Parallel()
	s := reduce(router.State{}, &messages.StageStarted{StageId: strings.Repeat("語", 5000)})
	status := Build(s, nil, Budget{Tokens: 4096}).Entries[1].Content
	require.Contains(t, status, strings.Repeat("語", maxLabel)+"….")
	require.Less(t, utf8.RuneCountInString(status), maxLabel+60)
	require.True(t, utf8.ValidString(label("a\xffb")))
}

// I3: no type that Build takes can carry an event, an artifact or a tool output. The walk visits every type that can be reached from its
// parameters; there is nowhere in them to put such a thing: no interface but the counter, no bytes, no map, no any.
func TestNoParameterOfBuildCanCarryAnEvent(t *testing.T) {
	t.Parallel()
	event := reflect.TypeFor[messages.Event]()
	build := reflect.TypeOf(Build)
	visited := map[reflect.Type]bool{
		// A time's zone is data of the standard library.
		reflect.TypeFor[time.Time](): true,
	}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		if visited[typ] {
			return
		}
		visited[typ] = true
		require.False(t, typ.Implements(event) || reflect.PointerTo(typ).Implements(event), "%s is an event", path)
		kind := typ.Kind()
		switch kind { //nolint:exhaustive // the rest is refused
		case reflect.Struct:
			for field := range typ.Fields() {
				walk(field.Type, path+"."+field.Name)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			require.NotEqual(t, reflect.Uint8, typ.Elem().Kind(), "%s holds bytes", path)
			walk(typ.Elem(), path)
		case reflect.Interface:
			require.Equal(t, reflect.TypeFor[TokenCounter](), typ, "%s holds anything", path)
			for method := range typ.Methods() {
				for in := range method.Type.Ins() {
					require.Equal(t, reflect.String, in.Kind(), "%s.%s takes more than a text", path, method.Name)
				}
			}
		default:
			plain := []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Uint64}
			require.Contains(t, plain, kind, "%s can hold anything", path)
		}
	}
	for in := range build.Ins() {
		walk(in, in.String())
	}
	require.True(t, visited[reflect.TypeFor[router.L2Entry]()], "the walk came to the memory")
	require.True(t, visited[reflect.TypeFor[Turn]()])
	require.False(t, build.IsVariadic())
}

func BenchmarkBuildOfAMillionStages(b *testing.B) {
	s := manyStages(1_000_000)
	turns := []Turn{{Role: messages.RoleUser, Content: "what happened?"}}
	b.ReportAllocs()
	for b.Loop() {
		Build(s, turns, Budget{Tokens: 4096, KeepLast: 6})
	}
}
