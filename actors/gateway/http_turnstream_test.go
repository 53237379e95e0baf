package gateway_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

const turnsOfS1 = "/v1/sessions/s1/turns"

// streamTurn opens the stream of a turn and takes its acceptance.
func (s *server) streamTurn(t *testing.T, body string, headers ...string) (r *sseReader, accepted frame) {
	t.Helper()
	r = s.stream(t, http.MethodPost, turnsOfS1, body, headers...)
	accepted = r.expect("turn_accepted")
	require.Empty(t, r.lastID)
	return r, accepted
}

// say sends a turn without a socket, which in a bubble must be read all the time.
func (s *server) say(text, queueMode string) frame {
	s.t.Helper()
	status, accepted, _ := s.call(http.MethodPost, turnsOfS1, `{"text":"`+text+`","queue_mode":"`+queueMode+`"}`)
	require.Equal(s.t, http.StatusAccepted, status)
	return accepted
}

func TestATurnIsStreamedToItsLastItem(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		all := s.dial()
		all.ask("subscribe", "session_id", "s1")
		turn, accepted := s.streamTurn(t, `{"id":"a","text":"hi"}`, "Idempotency-Key", "k1")
		require.Equal(t, "a", accepted.text("id"))
		got := turn.rest()
		_, want := all.until("router_response")
		require.Equal(t, want, got, "the same items with the same numbers")
		require.Equal(t, strconv.FormatUint(got[len(got)-1].number("seq"), 10), turn.lastID)
		require.Empty(t, turn.comment)
		require.Equal(t, []string{"stream_finalize", "turn_state", "run_phase", "router_response"}, kinds(got)[len(got)-4:])
	})
}

func TestADuplicateOfAnEndedTurnIsItsEndAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		first, _ := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
		items := first.rest()
		final := items[len(items)-1]

		again, accepted := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
		require.Equal(t, "duplicate", accepted.text("disposition"))
		got := again.rest()
		require.Equal(t, []string{"router_response"}, kinds(got))
		require.Equal(t, final["content"], got[0]["content"])
		require.NotContains(t, got[0], "seq")
		require.Empty(t, again.lastID)

		// A client that was cut gets what it has not got.
		after := items[2].number("seq")
		rest, _ := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`, "Last-Event-ID", strconv.FormatUint(after, 10))
		require.Equal(t, items[3:], rest.rest())

		// One that has everything is told the end again.
		rest, _ = s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`, "Last-Event-ID", first.lastID)
		require.Equal(t, []string{"router_response"}, kinds(rest.rest()))
		s.model.ExpectCalls(1)
	})
}

// B88 by streams: the socket dies in the middle and the prompt is sent again under its key.
func TestB88StreamOfARunningDuplicateBeginsAtItsBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("one"), testkit.Delay(30*time.Second), testkit.Stream("two"))
		cut, accepted := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
		_, items := cut.until("stream_delta")
		cut.close()
		time.Sleep(time.Second)

		again, same := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
		require.Equal(t, accepted["turn_id"], same["turn_id"])
		got := again.rest()
		require.Equal(t, items, got[:len(items)])
		require.Equal(t, "onetwo", got[len(got)-1].text("content"))
		require.Equal(t, "completed", got[len(got)-1].text("outcome"), "to be cut cancels nothing")
		s.model.ExpectCalls(1)
	})
}

func TestStreamOfAMergedTurnIsThatOfTheRunItJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("first"), testkit.Delay(time.Minute)).Otherwise(testkit.Stream("both"))
		first := s.say("a", "collect")
		lead := s.say("b", "followup")
		part, accepted := s.streamTurn(t, `{"text":"c","queue_mode":"followup","idempotency_key":"k"}`)
		require.Equal(t, "merged", accepted.text("disposition"))
		require.Equal(t, lead["run_id"], accepted["run_id"])
		got := part.rest()
		for _, f := range got {
			require.NotEqual(t, first["run_id"], f["run_id"], "no items of another run: %v", f)
		}
		states := only(got, "turn_state")
		require.Len(t, states, 1, "its own")
		require.Equal(t, "merged", states[0].text("state"))
		require.Equal(t, "both", got[len(got)-1].text("content"))
		require.Len(t, got[len(got)-1]["turn_ids"], 2)

		again, _ := s.streamTurn(t, `{"text":"c","queue_mode":"followup","idempotency_key":"k"}`)
		require.Equal(t, "both", again.expect("router_response").text("content"))
		again.close()
	})
}

// A part whose lead is taken back is answered by another run, which its stream follows.
func TestStreamOfAPartGoesOnWithoutItsLead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("first"), testkit.Delay(30*time.Second)).Otherwise(testkit.Stream("the part"))
		s.say("a", "collect")
		lead := s.say("b", "followup")
		part, accepted := s.streamTurn(t, `{"text":"c","queue_mode":"followup"}`)
		require.Equal(t, "merged", accepted.text("disposition"))
		_, withdrawn, _ := s.call(http.MethodDelete, turnsOfS1+"/"+lead.text("turn_id"), "")
		require.Equal(t, true, withdrawn["withdrawn"])
		got := part.rest()
		require.Equal(t, "the part", got[len(got)-1].text("content"))
		require.Len(t, only(got, "stream_delta"), 1)
		require.Equal(t, []any{accepted["turn_id"]}, got[len(got)-1]["turn_ids"])
	})
}

func TestStreamOfATurnThatSteersIsThatOfTheRunThatTookIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		first := s.say("a", "collect")
		steer, accepted := s.streamTurn(t, `{"text":"left","queue_mode":"steer","mode":"STEERING"}`)
		require.Equal(t, "steering", accepted.text("disposition"))
		require.NotEqual(t, first["run_id"], accepted["run_id"])
		got := steer.rest()
		require.Equal(t, "steered", only(got, "turn_state")[0].text("state"))
		final := got[len(got)-1]
		require.Equal(t, first["run_id"], final["run_id"])
		require.Equal(t, "heard left", final.text("content"))
	}, func(set *settings) {
		sys := set.session.Kernel
		set.session.NewRunner = func(order core.RunOrder, _ runner.Hold) *actor.Props {
			return sys.Props(func() actor.Actor { return &steerable{sys: sys, order: order} }, kernel.PropsOptions{})
		}
	})
}

// A turn whose offer is refused runs by itself.
func TestStreamOfAFallbackIsThatOfItsOwnRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("first"), testkit.Delay(time.Minute)).Otherwise(testkit.Stream("own"))
		s.say("a", "collect")
		turn, accepted := s.streamTurn(t, `{"text":"b","queue_mode":"steer"}`)
		require.Equal(t, "steering", accepted.text("disposition"))
		got := turn.rest()
		for _, f := range got[:len(got)-1] {
			if run, ok := f["run_id"]; ok {
				require.Equal(t, accepted["run_id"], run)
			}
		}
		require.Equal(t, "own", got[len(got)-1].text("content"))
	})
}

func TestStreamOfATurnThatNoRunTookEndsWithItsState(t *testing.T) {
	for name, tt := range map[string]struct {
		end           func(t *testing.T, s *server, turn string)
		state, reason string
		change        func(*settings)
	}{
		"withdrawn": {end: func(t *testing.T, s *server, turn string) {
			t.Helper()
			status, _, _ := s.call(http.MethodDelete, turnsOfS1+"/"+turn, "")
			require.Equal(t, http.StatusOK, status)
		}, state: "withdrawn"},
		"cancelled": {end: func(t *testing.T, s *server, turn string) {
			t.Helper()
			status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", `{"scope":"turn","turn_id":"`+turn+`"}`)
			require.Equal(t, http.StatusOK, status)
		}, state: "cancelled"},
		"slot_timeout": {
			end:   func(*testing.T, *server, string) {},
			state: "failed", reason: "slot_timeout",
			change: func(set *settings) {
				set.session.Slots = slots.New(set.session.Kernel, slots.Config{Max: 1})
				set.session.Core.SlotTimeout = 10 * time.Second
			},
		},
		"budget_exceeded": {
			end:   func(*testing.T, *server, string) {},
			state: "failed", reason: "budget_exceeded",
			change: func(set *settings) { set.session.Core.TokensPerDay = 2 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*settings) {}
			}
			inBubble(t, func(t *testing.T, s *server, _ *pipes) {
				s.model.Call(testkit.Stream("a long answer"), testkit.Delay(90*time.Second))
				other := turnsOfS1
				if name == "slot_timeout" {
					other = "/v1/sessions/busy/turns"
				}
				status, _, _ := s.call(http.MethodPost, other, `{"text":"first"}`)
				require.Equal(t, http.StatusAccepted, status)
				synctest.Wait()
				turn, accepted := s.streamTurn(t, `{"text":"second","idempotency_key":"k"}`)
				tt.end(t, s, accepted.text("turn_id"))
				got := turn.rest()
				states := only(got, "turn_state")
				require.Len(t, states, 1, "%v", got)
				require.Equal(t, tt.state, states[0].text("state"))
				require.Equal(t, accepted["turn_id"], states[0]["turn_id"])
				if tt.reason != "" {
					require.Equal(t, tt.reason, states[0].text("reason"))
				}
				require.Empty(t, only(got, "router_response"))

				again, _ := s.streamTurn(t, `{"text":"second","idempotency_key":"k"}`)
				require.Equal(t, tt.state, again.expect("turn").text("state"), "its end, at once")
				require.Empty(t, again.rest())
			}, change)
		})
	}
}

func TestStreamOfATurnEndsWhenItsClientHasWaitedEnough(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("one"), testkit.Delay(time.Minute))
		begun := time.Now()
		turn := s.stream(t, http.MethodPost, turnsOfS1+"?wait=5s", `{"text":"hi","idempotency_key":"k"}`)
		got := turn.rest()
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.Equal(t, []string{"time is up: the turn goes on"}, turn.comment)
		require.Empty(t, only(got, "router_response"))

		again, _ := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`, "Last-Event-ID", turn.lastID)
		final, _ := again.until("router_response")
		again.close()
		require.Equal(t, "one", final.text("content"))
	})
}

func TestStreamOfATurnGoesOnThroughARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("lost"), testkit.HangUntilCancel())
		turn, accepted := s.streamTurn(t, `{"text":"hi"}`)
		turn.until("stream_delta")
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
		require.Equal(t, http.StatusServiceUnavailable, status)
		got := turn.rest()
		require.Equal(t, []string{"gap", "resync"}, kinds(got)[:2])
		final := got[len(got)-1]
		require.Equal(t, accepted["run_id"], final["run_id"])
		require.Equal(t, "Hello there", final.text("content"))
	})
}

// The end of a waiting turn is stored, but the journal cannot say so: the session begins anew, and the stream learns of it.
func TestStreamOfATurnLearnsOfAnEndWhoseOutcomeWasUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.HangUntilCancel())
		s.call(http.MethodPost, turnsOfS1, `{"text":"first"}`)
		turn, accepted := s.streamTurn(t, `{"text":"hi"}`)
		synctest.Wait()
		s.journal.UnknownNext(true)
		s.journal.FailNext(20, persistence.ErrUnknown)
		status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", `{"scope":"turn","turn_id":"`+accepted.text("turn_id")+`"}`)
		require.Equal(t, http.StatusServiceUnavailable, status)
		got := turn.rest()
		require.Equal(t, "cancelled", got[len(got)-1].text("state"), "%v", got)
	})
}

func TestStreamOfATurnOfASessionThatCannotBeFollowedEndsWithTheError(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.HangUntilCancel())
		turn, _ := s.streamTurn(t, `{"text":"hi"}`)
		synctest.Wait()
		s.journal.FailClaims(1, &persistence.CorruptError{Key: messages.NewKey("s1"), Seq: 1, Reason: "test"})
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
		got := turn.rest()
		last := got[len(got)-1]
		require.Equal(t, "error", last.kind())
		require.Equal(t, "quarantined", last.text("code"))
		require.Equal(t, "s1", last.text("session_id"))
	})
}

// B76 and B77: to be cut stops nothing; a stop by any other door does, and what was streamed is kept.
func TestB76B77RunOfACutStreamIsStoppedByAnotherDoor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("half"), testkit.Delay(10*time.Second), testkit.Stream(" and more"), testkit.HangUntilCancel())
		turn, accepted := s.streamTurn(t, `{"text":"hi"}`)
		turn.until("stream_delta")
		turn.close()
		time.Sleep(20 * time.Second)
		require.NotNil(t, s.state("s1")["active_run"])
		output := s.stream(t, http.MethodGet, outputOfS1, "", "Last-Event-ID", turn.lastID)
		status, aborted, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", `{"scope":"session"}`)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, []any{accepted["run_id"]}, aborted["run_ids"])
		final, _ := output.until("router_response")
		require.Equal(t, "cancelled", final.text("outcome"))
		require.Equal(t, "half and more", final.text("content"))
		output.close()
	})
}
