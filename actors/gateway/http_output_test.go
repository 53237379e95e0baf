package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// actors counts everything that lives in the process.
func (s *server) actors() (n int) {
	for _, bucket := range s.sys.ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		n += bucket.Count()
	}
	return n
}

// sseReader reads server-sent events as browsers do: by the lines of the standard, with nothing of the server's code.
type sseReader struct {
	t       *testing.T
	body    io.ReadCloser
	lines   *bufio.Reader
	comment []string
	// lastID is what a browser would send as Last-Event-ID.
	lastID string
	cancel context.CancelFunc
}

// stream opens a stream; it is cut with close.
func (s *server) stream(t *testing.T, method, path, body string, headers ...string) *sseReader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	resp := s.request(ctx, method, path, body, append(headers, "Accept", "text/event-stream")...) //nolint:bodyclose // close does
	r := &sseReader{t: t, body: resp.Body, lines: bufio.NewReader(resp.Body), cancel: cancel}
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		r.close()
		require.FailNow(t, "no stream", "%s %s: %d %s", method, path, resp.StatusCode, data)
	}
	t.Cleanup(r.close) // also when the test fails: a bubble must end empty
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	return r
}

func (r *sseReader) close() {
	r.cancel()
	_ = r.body.Close()
}

// read gives the next event, checked against its own data; io.EOF at the end of the stream.
func (r *sseReader) read() (f frame, id string, err error) {
	f, id, name, err := r.event()
	if err == nil {
		require.Equal(r.t, f.kind(), name)
	}
	return f, id, err
}

func (r *sseReader) event() (f frame, id, name string, err error) {
	var data []byte
	for {
		line, err := r.lines.ReadBytes('\n')
		if err != nil {
			return nil, "", "", err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		require.NotContains(r.t, string(line), "\r", "a line end for browsers")
		field, value, _ := strings.Cut(string(line), ": ")
		switch {
		case len(line) == 0 && data == nil:
			continue
		case len(line) == 0:
			f = frame{}
			require.NoError(r.t, json.Unmarshal(data, &f), "%s", data)
			if id != "" {
				r.lastID = id
			}
			return f, id, name, nil
		case field == "":
			r.comment = append(r.comment, value)
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			require.Nil(r.t, data, "all data of an event is in one line")
			data = []byte(value)
		default:
			require.Fail(r.t, "no field of an event", "%q", line)
		}
	}
}

func (r *sseReader) next() frame {
	r.t.Helper()
	f, _, err := r.read()
	require.NoError(r.t, err)
	return f
}

func (r *sseReader) expect(kind string) frame {
	r.t.Helper()
	f := r.next()
	require.Equal(r.t, kind, f.kind(), "%v", f)
	return f
}

// until takes events up to the first of a type.
func (r *sseReader) until(kind string) (last frame, all []frame) {
	r.t.Helper()
	for {
		f := r.next()
		all = append(all, f)
		if f.kind() == kind {
			return f, all
		}
	}
}

// rest takes everything up to the end.
func (r *sseReader) rest() []frame {
	r.t.Helper()
	defer r.close()
	var all []frame
	for {
		f, _, err := r.read()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(r.t, err)
		all = append(all, f)
	}
}

func kinds(frames []frame) []string {
	list := make([]string, len(frames))
	for i, f := range frames {
		list[i] = f.kind()
	}
	return list
}

const outputOfS1 = "/v1/sessions/s1/output"

// B82: who joins late and asks for everything gets what the first one got, in the same order.
func TestB82LateStreamFromTheBeginningIsTheFirstOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"one"}]}`)
		s.model.Call(testkit.Stream("one"), testkit.Delay(time.Second), testkit.Stream("two"))
		first := s.stream(t, http.MethodGet, outputOfS1, "")
		resync := first.expect("resync")
		require.Zero(t, resync.number("up_to_seq"))
		socket := s.dial()
		socket.ask("subscribe", "session_id", "s1")
		s.call(http.MethodPost, turnsOfS1, `{"text":"hi"}`)
		_, want := socket.until("router_response")
		_, items := first.until("router_response")
		require.Equal(t, want, items)
		late := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
		_, items = late.until("router_response")
		require.Equal(t, want, items)
		require.Equal(t, first.lastID, late.lastID)
		first.close()
		late.close()
	})
}

// B83: a page that is loaded in the middle of an answer shows its beginning.
func TestB83StreamWithoutANumberBeginsWithTheTextSoFar(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("half of "), testkit.Delay(10*time.Second), testkit.Stream("it"))
		accepted := s.say("hi", "collect")
		time.Sleep(time.Second)
		r := s.stream(t, http.MethodGet, outputOfS1, "")
		resync := r.expect("resync")
		require.Equal(t, "half of ", resync.text("text"))
		require.Equal(t, accepted["run_id"], resync["run_id"])
		require.Equal(t, "s1", resync["state"].(map[string]any)["session_id"])
		require.Equal(t, strconv.FormatUint(resync.number("up_to_seq"), 10), r.lastID, "who is cut now goes on here")
		r.close()

		r = s.stream(t, http.MethodGet, outputOfS1, "", "Last-Event-ID", r.lastID)
		delta := r.expect("stream_delta")
		require.EqualValues(t, len("half of "), delta.number("offset"))
		require.Equal(t, resync.number("up_to_seq")+1, delta.number("seq"))
		final, _ := r.until("router_response")
		require.Equal(t, "half of it", final.text("content"))
		r.close()
	})
}

// B80: of many streams that are cut at once the last one has everything, and nothing is left of the others.
func TestB80StormOfStreamsLeavesTheLastOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("slow "), testkit.Delay(2*time.Second), testkit.Stream("answer"))
		c := s.dial()
		c.ask("start_session", "session_id", "s1")
		living := s.actors()
		c.say("hi")
		synctest.Wait()
		before := s.state("s1")
		var last *sseReader
		for range 10 {
			if last != nil {
				last.close()
			}
			last = s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
			time.Sleep(90 * time.Millisecond)
		}
		require.Equal(t, before, s.state("s1"))
		_, items := last.until("router_response")
		requireNumbered(t, items)
		require.EqualValues(t, 1, items[0].number("seq"))
		last.close()
		time.Sleep(time.Second)
		require.Equal(t, living, s.actors(), "their actors have ended")
	})
}

func TestOutputGoesOnAfterTheLastEventID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.call(http.MethodPost, turnsOfS1+"?wait=1m", `{"text":"hi"}`)
		for _, tt := range []struct {
			path, header string
			want         uint64
		}{
			{"?after_seq=0", "", 1},
			{"?after_seq=2", "", 3},
			{"?after_seq=2", "4", 5},
			{"", "3", 4},
		} {
			var headers []string
			if tt.header != "" {
				headers = []string{"Last-Event-ID", tt.header}
			}
			r := s.stream(t, http.MethodGet, outputOfS1+tt.path, "", headers...)
			_, items := r.until("router_response")
			requireNumbered(t, items)
			require.Equal(t, tt.want, items[0].number("seq"))
			r.close()
		}
	})
}

// A final from before a gap has no id: who is cut behind it must not go on after it and miss the gap.
func TestOnlyWhatIsWholeUpToItsNumberHasAnID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		for range 2 {
			s.call(http.MethodPost, turnsOfS1+"?wait=1m", `{"text":"hi"}`)
		}
		r := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=1", "")
		for _, want := range []string{"router_response", "router_response", "gap"} {
			f, id, err := r.read()
			require.NoError(t, err)
			require.Equal(t, want, f.kind())
			require.Empty(t, id)
		}
		resync, id, err := r.read()
		require.NoError(t, err)
		require.Equal(t, "resync", resync.kind())
		require.Equal(t, strconv.FormatUint(resync.number("up_to_seq"), 10), id)
		s.call(http.MethodPost, turnsOfS1, `{"text":"hi"}`)
		require.Equal(t, resync.number("up_to_seq")+1, r.expect("run_phase").number("seq"))
		r.close()

		// A number of another journal is brought back to this one's.
		r = s.stream(t, http.MethodGet, outputOfS1, "", "Last-Event-ID", "999999")
		r.expect("gap")
		require.Equal(t, strconv.FormatUint(r.expect("resync").number("up_to_seq"), 10), r.lastID)
		r.close()
	}, func(set *settings) { set.session.Output.Keep = 3 })
}

func TestToReadOutputMakesNoSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	status, refused, _ := s.call(http.MethodGet, outputOfS1+"?after_seq=0", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "unknown_session", refused.code())
	_, page, _ := s.call(http.MethodGet, "/v1/sessions", "")
	require.Empty(t, page["sessions"])
}

func TestStreamsSendSignsOfLife(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Delay(100*time.Second), testkit.Stream("late"))
		turn, _ := s.streamTurn(t, `{"text":"hi"}`)
		synctest.Wait()
		output := s.stream(t, http.MethodGet, outputOfS1, "")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			output.until("router_response")
		}()
		turn.rest()
		<-ended
		require.Equal(t, []string{"", "", ""}, turn.comment)
		require.Equal(t, []string{"", "", ""}, output.comment)
		output.close()
	})
}

// A stream that is read too slowly ends at its limit, with nothing left out, and goes on after its last id; nobody else is
// disturbed.
func TestASlowStreamEndsAndGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		well := s.dial()
		well.ask("start_session", "session_id", "s1")
		slow := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
		var want []frame
		for range 20 {
			require.Equal(t, "turn_accepted", well.askAmong("chat_input", &want, "session_id", "s1", "text", "hi").kind())
			_, more := well.until("router_response")
			want = append(want, more...)
		}
		time.Sleep(4 * time.Second) // less than it is given to take what it was promised
		got := slow.rest()
		require.Equal(t, want[:len(got)], got)
		require.Less(t, len(got), 60, "no more than its outbox waited for it")
		require.Contains(t, slow.comment[0], "too slow")

		again := s.stream(t, http.MethodGet, outputOfS1, "", "Last-Event-ID", slow.lastID)
		for _, f := range want[len(got) : len(got)+10] {
			require.Equal(t, f, again.next())
		}
		again.close()
		well.goesOn(t)
	}, func(set *settings) { set.gateway.OutboxFrames = 50 })
}

// One that takes nothing at all is cut in the end.
func TestAStreamThatIsNotReadIsCut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		well := s.dial()
		well.ask("start_session", "session_id", "s1")
		living := s.actors()
		stuck := s.stream(t, http.MethodGet, outputOfS1, "")
		for range 20 {
			well.ask("chat_input", "session_id", "s1", "text", "hi")
			well.until("router_response")
		}
		require.NoError(t, well.ws.CloseNow())
		time.Sleep(time.Minute)
		require.Equal(t, living-1, s.actors(), "all but the socket that was closed")
		stuck.close()
		s.dial().goesOn(t)
	}, func(set *settings) { set.gateway.OutboxFrames = 50 })
}

func TestOutputGoesOnThroughARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		s.model.Call(testkit.Stream("lost"), testkit.HangUntilCancel())
		s.call(http.MethodPost, turnsOfS1, `{"text":"hi"}`)
		r := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
		r.until("stream_delta")
		_, err := s.journal.StealEpoch(t.Context(), messages.NewKey("s1"))
		require.NoError(t, err)
		s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
		gap := r.expect("gap")
		resync := r.expect("resync")
		require.Equal(t, gap.number("to_seq"), resync.number("up_to_seq"))
		final, items := r.until("router_response")
		requireNumbered(t, items)
		require.Equal(t, resync.number("up_to_seq")+1, items[0].number("seq"))
		require.Equal(t, "Hello there", final.text("content"))
		r.close()
	})
}

func TestStopEndsStreamsBehindWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		s := serve(t, func(set *settings) { set.listener, set.dial = network, network.dial })
		gate := make(chan struct{})
		s.model.Call(testkit.WaitFor(gate), testkit.Stream("last words"))
		turn, _ := s.streamTurn(t, `{"text":"hi"}`)
		synctest.Wait()
		output := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
		close(gate)
		synctest.Wait()
		stopped := make(chan struct{})
		begun := time.Now()
		go func() {
			defer close(stopped)
			s.stop()
		}()
		got := turn.rest()
		require.Equal(t, "last words", got[len(got)-1].text("content"))
		got = output.rest()
		require.Equal(t, "last words", got[len(got)-1].text("content"), "what was sent before is flushed")
		require.Equal(t, []string{"the server is shutting down"}, output.comment)
		<-stopped
		require.LessOrEqual(t, time.Since(begun), 2*time.Second)
	})
}
