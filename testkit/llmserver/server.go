// Package llmserver is a fake OpenAI-compatible server for tests: it answers chat completions from a script, misbehaves in
// every way of its catalogue of quirks, and keeps a journal of what it was asked and whether the client went away. It does
// not import testing, so that a command can serve it too.
package llmserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// QuirkModel as the prefix of a requested model's name asks for a quirk of the catalogue: "quirk/cut".
const QuirkModel = "quirk/"

// maxRequest bounds the body of a request.
const maxRequest = 16 << 20

// Server answers requests in the order of its script. Safe for concurrent use.
type Server struct {
	script []Answer

	mu       sync.Mutex
	requests []*Request
	arrived  chan struct{}
}

// New makes a server that gives one answer after the other, the last one for ever. Without answers it echoes the newest
// message. A request for a model named "quirk/NAME" gets that quirk instead.
func New(script ...Answer) *Server {
	return &Server{script: slices.Clone(script), arrived: make(chan struct{})}
}

// Request is an entry of the journal.
type Request struct {
	Header http.Header
	Path   string
	// Remote is the client's address: the same for requests on one connection.
	Remote string
	Body   []byte
	Chat   Chat
	// Gone is closed when the client has gone away before its answer was whole, Done when the request is over.
	Gone <-chan struct{}
	Done <-chan struct{}
}

// Chat is what matters of a chat completion request.
type Chat struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Stream              bool `json:"stream"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Requests gives the journal so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await gives request number n, from 1, once it is there.
func (s *Server) Await(ctx context.Context, n int) (*Request, error) {
	if n < 1 {
		return nil, fmt.Errorf("await request %d: requests are counted from 1", n)
	}
	for {
		s.mu.Lock()
		requests, arrived := s.requests, s.arrived
		s.mu.Unlock()
		if len(requests) >= n {
			return requests[n-1], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("await request %d: %w", n, context.Cause(ctx))
		}
	}
}

// Start serves on a free port of 127.0.0.1. The URL is the base URL for clients; stop closes all connections.
func (s *Server) Start() (url string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the fake provider: %w", err)
	}
	return "http://" + listener.Addr().String() + "/v1", s.serve(listener), nil
}

// Pipe serves without a network, so that it also works in a bubble of testing/synctest. The base URL for the client is
// PipeURL; stop closes all connections.
func (s *Server) Pipe() (client *http.Client, stop func()) {
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: listener.dial, DisableCompression: true}
	stopServing := s.serve(listener)
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		stopServing()
	}
}

// PipeURL is the base URL for clients of Pipe.
const PipeURL = "http://fake.invalid/v1"

func (s *Server) serve(listener net.Listener) (stop func()) {
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"`+Model+`","object":"model"}]}`)
		return
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		refuse(w, http.StatusNotFound, "unknown_url", "this server knows POST …/chat/completions and GET …/models only")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "request_too_large", "the request is too large")
		return
	}
	var chat Chat
	if err := json.Unmarshal(body, &chat); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "the request is no JSON")
		return
	}
	gone, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	answer := s.note(&Request{
		Header: r.Header.Clone(), Path: r.URL.Path, Remote: r.RemoteAddr, Body: body, Chat: chat, Gone: gone, Done: done,
	})
	if err := play(r.Context(), w, answer.response(chat)); errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	} else if err != nil {
		close(gone)
	}
}

// note writes the journal and gives the answer of the script.
func (s *Server) note(request *Request) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	close(s.arrived)
	s.arrived = make(chan struct{})
	if name, ok := strings.CutPrefix(request.Chat.Model, QuirkModel); ok {
		return Answer{Quirk: name}
	}
	if len(s.script) == 0 {
		return echo(request.Chat)
	}
	return s.script[min(len(s.requests), len(s.script))-1]
}

func echo(chat Chat) Answer {
	said := ""
	if len(chat.Messages) > 0 {
		said = chat.Messages[len(chat.Messages)-1].Content
	}
	return Answer{Deltas: strings.SplitAfter("You said: "+said, " "), Usage: &Usage{Input: len(said)/4 + 1, Output: len(said)/4 + 3}}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, errorJSON(code, message))
}

// errorJSON is an error in OpenAI's form.
func errorJSON(code, message string) string {
	return fmt.Sprintf(`{"error":{"message":%s,"type":"error","code":%s}}`, quote(message), quote(code))
}

// quote gives text as JSON.
func quote(text string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // A string cannot fail.
	return string(quoted)
}
