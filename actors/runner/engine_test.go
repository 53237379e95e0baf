package runner_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// resuming is an order that goes on with a conversation of which big knows the first two turns.
func resuming() core.RunOrder {
	o := order()
	o.Turns = []contextpack.Turn{
		{Role: contextpack.RoleBackground, Content: "long ago"},
		{Role: messages.RoleUser, Content: "first"},
		{Role: messages.RoleRouter, Content: "answer"},
		{Role: messages.RoleUser, Content: "missed"},
		{Role: messages.RoleUser, Content: "newest"},
	}
	o.Known, o.Resume, o.Engine = 3, &messages.ResumeToken{Engine: "big", Token: "t1"}, "big"
	return o
}

func watchOrder(t *testing.T, d *runner.Deps, o core.RunOrder) *seen {
	t.Helper()
	s := &seen{t: t, attempt: 1}
	runner.Attempt(t.Context(), d, o, s.take)
	require.True(t, s.ended)
	return s
}

// sent gives the conversation of a call.
func sent(call testkit.Call) (texts []string) {
	for _, e := range call.Request.Pack.Messages()[2:] { // after the system prompt and the status
		texts = append(texts, e.Content)
	}
	return texts
}

func TestEngineGetsItsTokenAndOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	big, small, router := two(t)
	big.Call(testkit.Fail(inference.KindAuth))
	small.Call(testkit.Stream("x"), testkit.Resume("t2"))
	got := watchOrder(t, deps(router), resuming())
	require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
	require.Equal(t, "t1", big.Calls()[0].Request.Resume)
	require.Equal(t, []string{"long ago", "missed", "newest"}, sent(big.Calls()[0]), "background is no part of its conversation")
	require.Empty(t, small.Calls()[0].Request.Resume)
	require.Equal(t, []string{"long ago", "first", "answer", "missed", "newest"}, sent(small.Calls()[0]))
	require.Nil(t, got.end.Resume, "a fallback does not take the conversation over")
	require.False(t, got.end.ResumeLost)
}

func TestAnswersTokenIsReported(t *testing.T) {
	t.Parallel()
	big, _, router := two(t)
	big.Call(testkit.Stream("x"), testkit.Resume("t2"))
	got := watchOrder(t, deps(router), resuming())
	require.Equal(t, "big", got.end.Resume.GetEngine())
	require.Equal(t, "t2", got.end.Resume.GetToken())
	big.Call(testkit.Stream("x"), testkit.Resume("t3"), testkit.Fail(inference.KindBadRequest))
	got = watchOrder(t, deps(router), resuming())
	require.Nil(t, got.end.Resume, "a failed answer has none")
}

func TestLostTokenIsReportedWhateverComesOfIt(t *testing.T) {
	t.Parallel()
	lost := testkit.FailWith(&inference.Error{Kind: inference.KindBadRequest, Err: inference.ErrUnknownResume})
	big, _, router := two(t)
	big.Call(lost).Call(testkit.Stream("x"), testkit.Resume("t2"), testkit.Usage(5, 1))
	got := watchOrder(t, deps(router), resuming())
	require.True(t, got.end.ResumeLost)
	require.Equal(t, "t2", got.end.Resume.GetToken())
	require.Equal(t, []string{"provider big again, call 2: it does not know the conversation any more"}, got.waits)
	require.Empty(t, got.retried, "nothing was shown, so nothing is replaced")
	require.Len(t, sent(big.Calls()[1]), 5)
	require.Equal(t, uint64(5), got.end.Usage.GetInputTokens())
	require.Equal(t, string(messages.UsageReported), got.end.Usage.GetSource(), "a refused call used nothing")

	big.Call(lost).Call(testkit.Fail(inference.KindBadRequest))
	got = watchOrder(t, deps(router), resuming())
	require.Equal(t, messages.OutcomeFailed, got.end.Outcome)
	require.True(t, got.end.ResumeLost)
}

func TestLostTokenDuringAWaitIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := testkit.FailWith(&inference.Error{Kind: inference.KindBadRequest, Err: inference.ErrUnknownResume})
		big, _, router := two(t)
		big.Call(lost).Call(testkit.Fail(inference.KindOverloaded)).Call(testkit.Stream("x"))
		got := watchOrder(t, deps(router), resuming())
		require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
		require.Contains(t, got.waits[0], "does not know the conversation")
		require.Contains(t, got.waits[1], "overloaded, next call in")
		for _, call := range big.Calls()[1:] {
			require.Empty(t, call.Request.Resume)
		}
	})
}

func TestPromptLeavesRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		model   route.Model
		reserve int
		budget  int
		limit   int
	}{
		"a reserve for all":        {route.Model{Name: "m", Window: 1000}, 200, 800, 0},
		"the model's own limit":    {route.Model{Name: "m", Window: 1000, MaxOutput: 300}, 200, 700, 300},
		"at most half":             {route.Model{Name: "m", Window: 1000}, 5000, 500, 0},
		"none":                     {route.Model{Name: "m", Window: 1000}, 0, 1000, 0},
		"a window that is unknown": {route.Model{Name: "m"}, 200, 4096, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testkit.NewProvider(t, testkit.Script(testkit.Stream("x")))
			rules, breaker := route.Standard()
			router, err := route.New(route.Config{
				Providers: []route.Provider{{Backend: p, Models: []route.Model{row.model}}}, Rules: rules, Breaker: breaker,
			})
			require.NoError(t, err)
			d := deps(router)
			d.AnswerReserve = row.reserve
			watch(t.Context(), t, d)
			require.Equal(t, row.budget, p.Calls()[0].Request.Pack.Budget)
			require.Equal(t, row.limit, p.Calls()[0].Request.MaxTokens)
		})
	}
}

func TestModelsOwnCounterCounts(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, testkit.Script(testkit.Stream("x")))
	rules, breaker := route.Standard()
	router, err := route.New(route.Config{
		Providers: []route.Provider{{Backend: p, Models: []route.Model{{Name: "m", Counter: letters{}}}}}, Rules: rules, Breaker: breaker,
	})
	require.NoError(t, err)
	watch(t.Context(), t, deps(router))
	require.Equal(t, "letters", p.Calls()[0].Request.Pack.Tokenizer)
}

// letters is a counter whose values cannot be compared.
type letters struct{ _ []int }

func (letters) Count(text string) int { return len(text) }
func (letters) Name() string          { return "letters" }
