package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// events reads server-sent events as browsers do: by the lines of the standard, with nothing of the server's code.
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
	ctx, cancel := context.WithCancel(context.Background())
	resp := s.request(ctx, method, path, body, append(headers, "Accept", "text/event-stream")...)
	r := &sseReader{t: t, body: resp.Body, lines: bufio.NewReader(resp.Body), cancel: cancel}
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		r.close()
		require.FailNow(t, "no stream", "%s %s: %d %s", method, path, resp.StatusCode, data)
	}
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
	var name string
	var data []byte
	for {
		line, err := r.lines.ReadBytes('\n')
		if err != nil {
			return nil, "", err
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
			require.Equal(r.t, f.kind(), name)
			if id != "" {
				r.lastID = id
			}
			return f, id, nil
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
		if err == io.EOF {
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

func TestATurnIsStreamedToItsLastItem(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		all := s.dial()
		all.ask("subscribe", "session_id", "s1")
		turn := s.stream(t, http.MethodPost, "/v1/sessions/s1/turns", `{"id":"a","text":"hi"}`, "Idempotency-Key", "k1")
		accepted := turn.expect("turn_accepted")
		require.Equal(t, "a", accepted.text("id"))
		got := turn.rest()
		_, want := all.until("router_response")
		require.Equal(t, want, got, "the same items with the same numbers")
		require.Equal(t, strconv.FormatUint(got[len(got)-1].number("seq"), 10), turn.lastID)
		require.Equal(t, []string{
			"run_phase", "run_phase", "run_phase", "stream_delta", "stream_delta", "run_phase", "stream_finalize", "turn_state", "run_phase", "router_response",
		}, kinds(got)[len(got)-10:])
	})
}
