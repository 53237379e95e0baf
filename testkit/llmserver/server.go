// Package llmserver is a fake OpenAI-compatible server for tests: it answers chat completions and responses from a script, misbehaves in
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

// Config of a server; the zero value is one that echoes.
type Config struct {
	// Script is one answer after the other, the last one for ever; none: the newest message is echoed.
	Script []Answer
	// Key that requests must bring as a bearer token, else they are refused with 401; "" = none is asked for.
	Key string
	// Models that are served, others are refused with 404; nil = all.
	Models []string
	// Keep is how many requests the journal holds, the newest; 0 = all.
	Keep int
	// Observe, if set, is told of each chat completion request when it is over, on the request's own goroutine.
	Observe func(*Request, Outcome)
}

// Server answers requests in the order of its script. Safe for concurrent use.
type Server struct {
	config   Config
	requests requests

	keeping sync.Mutex
	// kept are the conversations of the responses endpoint by their newest response.
	kept map[string][]Message
}

// New makes a server that gives one answer after the other, the last one for ever. Without answers it echoes the newest
// message. A request for a model named "quirk/NAME" gets that quirk instead.
func New(script ...Answer) *Server { return NewServer(Config{Script: script}) }

// NewServer makes a server as configured.
func NewServer(c Config) *Server {
	c.Script, c.Models = slices.Clone(c.Script), slices.Clone(c.Models)
	if len(c.Script) == 0 {
		c.Script = []Answer{{Echo: true}}
	}
	return &Server{config: c, requests: requests{keep: c.Keep, arrived: make(chan struct{})}}
}

// Message is one of a request's messages; of a content in parts it has the texts.
type Message struct{ Role, Content string }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(data []byte) error {
	var raw struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = Message{Role: raw.Role}
	var parts []struct {
		Text string `json:"text"`
	}
	// A content of another shape has no text.
	if json.Unmarshal(raw.Content, &m.Content) != nil && json.Unmarshal(raw.Content, &parts) == nil {
		for _, part := range parts {
			m.Content += part.Text
		}
	}
	return nil
}

// Chat is what matters of a chat completion request.
type Chat struct {
	Model               string    `json:"model"`
	Messages            []Message `json:"messages"`
	Stream              bool      `json:"stream"`
	MaxTokens           int       `json:"max_tokens"`
	MaxCompletionTokens int       `json:"max_completion_tokens"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools      []Tool          `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
}

// Start serves on a free port of 127.0.0.1. The URL is the base URL for clients; stop closes all connections.
func (s *Server) Start() (url string, stop func(), err error) { return s.Listen("127.0.0.1:0") }

// Listen serves on an address. The URL is the base URL for clients; stop closes all connections.
func (s *Server) Listen(address string) (url string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
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
	if s.config.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.config.Key {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided")
		return
	}
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.models())
		return
	}
	responding := strings.HasSuffix(r.URL.Path, "/responses")
	if r.Method != http.MethodPost || !responding && !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		refuse(w, http.StatusNotFound, "unknown_url", "this server knows POST …/chat/completions, POST …/responses and GET …/models only")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "request_too_large", "the request is too large")
		return
	}
	var chat Chat
	var asked *Asked
	if responding {
		asked = new(Asked)
		err = json.Unmarshal(body, asked)
		chat = asked.chat()
	} else {
		err = json.Unmarshal(body, &chat)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "the request is no JSON")
		return
	}
	s.answer(w, r, &Request{Body: body, Chat: chat, Asked: asked})
}

// answer notes a request and plays its answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, request *Request) {
	gone, done, chat := make(chan struct{}), make(chan struct{}), request.Chat
	request.Header, request.Path, request.Remote = r.Header.Clone(), r.URL.Path, r.RemoteAddr
	request.Arrived, request.Gone, request.Done = time.Now(), gone, done
	n := s.requests.add(request)
	answer := s.config.Script[min(n, len(s.config.Script))-1]
	if name, ok := strings.CutPrefix(chat.Model, QuirkModel); ok {
		answer = Answer{Quirk: name}
	}
	var response Response
	if request.Asked != nil {
		response = s.respond(*request.Asked, answer, n)
	} else {
		response = answer.response(chat)
	}
	if !s.serves(chat.Model) && answer.Quirk == "" {
		response = sends(http.StatusNotFound, jsonType, errorJSON("model_not_found", "The model does not exist"))
	}
	sent, err := play(r.Context(), w, response)
	request.outcome = Outcome{Quirk: answer.Quirk, Status: sent.status, Bytes: sent.bytes, At: time.Now(), Gone: err != nil && !errors.Is(err, errCut)}
	if request.outcome.Gone {
		close(gone)
	}
	close(done)
	if s.config.Observe != nil {
		s.config.Observe(request, request.outcome)
	}
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) serves(model string) bool {
	return len(s.config.Models) == 0 || slices.Contains(s.config.Models, model)
}

func (s *Server) models() string {
	names := s.config.Models
	if len(names) == 0 {
		names = []string{Model}
	}
	list := make([]string, 0, len(names))
	for _, name := range names {
		list = append(list, `{"id":`+quote(name)+`,"object":"model"}`)
	}
	return `{"object":"list","data":[` + strings.Join(list, ",") + `]}`
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
