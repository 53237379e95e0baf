package kernel

import "sync"

// throughput is the number of messages after which a mailbox lets other goroutines run.
const throughput = 300

// pool is an actor.Dispatcher that reuses goroutines, newest first: their stacks have grown already, and copying stacks is
// what a fresh goroutine per activation spends most of its time on.
type pool struct {
	maxIdle int

	mu      sync.Mutex
	idle    []chan func() // guarded by mu; the last one became idle last
	workers int           // guarded by mu; all goroutines, idle or not
	closed  bool          // guarded by mu
	empty   chan struct{} // closed when the pool is closed and has no workers
}

func newPool(maxIdle int) *pool {
	return &pool{maxIdle: maxIdle, empty: make(chan struct{})}
}

// Throughput implements actor.Dispatcher.
func (*pool) Throughput() int { return throughput }

// Schedule runs fn on a worker. It never blocks. After Close it still works, on goroutines that end with fn.
func (p *pool) Schedule(fn func()) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		worker := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		worker <- fn
		return
	}
	p.workers++
	p.mu.Unlock()
	go p.work(fn)
}

// Close lets idle workers end now and busy ones when they are done. The channel it returns is closed when none is left;
// it stays open as long as an actor blocks.
func (p *pool) Close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		for _, worker := range p.idle {
			close(worker)
		}
		p.idle = nil
		p.signalEmpty()
	}
	return p.empty
}

func (p *pool) work(fn func()) {
	defer p.leave() // deferred, because fn may end the goroutine with runtime.Goexit
	jobs := make(chan func(), 1)
	for {
		fn()
		if !p.rest(jobs) {
			return
		}
		next, ok := <-jobs
		if !ok {
			return
		}
		fn = next
	}
}

func (p *pool) rest(jobs chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.maxIdle {
		return false
	}
	p.idle = append(p.idle, jobs)
	return true
}

func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers--
	p.signalEmpty()
}

// signalEmpty needs mu. A closed pool may become empty more than once, as late messages still run.
func (p *pool) signalEmpty() {
	if !p.closed || p.workers > 0 {
		return
	}
	select {
	case <-p.empty:
	default:
		close(p.empty)
	}
}
