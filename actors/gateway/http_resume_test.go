package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

const (
	wanderDeltas = 10_000
	wanderVisits = 100
)

// wanderer is a client that is cut again and again and comes back by another door each time. It goes on after the last number
// it has, which of a stream is the last id, as in a browser.
type wanderer struct {
	t   *testing.T
	s   *server
	rnd *rand.Rand
	run string
	// last is where it goes on; seq the last number that it saw.
	last uint64
	text strings.Builder
	// final is the answer; nil = it is not there yet.
	final  frame
	gaps   int
	deltas int
}

const wanderTurn = `{"text":"tell me","idempotency_key":"k","queue_mode":"collect"}`

// wanderParts are the pieces of an answer in many scripts, with what breaks badly written streams.
func wanderParts(rnd *rand.Rand, n int) []string {
	alphabet := []string{"é", "漢字", "👩‍👩‍👧", "e\u0301", "\u2028", "\x00", "\r", "\n\ndata: x\n\n", "id: 9\n", " ", "word", `"`, `\`}
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strconv.Itoa(i) + alphabet[rnd.IntN(len(alphabet))]
	}
	return parts
}

func newWanderer(t *testing.T, s *server, seed uint64) *wanderer {
	t.Helper()
	return &wanderer{t: t, s: s, rnd: rand.New(rand.NewPCG(seed, 79))}
}

// visit is a way in: it gives frames with the id that a client goes on after, and says whether all of the session come.
type visit struct {
	next  func() (f frame, id string, err error)
	close func()
	all   bool
}

func (w *wanderer) socket() visit {
	c := w.s.dial()
	c.t = w.t
	c.send("subscribe", "session_id", "s1", "after_seq", w.last)
	c.expect("subscribed")
	next := func() (frame, string, error) {
		f, err := c.read()
		id := ""
		if n := f.number("seq"); n == w.last+1 { // else a final from before a gap
			id = strconv.FormatUint(n, 10)
		}
		if f.kind() == "resync" {
			id = strconv.FormatUint(f.number("up_to_seq"), 10)
		}
		return f, id, err
	}
	return visit{next: next, close: func() { _ = c.ws.CloseNow() }, all: true}
}

func (w *wanderer) resume() []string {
	if w.last == 0 {
		return nil
	}
	return []string{"Last-Event-ID", strconv.FormatUint(w.last, 10)}
}

func (w *wanderer) output() visit {
	r := w.s.stream(w.t, http.MethodGet, "/v1/sessions/s1/output?after_seq=0", "", w.resume()...)
	return visit{next: r.read, close: r.close, all: true}
}

func (w *wanderer) ofTurn() visit {
	r := w.s.stream(w.t, http.MethodPost, "/v1/sessions/s1/turns", wanderTurn, w.resume()...)
	require.Equal(w.t, w.run, r.expect("turn_accepted").text("run_id"))
	return visit{next: r.read, close: r.close}
}

// visit goes in by some door until it has had enough, or the final.
func (w *wanderer) visit(enough func() bool) {
	v := []func() visit{w.socket, w.output, w.ofTurn}[w.rnd.IntN(3)]()
	defer v.close()
	for w.final == nil && !enough() {
		f, id, err := v.next()
		require.NoError(w.t, err)
		w.take(f, id, v.all)
	}
}

func (w *wanderer) take(f frame, id string, all bool) {
	if f.kind() == "gap" {
		w.gaps++
		require.Equal(w.t, w.last+1, f.number("from_seq"))
		require.Empty(w.t, id)
		return
	}
	if f.text("run_id") == w.run {
		w.own(f)
	}
	if id == "" {
		require.Equal(w.t, "router_response", f.kind(), "only finals come before a gap")
		return
	}
	n, err := strconv.ParseUint(id, 10, 64)
	require.NoError(w.t, err)
	require.Greater(w.t, n, w.last, "numbers rise")
	if f.kind() == "resync" {
		require.Equal(w.t, f.number("up_to_seq"), n)
	} else {
		require.Equal(w.t, f.number("seq"), n)
		require.True(w.t, !all || n == w.last+1, "and by one where everything comes: %v", f)
	}
	w.last = n
}

// own takes what is about the answer.
func (w *wanderer) own(f frame) {
	switch f.kind() {
	case "resync":
		w.text.Reset()
		w.text.WriteString(f.text("text"))
	case "stream_delta":
		require.EqualValues(w.t, w.text.Len(), f.number("offset"), "no text is missing or twice")
		w.text.WriteString(f.text("text"))
		w.deltas++
	case "stream_finalize":
		require.Equal(w.t, w.text.String(), f.text("text"))
	case "router_response":
		w.final = f
	}
}

// TestB79B80AClientThatChangesTheDoorMissesAndRepeatsNothing: a client is cut a hundred times in an answer of ten thousand
// deltas and comes back each time by the WebSocket, the session's stream or the turn's.
func TestB79B80AClientThatChangesTheDoorMissesAndRepeatsNothing(t *testing.T) {
	for _, keep := range []int{50, wanderDeltas + 1000} {
		for seed := range uint64(1) {
			t.Run(fmt.Sprintf("keep %d seed %d", keep, seed), func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *server, _ *pipes) {
					w := newWanderer(t, s, seed)
					parts := wanderParts(w.rnd, wanderDeltas)
					var steps []testkit.Step
					for _, part := range parts {
						steps = append(steps, testkit.Stream(part), testkit.Delay(time.Millisecond))
					}
					w.wander(steps, func(int) func() bool {
						if w.rnd.IntN(10) == 0 {
							time.Sleep(time.Duration(w.rnd.IntN(150)) * time.Millisecond)
						}
						frames := w.rnd.IntN(100)
						return func() bool {
							frames--
							return frames < 0
						}
					})
					w.finish(strings.Join(parts, ""), keep > wanderDeltas)
					if keep > wanderDeltas {
						require.Equal(t, wanderDeltas, w.deltas, "each delta once")
					}
				}, func(set *settings) {
					set.session.Output.Keep, set.session.Output.KeepBytes = keep, 64<<20
				})
			})
		}
	}
}

// TestB79AClientThatChangesTheDoorOverTheNetwork is the same over TCP, where the deltas flow while it attaches.
func TestB79AClientThatChangesTheDoorOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) {
		set.session.Output.Keep, set.session.Output.KeepBytes = wanderDeltas+1000, 64<<20
	})
	w := newWanderer(t, s, 3)
	parts := wanderParts(w.rnd, wanderDeltas)
	const each = wanderDeltas / wanderVisits
	gates := make([]chan struct{}, wanderVisits)
	var steps []testkit.Step
	for i := range gates {
		gates[i] = make(chan struct{})
		steps = append(steps, testkit.WaitFor(gates[i]), testkit.Stream(parts[i*each:(i+1)*each]...))
	}
	w.wander(steps, func(n int) func() bool {
		close(gates[n])
		upTo := len(strings.Join(parts[:n*each+w.rnd.IntN(each)], ""))
		return func() bool { return w.text.Len() >= upTo }
	})
	w.finish(strings.Join(parts, ""), true)
}

// wander lets an answer be streamed, among other turns, and visits it; then it stays to the end.
func (w *wanderer) wander(steps []testkit.Step, pause func(n int) (enough func() bool)) {
	status, _, _ := w.s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=10s", `{"text":"before"}`)
	require.Equal(w.t, http.StatusOK, status)
	w.s.model.Call(steps...)
	status, accepted, _ := w.s.call(http.MethodPost, "/v1/sessions/s1/turns", wanderTurn)
	require.Equal(w.t, http.StatusAccepted, status)
	w.run = accepted.text("run_id")
	for n := range wanderVisits {
		if n == wanderVisits/2 { // another turn's items are among them
			w.s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"behind","queue_mode":"collect"}`)
		}
		w.visit(pause(n))
	}
	require.Nil(w.t, w.final, "it was cut in the middle of the answer each time")
	w.visit(func() bool { return false })
}

func (w *wanderer) finish(want string, kept bool) {
	require.NotNil(w.t, w.final)
	require.Equal(w.t, "completed", w.final.text("outcome"))
	require.Equal(w.t, want, w.final.text("content"))
	require.Equal(w.t, want, w.text.String(), "what it has put together")
	if kept {
		require.Zero(w.t, w.gaps)
	} else {
		require.Positive(w.t, w.gaps)
	}
}
