package wiring_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// floor is the least that a durable turn costs with the same libraries and nothing of ours: a WebSocket frame in, one group
// commit of the message, a streamed call, a frame out for each delta, one group commit of the answer, a last frame.
type floor struct {
	commits *committer
	client  *openai.Client
	model   string
}

// startFloor serves the floor and gives its WebSocket URL.
func startFloor(b *testing.B, provider string) string {
	b.Helper()
	config := openai.DefaultConfig("none")
	config.BaseURL = provider
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	config.HTTPClient = &http.Client{Transport: transport}
	f := &floor{commits: startCommitter(b), client: openai.NewClientWithConfig(config), model: "fake-1"}
	server := httptest.NewServer(f)
	b.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// ServeHTTP implements http.Handler.
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // the client has gone
	session := r.URL.Query().Get("session")
	for {
		_, frame, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if err := f.turn(r.Context(), conn, session, frame); err != nil {
			return
		}
	}
}

func (f *floor) turn(ctx context.Context, conn *websocket.Conn, session string, frame []byte) error {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(frame, &in); err != nil {
		return err
	}
	f.commits.append(session, frame)
	stream, err := f.client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: f.model, Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages: []openai.ChatCompletionMessage{{Role: "user", Content: in.Text}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	var answer strings.Builder
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		answer.WriteString(chunk.Choices[0].Delta.Content)
		if err := write(ctx, conn, "stream_delta", chunk.Choices[0].Delta.Content); err != nil {
			return err
		}
	}
	f.commits.append(session, []byte(answer.String()))
	return write(ctx, conn, "router_response", answer.String())
}

func write(ctx context.Context, conn *websocket.Conn, kind, text string) error {
	frame, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{kind, text})
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, frame)
}

// committer is a bare single-writer group commit on bbolt.
type committer struct {
	db   *bbolt.DB
	mu   sync.Mutex
	wait []commit
	wake chan struct{}
	seq  uint64
}

type commit struct {
	session string
	value   []byte
	done    chan struct{}
}

func startCommitter(b *testing.B) *committer {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "floor.db"), 0o600, &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30,
	})
	require.NoError(b, err)
	require.NoError(b, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("records"))
		return err
	}))
	c := &committer{db: db, wake: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run()
	}()
	b.Cleanup(func() {
		close(c.wake)
		<-ended
		require.NoError(b, db.Close())
	})
	return c
}

func (c *committer) append(session string, value []byte) {
	done := make(chan struct{})
	c.mu.Lock()
	c.wait = append(c.wait, commit{session: session, value: value, done: done})
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	<-done
}

func (c *committer) run() {
	for range c.wake {
		for range 4 {
			runtime.Gosched()
		}
		c.mu.Lock()
		batch := c.wait
		c.wait = nil
		c.mu.Unlock()
		err := c.db.Update(func(tx *bbolt.Tx) error {
			records := tx.Bucket([]byte("records"))
			for _, op := range batch {
				c.seq++
				if err := records.Put(binary.BigEndian.AppendUint64([]byte(op.session), c.seq), op.value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			panic(fmt.Sprintf("floor: %v", err))
		}
		for _, op := range batch {
			close(op.done)
		}
	}
}
