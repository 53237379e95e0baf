// Package client speaks to a running server: HTTP for questions, a WebSocket for conversations. Talk keeps a conversation
// going over connections that come and go.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

const (
	// answerWithin bounds one question over HTTP.
	answerWithin = 30 * time.Second
	maxBodyBytes = 64 << 20
)

// Client talks to one server. Safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// UnreachableError means that there is no server, or that the connection to it was lost.
type UnreachableError struct {
	Server string
	Err    error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot reach the server at %s: %v", e.Server, e.Err)
}

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// New makes a client of the server at an http or https URL. Token, if not empty, is sent with every request.
func New(server, token string) (*Client, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("server %q is not an http or https URL", server)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	return &Client{base: base, token: token, http: &http.Client{}}, nil
}

// Server is the URL of the server.
func (c *Client) Server() string { return c.base.String() }

// Sessions lists sessions after an id, "" = from the first. Limit 0 = as many as the server likes.
func (c *Client) Sessions(ctx context.Context, state, after string, limit int) (*protocol.SessionsPage, error) {
	query := url.Values{}
	if state != "" {
		query.Set("state", state)
	}
	if after != "" {
		query.Set("after", after)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var page protocol.SessionsPage
	return &page, c.get(ctx, &page, query, "sessions")
}

// Session gives a session's state.
func (c *Client) Session(ctx context.Context, id string) (*protocol.State, error) {
	var answer protocol.Session
	if err := c.get(ctx, &answer, nil, "sessions", id); err != nil {
		return nil, err
	}
	if answer.State == nil {
		return nil, fmt.Errorf("state of session %s: the server's answer holds none", id)
	}
	return answer.State, nil
}

// Context explains the context pack that a turn would get now.
func (c *Client) Context(ctx context.Context, id string) (*protocol.ContextPack, error) {
	var pack protocol.ContextPack
	return &pack, c.get(ctx, &pack, nil, "sessions", id, "context")
}

// Events reads a page of a session's event log after a sequence.
func (c *Client) Events(ctx context.Context, id string, after uint64, limit int) (*protocol.EventsPage, error) {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(limit)}}
	var page protocol.EventsPage
	return &page, c.get(ctx, &page, query, "sessions", id, "events")
}

// Ask sends one frame on a connection of its own and gives the direct answer. Errors: *UnreachableError, *protocol.Error.
func (c *Client) Ask(ctx context.Context, frame protocol.ClientFrame) (protocol.ServerFrame, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Ask(ctx, frame)
}

// Record appends events to a session's log, all or none, if its last sequence is expected.
func (c *Client) Record(
	ctx context.Context, id string, events []json.RawMessage, expected uint64,
) (*protocol.EventsRecorded, error) {
	// The frame's encoder keeps the spelling of what is in the events.
	body, err := protocol.EncodeClient(&protocol.RecordEvents{Events: events, ExpectedSequence: &expected})
	if err != nil {
		return nil, fmt.Errorf("write events: %w", err)
	}
	var answer protocol.EventsRecorded
	return &answer, c.do(ctx, http.MethodPost, body, &answer, nil, "sessions", id, "events")
}

func (c *Client) get(ctx context.Context, answer any, query url.Values, path ...string) error {
	return c.do(ctx, http.MethodGet, nil, answer, query, path...)
}

func (c *Client) do(ctx context.Context, method string, body []byte, answer any, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	u := *c.base.JoinPath(append([]string{"v1"}, escaped(path)...)...)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", u.Path, err)
	}
	req.Header = c.header()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, got)
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("ask %s: read answer: %w", u.Path, err)
	}
	return nil
}

// escaped keeps ids that hold dots from being taken for steps of a path.
func escaped(path []string) []string {
	out := make([]string, len(path))
	for i, p := range path {
		out[i] = url.PathEscape(p)
	}
	return out
}

func (c *Client) header() http.Header {
	h := make(http.Header)
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	return h
}

// unreachable keeps the caller's own cancellation apart.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // a cause is compared as it is
		return context.Cause(ctx)
	}
	return &UnreachableError{Server: c.Server(), Err: plain(err)}
}

// refusal reads an answer that refuses; one that is no JSON came from something else.
func refusal(resp *http.Response, body []byte) error {
	var answer protocol.ErrorBody
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error.Code == "" {
		return fmt.Errorf("%s answered %s: is this a correx-actors server?", resp.Request.URL.Redacted(), resp.Status)
	}
	return &protocol.Error{Code: answer.Error.Code, Message: answer.Error.Message, Retryable: answer.Error.Retryable}
}
