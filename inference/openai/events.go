package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/correx/correx-actors/inference"
)

const (
	doneMark = "[DONE]"
	// drainTime and drainBytes bound the wait for the end of a body whose answer is whole.
	drainTime  = 50 * time.Millisecond
	drainBytes = 64 << 10
)

// events is the body that the library reads: of a server's stream only the data, each event as one line that starts with
// "data: ". A failure that the stream reports ends it with an *inference.Error. Not safe for concurrent use; whoever holds
// it must close it.
type events struct {
	body io.ReadCloser
	feed *feed
	next func() (sse.Event, error, bool)
	stop func()
	// problem makes the error of what the server reports.
	problem func(problem) *inference.Error

	// line is the buffer of the current line, rest what has not been read of it.
	line, rest []byte
	err        error
	// done: the end mark has come.
	done bool
}

// newEvents reads body by the SSE standard. The parser pushes and the library pulls, hence iter.Pull: a coroutine, which
// runs only while Read waits for it.
func newEvents(body io.ReadCloser, limits Config, alive func() error, problem func(problem) *inference.Error) *events {
	f := &feed{body: body, alive: alive, left: limits.MaxBodyBytes}
	e := &events{body: body, feed: f, problem: problem}
	e.next, e.stop = iter.Pull2(iter.Seq2[sse.Event, error](sse.Read(f, &sse.ReadConfig{MaxEventSize: limits.MaxEventBytes})))
	return e
}

// Read implements io.Reader: at most one event at a time, so that nothing waits for the next.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.err = e.advance()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.stop()
	return e.body.Close()
}

// drain reads what follows the end mark, as a rule the last bytes of the transfer: only a body that was read to its end
// gives its connection back for the next call. A server that holds it open is given up by cancel.
func (e *events) drain(cancel func()) {
	e.stop()
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, e.body, drainBytes)
}

// advance makes the line of the next event; it may leave it empty.
func (e *events) advance() error {
	event, err, ok := e.next()
	if !ok {
		return e.ended(e.feed.err)
	}
	if err != nil {
		return e.ended(err)
	}
	data := strings.TrimSpace(event.Data)
	switch {
	case event.Type == "error":
		return e.problem(reported(data))
	case data == "":
		return nil
	case data == doneMark:
		e.done = true
	case strings.Contains(data, `"error"`):
		// Cheap: inside of a string of JSON the quotes would be escaped.
		if p, ok := problemIn([]byte(data)); ok {
			return e.problem(p)
		}
	}
	if e.feed.unterminated && data != doneMark && !json.Valid([]byte(data)) {
		return io.ErrUnexpectedEOF
	}
	e.feed.quiet = false
	e.line = append(e.line[:0], "data: "...)
	if strings.HasPrefix(data, `{"error"`) {
		// No error, as was seen above, but the library takes every line that starts so for one, and loses the next.
		e.line, data = append(e.line, "{ "...), data[1:]
	}
	e.line = append(append(e.line, data...), '\n')
	// Line ends between the tokens of JSON are as good as spaces, and inside of its strings they cannot be.
	if body := e.line[:len(e.line)-1]; bytes.IndexByte(body, '\n') >= 0 {
		copy(body, bytes.ReplaceAll(body, []byte{'\n'}, []byte{' '}))
	}
	e.rest = e.line
	return nil
}

// ended gives the error that ends the stream, io.EOF included.
func (e *events) ended(err error) error {
	if p, ok := problemIn(e.feed.stray); ok {
		return e.problem(p)
	}
	switch {
	case err == nil:
		return io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrTooLong):
		return errEventTooBig
	}
	return err
}

// errEventTooBig ends a stream that has an event above Config.MaxEventBytes.
var errEventTooBig = errors.New("an event of the stream exceeds its size limit")

// reported is what an event of type error says, in whatever form.
func reported(data string) problem {
	if p, ok := problemIn([]byte(data)); ok {
		return p
	}
	var object map[string]any
	if json.Unmarshal([]byte(data), &object) == nil {
		return problemOf(object)
	}
	var text string
	if json.Unmarshal([]byte(data), &text) == nil {
		return problem{message: text}
	}
	return problem{message: data}
}
