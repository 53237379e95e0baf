package actors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// keeper is a process whose default provider, named big, keeps conversations behind the responses API, with a fallback that
// gets the conversation along with each call.
type keeper struct {
	*crowd
	server *llmserver.Server
	chat   *testkit.ScriptedProvider
	router *route.Router
	close  func()
	// perBig limits the calls of big at once; 0 = no limit.
	perBig int
}

// withKeeper runs scenario with a server that follows a script.
func withKeeper(t *testing.T, script []llmserver.Answer, scenario func(t *testing.T, k *keeper)) {
	t.Helper()
	k := &keeper{server: llmserver.New(script...)}
	withSlots(t, 9, func(d *session.Deps) {
		if k.router == nil {
			k.open(t)
		}
		d.Runner.Router, d.Idle = k.router, time.Minute
		if k.perBig > 0 {
			d.Slots = slots.New(d.Kernel, slots.Config{Max: 9, PerProvider: map[string]int{"big": k.perBig}})
		}
		d.Core.ResumeEngines, d.Core.ServesModel = []string{"big"}, k.router.Serves
	}, func(t *testing.T, c *crowd) {
		defer k.close()
		k.crowd = c
		scenario(t, k)
	})
}

func (k *keeper) open(t *testing.T) {
	client, stop := k.server.Pipe()
	big, err := openai.New(openai.Config{
		Name: "big", BaseURL: llmserver.PipeURL, HTTPClient: client, Model: llmserver.Model, API: openai.APIResponses,
	})
	require.NoError(t, err)
	k.chat = testkit.NewProvider(t).Named("chat")
	rules, breaker := route.Standard()
	k.router, err = route.New(route.Config{
		Providers: []route.Provider{
			{Backend: big, Models: []route.Model{{Name: "gpt-4o", Aliases: []string{"smart"}}}, Fallback: []string{"chat"}},
			{Backend: k.chat, Models: []route.Model{{Name: "llama"}}},
		},
		Rules: rules, Breaker: breaker,
	})
	require.NoError(t, err)
	k.close = func() {
		big.Close()
		stop()
	}
}

// say makes a turn and gives its answer.
func (k *keeper) say(to messages.Key, text string, change ...func(*messages.SubmitTurn)) string {
	k.t.Helper()
	return k.end(to, k.submit(to, text, change...).GetTurnId()).GetContent()
}

// told is what the server was sent: the token, and the messages.
type told struct {
	previous string
	messages []string
}

func (k *keeper) told() (all []told) {
	k.t.Helper()
	for _, r := range k.server.Requests() {
		one := told{previous: r.Asked.PreviousResponseID}
		require.Contains(k.t, r.Asked.Instructions, "Workflow status", "the workflow is told each time")
		for _, m := range r.Asked.Input {
			one.messages = append(one.messages, m.Role+": "+m.Content)
		}
		all = append(all, one)
	}
	return all
}

// chatWas gives the conversation that the fallback was sent with its newest call.
func (k *keeper) chatWas() (texts []string) {
	calls := k.chat.Calls()
	for _, e := range calls[len(calls)-1].Request.Pack.Messages() {
		if e.Role != "system" {
			texts = append(texts, string(e.Role)+": "+e.Content)
		}
	}
	return texts
}

func (k *keeper) engineOf(of messages.Key) string {
	k.t.Helper()
	view, err := k.client.State(k.t.Context(), of)
	require.NoError(k.t, err)
	return view.GetResumeEngine()
}

func on(token string) func(*messages.SubmitTurn) {
	return func(t *messages.SubmitTurn) { t.Resume = &messages.ResumeToken{Engine: "big", Token: token} }
}

func says(texts ...string) (script []llmserver.Answer) {
	for _, text := range texts {
		script = append(script, llmserver.Answer{Deltas: []string{text}, FirstDelay: time.Second})
	}
	return script
}

// W2 with the real engine: each queued turn goes on with the answer before it, also after a restart.
func TestW2ResponsesEngineIsToldOnlyWhatIsNew(t *testing.T) {
	withKeeper(t, says("1", "2", "3", "4"), func(t *testing.T, k *keeper) {
		k.submit(key, "a")
		k.submit(key, "b")
		k.end(key, k.submit(key, "c").GetTurnId())
		k.again() // the token outlives the process
		require.Equal(t, "big", k.engineOf(key))
		require.Equal(t, "4", k.say(key, "d"))
		require.Equal(t, []told{
			{"", []string{"user: a"}}, {"resp_1", []string{"user: b"}}, {"resp_2", []string{"user: c"}}, {"resp_3", []string{"user: d"}},
		}, k.told())
		require.Len(t, k.server.Conversation("resp_4"), 8)
	})
}

// W48 with the real engine: sessions that name one token are served in turn.
func TestW48ResponsesEngineServesOneConversationAtATime(t *testing.T) {
	withKeeper(t, says("1", "2", "3", "4"), func(t *testing.T, k *keeper) {
		k.say(named(0), "own", on("resp_9")) // unknown: it is begun anew
		k.say(named(0), "a")
		first, second := k.submit(named(1), "b", on("resp_3")), k.submit(named(2), "c", on("resp_3"))
		require.Equal(t, "started", first.GetDisposition())
		require.Equal(t, "queued", second.GetDisposition())
		require.Equal(t, 1, k.stats().WaitingForLease)
		k.end(named(2), second.GetTurnId())
		requests := k.server.Requests()
		for i, r := range requests[1:] {
			before, over := requests[i].Outcome()
			require.True(t, over)
			require.False(t, r.Arrived.Before(before.At), "request %d came before the one before it was over", i+2)
		}
		require.Equal(t, []told{{"resp_3", []string{"user: b"}}, {"resp_3", []string{"user: c"}}}, k.told()[3:],
			"who names a token goes on with its conversation alone")
	})
}

func TestFallbackIsSentTheWholeConversation(t *testing.T) {
	script := says("1", "-", "3")
	script[1] = llmserver.Answer{Quirk: "auth"}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		k.chat.Call(testkit.Stream("2"))
		k.say(key, "a")
		require.Equal(t, "2", k.say(key, "b"))
		require.Equal(t, []string{"user: a", "assistant: 1", "user: b"}, k.chatWas())
		require.Empty(t, k.chat.Calls()[0].Request.Resume, "it does not know the token")
		require.Equal(t, "3", k.say(key, "c"))
		require.Equal(t, told{"resp_1", []string{"user: b", "assistant: 2", "user: c"}}, k.told()[2],
			"the engine is told what it has missed")
	})
}

func TestUnknownTokenIsTriedOnceAndForgotten(t *testing.T) {
	withKeeper(t, says("1", "-", "3", "4"), func(t *testing.T, k *keeper) {
		k.say(key, "a")
		k.server.Forget()
		sub := k.subscribe(0)
		defer sub.Close()
		require.Equal(t, "3", k.say(key, "b"))
		require.Equal(t, []told{
			{"", []string{"user: a"}}, {"resp_1", []string{"user: b"}}, {"", []string{"user: a", "assistant: 1", "user: b"}},
		}, k.told())
		require.True(t, slices.ContainsFunc(k.items(sub), func(item actors.Item) bool {
			intent, ok := item.(*messages.DeliveryIntent)
			return ok && intent.GetRunPhase().GetReason() == "provider big again, call 2: it does not know the conversation any more"
		}), "people are told why")
		k.say(key, "c")
		require.Equal(t, told{"resp_3", []string{"user: c"}}, k.told()[3])
	})
}

func TestUnknownTokenIsForgottenEvenIfAnotherAnswers(t *testing.T) {
	script := says("1", "-", "-", "4")
	script[2] = llmserver.Answer{Quirk: "auth"}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		k.chat.Call(testkit.Stream("3"))
		k.say(key, "a")
		k.server.Forget()
		require.Equal(t, "3", k.say(key, "b"))
		require.Empty(t, k.engineOf(key))
		k.again()
		require.Empty(t, k.engineOf(key))
		k.say(key, "c")
		require.Equal(t, told{"", []string{"user: a", "assistant: 1", "user: b", "assistant: 3", "user: c"}}, k.told()[3])
	})
}

// What is too long is the engine's conversation: the next call begins another one.
func TestOverfullConversationIsBegunAnew(t *testing.T) {
	script := says("1", "-", "3")
	script[1] = llmserver.Answer{Quirk: "overflow"}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		k.say(key, "a")
		require.Equal(t, "3", k.say(key, "b"))
		require.Equal(t, told{"", []string{"user: a", "assistant: 1", "user: b"}}, k.told()[2])
		require.Equal(t, "big", k.engineOf(key))
	})
}

func TestConversationThatFillsTheWindowIsLeft(t *testing.T) {
	script := says("1", "2", "3")
	script[1].Usage = &llmserver.Usage{Input: 127_000, Output: 1_001}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		for _, text := range []string{"a", "b", "c"} {
			k.say(key, text)
		}
		require.Equal(t, told{"", []string{"user: a", "assistant: 1", "user: b", "assistant: 2", "user: c"}}, k.told()[2])
	})
}

func TestExplicitTokenLeadsToItsEngineWhateverTheModel(t *testing.T) {
	withKeeper(t, says("1", "2", "3"), func(t *testing.T, k *keeper) {
		k.chat.Otherwise(testkit.Stream("chat"))
		_, err := k.client.Start(t.Context(), key, &messages.SessionConfig{Model: new("llama")})
		require.NoError(t, err)
		require.Equal(t, "chat", k.say(key, "a"))
		k.say(named(2), "begin") // resp_1
		require.Equal(t, "2", k.say(key, "b", on("resp_1")))
		require.Equal(t, told{"resp_1", []string{"user: b"}}, k.told()[1])
		require.Equal(t, "chat", k.say(key, "c"), "the session's model decides again")
		require.Equal(t, []string{"user: a", "assistant: chat", "user: b", "assistant: 2", "user: c"}, k.chatWas())
		require.Equal(t, "3", k.say(key, "d", func(s *messages.SubmitTurn) { s.Model = "smart" }))
		require.Equal(t, told{"resp_2", []string{"user: c", "assistant: chat", "user: d"}}, k.told()[2])

		_, err = k.client.Submit(t.Context(), key, turn("x", on("resp_2"), func(s *messages.SubmitTurn) { s.Model = "llama" }))
		var failure *messages.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, string(messages.CodeInvalidField), failure.GetCode())
	})
}

// A run that a token leads to an engine takes a slot of that engine, not of the one that its model would lead to.
func TestExplicitTokenTakesASlotOfItsEngine(t *testing.T) {
	withKeeper(t, says("1", "2", "3"), func(t *testing.T, k *keeper) {
		k.perBig = 1
		k.again()
		k.say(named(2), "begin") // resp_1
		k.submit(named(2), "busy")
		_, err := k.client.Start(t.Context(), key, &messages.SessionConfig{Model: new("llama")})
		require.NoError(t, err)
		waits := k.submit(key, "a", on("resp_7"))
		require.Equal(t, "queued", waits.GetDisposition())
		require.Equal(t, "answered", k.end(key, waits.GetTurnId()).GetState())
	})
}

// I10: an abort closes the upstream call, and an answer that was cut is nothing to go on with.
func TestAbortedResponseIsClosedAndNotGoneOnWith(t *testing.T) {
	script := says("1", "-", "3")
	script[1] = llmserver.Answer{Deltas: []string{"half ", "whole"}, Delay: time.Hour}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		k.say(key, "a")
		accepted := k.submit(key, "b")
		request, err := k.server.Await(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(time.Second) // virtual
		_, err = k.client.Abort(t.Context(), key, &messages.Abort{Scope: string(messages.AbortRun), RunId: accepted.GetRunId()})
		require.NoError(t, err)
		aborted := time.Now()
		<-request.Gone
		require.Less(t, time.Since(aborted), time.Second)
		require.Equal(t, "cancelled", k.end(key, accepted.GetTurnId()).GetState())
		k.say(key, "c")
		require.Equal(t, told{"resp_1", []string{"user: b", "assistant: half ", "user: c"}}, k.told()[2])
	})
}

// A call that breaks in mid-answer is made again with the same token: the broken one changed nothing.
func TestBrokenResponseIsAskedForAgain(t *testing.T) {
	script := says("1", "-", "3")
	script[1] = llmserver.Answer{Deltas: []string{"half ", "whole"}, CutAfter: 1}
	withKeeper(t, script, func(t *testing.T, k *keeper) {
		k.say(key, "a")
		require.Equal(t, "3", k.say(key, "b"))
		require.Equal(t, []told{{"", []string{"user: a"}}, {"resp_1", []string{"user: b"}}, {"resp_1", []string{"user: b"}}}, k.told())
	})
}
