package llmserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is an entry of the journal.
type Request struct {
	Header http.Header
	Path   string
	// Remote is the client's address: the same for requests on one connection.
	Remote string
	Body   []byte
	Chat   Chat
	// Asked is what a request to the responses endpoint says; nil = it went to the other one.
	Asked *Asked
	// Arrived is when its body was here.
	Arrived time.Time
	// Gone is closed when the client has gone away before its answer was whole, Done when the request is over.
	Gone <-chan struct{}
	Done <-chan struct{}

	outcome Outcome
}

// Outcome is how a request ended.
type Outcome struct {
	// Quirk that was sent; "" = an answer of the script.
	Quirk string
	// Status that was sent.
	Status int
	// Bytes of the body that were written.
	Bytes int64
	// Gone: the client closed before its answer was whole; At is when that was seen, or when the answer was out.
	Gone bool
	At   time.Time
}

// Outcome tells how the request ended; ok is false while it goes on.
func (r *Request) Outcome() (outcome Outcome, ok bool) {
	select {
	case <-r.Done:
		return r.outcome, true
	default:
		return Outcome{}, false
	}
}

// requests is the journal: the newest keep requests, 0 = all.
type requests struct {
	keep int

	mu      sync.Mutex
	list    []*Request
	dropped int
	arrived chan struct{}
}

// add gives the number of the request, from 1.
func (j *requests) add(request *Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, request)
	if j.keep > 0 && len(j.list) > j.keep {
		j.list = slices.Delete(j.list, 0, 1)
		j.dropped++
	}
	close(j.arrived)
	j.arrived = make(chan struct{})
	return j.dropped + len(j.list)
}

// Requests gives the journal so far, the oldest request first.
func (s *Server) Requests() []*Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return slices.Clone(s.requests.list)
}

// Await gives request number n, from 1, once it is there. One that is no longer kept is an error.
func (s *Server) Await(ctx context.Context, n int) (*Request, error) {
	if n < 1 {
		return nil, fmt.Errorf("await request %d: requests are counted from 1", n)
	}
	j := &s.requests
	for {
		j.mu.Lock()
		list, dropped, arrived := j.list, j.dropped, j.arrived
		j.mu.Unlock()
		switch {
		case n <= dropped:
			return nil, fmt.Errorf("await request %d: only the newest %d are kept", n, j.keep)
		case n-dropped <= len(list):
			return list[n-dropped-1], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("await request %d: %w", n, context.Cause(ctx))
		}
	}
}
