package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// door is one way in which a turn comes to a session. Submit does not wait for the answer; close ends what it opened.
type door struct {
	submit func(turn *messages.SubmitTurn)
	close  func()
}

var doors = map[string]func(t *testing.T, s *server) door{
	"socket":          socketDoor,
	"HTTP with wait":  waitDoor,
	"HTTP and stream": streamDoor,
	"HTTP as stream":  turnStreamDoor,
	"Go client":       clientDoor,
}

func bodyOf(t *testing.T, turn *messages.SubmitTurn) frame {
	t.Helper()
	return frame{
		"text": turn.GetText(), "mode": turn.GetMode(), "queue_mode": turn.GetQueueMode(), "sender": turn.GetSender(),
		"model": turn.GetModel(), "idempotency_key": turn.GetIdempotencyKey(),
	}
}

func socketDoor(t *testing.T, s *server) door {
	t.Helper()
	c := s.dial()
	return door{
		submit: func(turn *messages.SubmitTurn) {
			fields := []any{"session_id", "s1"}
			for name, value := range bodyOf(t, turn) {
				fields = append(fields, name, value)
			}
			require.Equal(t, "turn_accepted", c.ask("chat_input", fields...).kind())
		},
		close: func() { require.NoError(t, c.ws.CloseNow()) },
	}
}

func waitDoor(t *testing.T, s *server) door {
	t.Helper()
	var waiting []chan int
	return door{
		submit: func(turn *messages.SubmitTurn) {
			body, err := json.Marshal(bodyOf(t, turn))
			require.NoError(t, err)
			status := make(chan int, 1)
			waiting = append(waiting, status)
			go func() {
				code, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=5m", string(body))
				status <- code
			}()
		},
		close: func() {
			for _, status := range waiting {
				require.Equal(t, http.StatusOK, <-status)
			}
		},
	}
}

func streamDoor(t *testing.T, s *server) door {
	t.Helper()
	stream := s.request(t.Context(), http.MethodGet, "/v1/sessions/s1/events", "", "Accept", "text/event-stream") //nolint:bodyclose // the door closes it
	require.Equal(t, http.StatusOK, stream.StatusCode)
	return door{
		submit: func(turn *messages.SubmitTurn) {
			body, err := json.Marshal(bodyOf(t, turn))
			require.NoError(t, err)
			status, accepted, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns", string(body))
			require.Equal(t, http.StatusAccepted, status, "%v", accepted)
		},
		close: func() { require.NoError(t, stream.Body.Close()) },
	}
}

func turnStreamDoor(t *testing.T, s *server) door {
	t.Helper()
	var streams []chan []frame
	return door{
		submit: func(turn *messages.SubmitTurn) {
			body, err := json.Marshal(bodyOf(t, turn))
			require.NoError(t, err)
			r, _ := s.streamTurn(t, string(body))
			ended := make(chan []frame, 1)
			streams = append(streams, ended)
			go func() { ended <- r.rest() }()
		},
		close: func() {
			for _, ended := range streams {
				require.Len(t, only(<-ended, "router_response"), 1)
			}
		},
	}
}

func clientDoor(t *testing.T, s *server) door {
	t.Helper()
	client := actors.NewClient(s.sys, s.dir, s.journal)
	return door{
		submit: func(turn *messages.SubmitTurn) {
			_, err := client.Submit(t.Context(), messages.NewKey("s1"), turn)
			require.NoError(t, err)
		},
		close: func() {},
	}
}

// B20: each door obeys each queue mode, which the journal tells: it is the same whichever way the turns came.
func TestB20EveryDoorWritesTheSameJournal(t *testing.T) {
	t.Parallel()
	for _, mode := range []messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			journals := make(chan [2]string, len(doors))
			t.Run("doors", func(t *testing.T) {
				for name, open := range doors {
					t.Run(name, func(t *testing.T) {
						inBubble(t, func(t *testing.T, s *server, _ *pipes) { journals <- [2]string{name, throughDoor(t, s, open, mode)} })
					})
				}
			})
			require.Len(t, journals, len(doors))
			first := <-journals
			require.GreaterOrEqual(t, strings.Count(first[1], `"queue_mode":"`+string(mode)+`"`), 2, "while the session is busy")
			for range len(doors) - 1 {
				next := <-journals
				require.Equal(t, first[1], next[1], "%s (expected) and %s", first[0], next[0])
			}
		})
	}
}

// throughDoor sends turns through a door and gives what the journal holds in the end.
func throughDoor(t *testing.T, s *server, open func(*testing.T, *server) door, mode messages.QueueMode) string {
	t.Helper()
	s.model.Otherwise(testkit.Stream("so"), testkit.Delay(5*time.Second), testkit.Stream(" be it"))
	status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"stage_started","stage_id":"build"}]}`)
	require.Equal(t, http.StatusOK, status)
	through := open(t, s)
	pauses := map[string]time.Duration{"a": time.Second, "b": 300 * time.Millisecond, "c": time.Minute}
	for _, text := range []string{"a", "b", "c"} {
		through.submit(&messages.SubmitTurn{
			Text: text, Mode: "STEERING", QueueMode: string(mode), Sender: "ann", Model: "m", IdempotencyKey: "k" + text,
		})
		time.Sleep(pauses[text])
	}
	through.close()
	return journalOf(t, s)
}

// journalOf prints both streams of the session with names in place of the turns' ids.
func journalOf(t *testing.T, s *server) string {
	t.Helper()
	var lines, ids []string
	for _, stream := range []messages.Stream{messages.StreamLedger, messages.StreamEvents} {
		records, err := testkit.ReadAll(t.Context(), s.journal, messages.NewKey("s1"), stream)
		require.NoError(t, err)
		for _, rec := range records {
			var content any
			if stream == messages.StreamEvents {
				content, err = messages.DecodeEvent(rec.Type, rec.Version, rec.Payload)
			} else {
				content, err = messages.DecodeLedger(rec.Type, rec.Version, rec.Payload)
			}
			require.NoError(t, err)
			if admitted, ok := content.(*messages.TurnAdmitted); ok {
				ids = append(ids, admitted.GetTurn().GetTurnId(), "turn-"+admitted.GetTurn().GetText(),
					admitted.GetTurn().GetRunId(), "run-"+admitted.GetTurn().GetText())
			}
			text, err := json.Marshal(content)
			require.NoError(t, err)
			lines = append(lines, fmt.Sprintf("%s %d %s@%d %s", stream, rec.Seq, rec.Type, rec.Version, text))
		}
	}
	return strings.NewReplacer(ids...).Replace(strings.Join(lines, "\n"))
}
