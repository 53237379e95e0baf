package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// resumer is a client that is cut again and again and puts together what it got.
type resumer struct {
	t    *testing.T
	s    *server
	rnd  *rand.Rand
	last uint64
	// texts holds the streamed text of each run, finals the content of each final.
	texts  map[string]string
	finals map[string]string
	gaps   int
}

// session follows the session for a random number of frames and says whether it has all finals.
func (r *resumer) session(finals int) bool {
	c := r.s.dial()
	c.t = r.t
	c.send("subscribe", "session_id", "s1", "after_seq", r.last)
	c.expect("subscribed")
	for range r.rnd.IntN(25) {
		if len(r.finals) == finals {
			return true
		}
		r.take(c, c.next())
	}
	switch r.rnd.IntN(3) {
	case 0:
		require.NoError(r.t, c.ws.CloseNow())
	case 1: // what is on its way is not read
		_ = c.ws.Close(websocket.StatusNormalClosure, "")
	case 2: // a second subscription on the same connection
		c.send("subscribe", "id", "again", "session_id", "s1", "after_seq", r.last)
		for f := c.next(); f.text("id") != "again"; f = c.next() {
			r.take(c, f)
		}
		require.NoError(r.t, c.ws.CloseNow())
	}
	return len(r.finals) == finals
}

func (r *resumer) take(c *client, f frame) {
	switch f.kind() {
	case "gap":
		r.gaps++
		require.Equal(r.t, r.last+1, f.number("from_seq"))
		resync := c.expect("resync")
		require.Equal(r.t, f.number("to_seq"), resync.number("up_to_seq"))
		r.last = resync.number("up_to_seq")
		if run := resync.text("run_id"); run != "" {
			r.texts[run] = resync.text("text")
		}
		return
	case "router_response":
		run := f.text("run_id")
		beyond := f.number("seq") > r.last+1 // kept beyond the others: the gap comes next, or comes again after a cut
		if known, again := r.finals[run]; again {
			require.True(r.t, beyond && known == f.text("content"), "a final comes once")
		}
		if r.finals[run] = f.text("content"); beyond {
			return
		}
	case "stream_delta":
		run := f.text("run_id")
		require.Len(r.t, r.texts[run], int(f.number("offset")), "no text is missing or twice") //nolint:gosec // small
		r.texts[run] += f.text("text")
	case "stream_snapshot":
		r.texts[f.text("run_id")] = f.text("text")
	case "stream_finalize":
		if r.gaps == 0 {
			require.Equal(r.t, r.texts[f.text("run_id")], f.text("text"))
		}
	}
	require.Equal(r.t, r.last+1, f.number("seq"), "%v", f)
	r.last = f.number("seq")
}

// TestAClientThatIsCutMissesAndRepeatsNothing is I11 as a client sees it, with cuts at random places (B79, B80, B89).
func TestAClientThatIsCutMissesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]int{"everything is kept": 1000, "little is kept": 7} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				s := start(t, func(set *settings) { set.session.Output.Keep = keep })
				r := &resumer{
					t: t, s: s, rnd: rand.New(rand.NewPCG(seed, 1)),
					texts: make(map[string]string), finals: make(map[string]string),
				}
				const turns = 12
				want := make(map[string]string)
				for n := range turns {
					var parts []string
					for i := range 1 + r.rnd.IntN(20) {
						parts = append(parts, fmt.Sprintf("%d.%d %s ", n, i, strings.Repeat("é", 1+r.rnd.IntN(150))))
					}
					s.model.Call(testkit.Stream(parts...))
					status, accepted, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi"}`)
					require.Equal(t, http.StatusAccepted, status)
					want[accepted.text("run_id")] = strings.Join(parts, "")
				}
				for n := 0; !r.session(turns); n++ {
					require.Less(t, n, 2000)
				}
				require.Equal(t, want, r.finals)
				if keep == 1000 {
					require.Zero(t, r.gaps)
					require.Equal(t, want, r.texts)
				}
			})
		}
	}
}
