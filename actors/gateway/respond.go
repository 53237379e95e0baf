package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

const (
	// readBodyWithin bounds the wait for a request's body, writeWithin that for a client to take an answer, which may have to
	// wait for the body.
	readBodyWithin = 20 * time.Second
	writeWithin    = 30 * time.Second
	// answerWithin bounds the wait for a session.
	answerWithin = time.Minute
	// retryAfter is told to clients that may try again.
	retryAfter = "1"

	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
)

// respond writes a JSON answer.
func respond(w http.ResponseWriter, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // not all writers can
	h := w.Header()
	h.Set("Content-Type", typeJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

func respondOK(w http.ResponseWriter) { respond(w, http.StatusOK, []byte(`{"status":"ok"}`)) }

// respondFrame answers with what a WebSocket client would get as a frame.
func (g *Gateway) respondFrame(w http.ResponseWriter, status int, f protocol.ServerFrame) {
	body, err := protocol.Encode(f)
	g.respondEncoded(w, status, body, err)
}

func (g *Gateway) respondBody(w http.ResponseWriter, b protocol.Body) {
	body, err := protocol.EncodeBody(b)
	g.respondEncoded(w, http.StatusOK, body, err)
}

func (g *Gateway) respondEncoded(w http.ResponseWriter, status int, body []byte, err error) {
	if err != nil {
		g.log.LogAttrs(context.Background(), slog.LevelError, "answer does not encode", slog.Any(messages.AttrError, err))
		respondError(w, messages.Fail(messages.CodeInternal, "the answer does not encode"))
		return
	}
	respond(w, status, body)
}

// respondError answers with a failure in the envelope, under the status of its code.
func respondError(w http.ResponseWriter, f *messages.Failure) {
	respondStatus(w, protocol.HTTPStatus(f.GetCode()), f)
}

func respondStatus(w http.ResponseWriter, status int, f *messages.Failure) {
	respondRefusal(w, status, failureFrame("", messages.Key{}, f))
}

func respondRefusal(w http.ResponseWriter, status int, refusal *protocol.Error) {
	body, err := protocol.EncodeBody(refusal.Body())
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"","retryable":false}}`)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && refusal.Retryable {
		w.Header().Set("Retry-After", laterFor(refusal.Code, time.Now()))
	}
	respond(w, status, body)
}

// laterFor says after how many seconds another try makes sense.
func laterFor(code string, now time.Time) string {
	if code != protocol.CodeBudgetExceeded {
		return retryAfter
	}
	midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	return strconv.FormatInt(int64(midnight.Sub(now).Seconds())+1, 10)
}

// respondFailed answers with the error of a client call or of the journal.
func respondFailed(w http.ResponseWriter, err error) { respondError(w, journalFailure(err)) }

// readBody reads the whole body within its limits; false: the answer has been given.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	var body bytes.Buffer
	_, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, g.config.MaxBodyBytes))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // see limitBody
		return body.Bytes(), true
	}
	w.Header().Set("Connection", "close") // else the server waits for the rest
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		respondError(w, messages.Fail(messages.CodeInputTooLarge, fmt.Sprintf("the body is over %d bytes", tooLarge.Limit)))
	} else {
		respondError(w, messages.Fail(messages.CodeBadFrame, "the body cannot be read"))
	}
	return nil, false
}

// limitBody bounds the wait for a body, also for one that nobody reads: net/http waits for it before it answers.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readBodyWithin)) // not all readers can
	}
}

// pathKey gives the session of the path; false: the answer has been given.
func pathKey(w http.ResponseWriter, r *http.Request) (messages.Key, bool) {
	id := r.PathValue("id")
	if err := protocol.CheckSessionID(id); err != nil {
		respondError(w, messages.Fail(messages.CodeInvalidSessionID, err.Error()))
		return messages.Key{}, false
	}
	return sessionKey(id), true
}

// queryCount reads a number of the query; absent = otherwise.
func queryCount(r *http.Request, name string, otherwise, limit uint64) (uint64, *messages.Failure) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > limit {
		return 0, messages.Fail(messages.CodeInvalidField, fmt.Sprintf("%s is not a whole number from 0 to %d", name, limit))
	}
	return n, nil
}

// bounded is the context of a question to a session: it ends with the request, with the gateway, or when the answer takes
// too long.
func (g *Gateway) bounded(r *http.Request, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	stop := context.AfterFunc(g.base, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
