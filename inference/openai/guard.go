package openai

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

const (
	// maxErrorBytes bounds what is read of the body of a refusal.
	maxErrorBytes = 64 << 10
	// maxRetryAfter bounds what a server may ask for: nobody waits for longer, and a date may be far off.
	maxRetryAfter = 24 * time.Hour
)

// guard is the HTTP doer of one call. Its answer is a stream in canonical form or an error; each error is an
// *inference.Error. Not safe for concurrent use.
type guard struct {
	config Config
	// alive is told of bytes without an event.
	alive func() error
	// answer turns an answer in one document into a stream; false = it is none.
	answer func(data []byte) (string, bool)
	// resume is the token that the request brings.
	resume string
	header http.Header
	status int
	events *events
}

// Do implements the library's HTTPDoer.
func (g *guard) Do(req *http.Request) (*http.Response, error) {
	resp, err := g.config.HTTPClient.Do(req)
	if err != nil {
		return nil, g.unreachable(err)
	}
	g.header, g.status = resp.Header, resp.StatusCode
	if g.config.Observe != nil {
		g.config.Observe(req.Context(), g.config.responseOf(g.status, g.header))
	}
	body := resp.Body
	resp.Body = nil
	if g.status < http.StatusOK || g.status >= http.StatusMultipleChoices {
		return nil, g.refused(body)
	}
	stream, err := g.stream(body)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	g.events = newEvents(stream, g.config, g.alive, g.problem)
	resp.Body = g.events
	return resp, nil
}

// received is how many bytes of a stream have come. It may be called on a nil guard.
func (g *guard) received() int64 {
	if g == nil || g.events == nil {
		return 0
	}
	return g.events.feed.count
}

// done says whether the stream's end mark has come.
func (g *guard) done() bool { return g.events != nil && g.events.done }

// stream gives body if it is a stream of events, and turns an answer in one document into one. The document is taken as
// an answer, not refused: there are servers and proxies that ignore "stream", and what they send is whole, which no retry
// would improve.
func (g *guard) stream(body io.ReadCloser) (io.ReadCloser, error) {
	if g.status == http.StatusNoContent || g.status == http.StatusResetContent {
		return nil, g.fault(inference.KindTruncated, "an answer without content")
	}
	if encoding := g.config.encoded(g.header); encoding != "" {
		return nil, g.fault(inference.KindProvider, "a body in the encoding %s, which was not asked for", encoding)
	}
	kind, _, _ := mime.ParseMediaType(g.header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		return body, nil
	case "text/html", "application/xhtml+xml":
		return nil, g.notStream(kind)
	}
	// All other types are taken for what they hold: some servers send events as text/plain or without a type.
	reader := bufio.NewReader(body)
	first, err := firstByte(reader)
	switch {
	case err != nil:
		return nil, g.cut(err)
	case first == '{':
		document, err := g.document(reader)
		if err != nil {
			return nil, err
		}
		return wrapped{Reader: document, Closer: body}, nil
	case first == ':' || fieldStart(first):
		return wrapped{Reader: reader, Closer: body}, nil
	}
	return nil, g.notStream(kind)
}

// wrapped reads from one thing and closes another.
type wrapped struct {
	io.Reader
	io.Closer
}

// firstByte peeks at the first byte that is neither white space nor of a byte order mark.
func firstByte(reader *bufio.Reader) (byte, error) {
	for {
		c, err := reader.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
		default:
			return c, reader.UnreadByte()
		}
	}
}

// document turns an answer in one JSON document into a stream of one event.
func (g *guard) document(reader io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(io.LimitReader(reader, int64(g.config.MaxEventBytes)+1))
	if err != nil {
		return nil, g.cut(err)
	}
	if len(data) > g.config.MaxEventBytes {
		return nil, g.fault(inference.KindProvider, "an answer above %d bytes", g.config.MaxEventBytes)
	}
	if p, ok := problemIn(data); ok {
		return nil, g.problem(p)
	}
	if !json.Valid(data) {
		return nil, g.cut(io.ErrUnexpectedEOF)
	}
	stream, ok := g.answer(data)
	if !ok {
		return nil, g.fault(inference.KindProvider, "a JSON document that is no answer")
	}
	return strings.NewReader(stream), nil
}

// chatDocument gives a chat completion as the one event of a stream.
func chatDocument(data []byte) (string, bool) {
	var answer struct {
		Choices *[]json.RawMessage `json:"choices"`
	}
	line := bytes.NewBufferString("data: ")
	if json.Unmarshal(data, &answer) != nil || answer.Choices == nil || json.Compact(line, data) != nil {
		return "", false
	}
	return line.String() + "\n\ndata: " + doneMark + "\n\n", true
}

// refused reads what a server says with a status that is no success.
func (g *guard) refused(body io.ReadCloser) error {
	defer func() { _ = body.Close() }()
	data, _ := io.ReadAll(io.LimitReader(body, maxErrorBytes))
	p, ok := problemIn(data)
	var object map[string]any
	switch {
	case ok:
	case json.Unmarshal(data, &object) == nil:
		p = problemOf(object)
	case strings.Contains(g.header.Get("Content-Type"), "html") || bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		p.message = "an HTML page"
	default:
		p.message = string(data)
	}
	if location := g.header.Get("Location"); location != "" && g.status < http.StatusBadRequest {
		p.message = "the base URL is redirected to " + location
	}
	return g.problem(p)
}

// problem makes the error of what the server says.
func (g *guard) problem(p problem) *inference.Error {
	message := p.String()
	if message == "" {
		message = "an error without a text"
	}
	err := g.fault(kindOf(g.status, p), "")
	err.Message = g.config.clean(message)
	if p.status != 0 {
		err.Status = p.status
	}
	if g.resume != "" && p.unknownResume(err.Status, g.resume) {
		err.Kind, err.Err = inference.KindBadRequest, inference.ErrUnknownResume
	}
	return err
}

func (g *guard) notStream(kind string) *inference.Error {
	if kind == "" {
		kind = "something"
	}
	return g.fault(inference.KindProvider, "the server sent %s, not a stream of events; is the base URL right?", kind)
}

func (g *guard) cut(cause error) *inference.Error {
	err := g.fault(inference.KindTruncated, "the answer ended before it was whole")
	err.Err = cause
	return err
}

// fault makes an error with what the headers tell.
func (g *guard) fault(kind inference.Kind, format string, args ...any) *inference.Error {
	err := fault(kind, g.config.Name, format, args...)
	err.Message = g.config.clean(err.Message)
	err.Status, err.RetryAfter, err.RequestID = g.status, retryAfter(g.header), g.config.requestID(g.header)
	return err
}

// unreachable makes the error of a call that got no answer.
func (g *guard) unreachable(cause error) *inference.Error {
	kind, limit := inference.KindUnavailable, inference.Limit("")
	var (
		timeout     net.Error
		operation   *net.OpError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(cause, &certificate):
		kind = inference.KindConfig
	case errors.As(cause, &timeout) && timeout.Timeout():
		kind = inference.KindTimeout
		if errors.As(cause, &operation) && operation.Op == "dial" {
			limit = inference.LimitConnect
		}
	}
	return &inference.Error{
		Kind: kind, Limit: limit, Provider: g.config.Name, Message: g.config.clean(cause.Error()), Err: cause,
	}
}

func (c Config) requestID(header http.Header) string {
	for _, key := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "Cf-Ray"} {
		if id := header.Get(key); id != "" {
			return inference.Bound(c.clean(id), 128)
		}
	}
	return ""
}

// retryAfter reads the header in its three forms: milliseconds, seconds, a date.
func retryAfter(header http.Header) time.Duration {
	var wait time.Duration
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		wait = seconds(ms / 1000)
	} else if s, err := strconv.ParseFloat(header.Get("Retry-After"), 64); err == nil {
		wait = seconds(s)
	} else if date, err := http.ParseTime(header.Get("Retry-After")); err == nil {
		wait = time.Until(date)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// seconds converts without overflow; what is no number of seconds is none.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
}
