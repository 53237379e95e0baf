package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10

	// closeWithin is how long a connection may take from the decision to close it to its end.
	closeWithin = 5 * time.Second
	// stopWithin is the same during shutdown.
	stopWithin = 2 * time.Second
)

// errStopped is the cause with which everything that waits inside the gateway ends.
var errStopped = errors.New("the gateway stops")

// Gateway serves clients.
type Gateway struct {
	config  Config
	deps    Deps
	log     *slog.Logger
	client  *actors.Client
	origins origins
	handler http.Handler
	server  *http.Server
	// http counts the connections of server.
	http atomic.Int64

	// base ends when Stop begins; waiting requests and streams live in it.
	base   context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	addr     net.Addr
	draining bool
	stopping bool
	sockets  map[*socket]struct{}
	// gone counts the connections that are not gone yet.
	gone sync.WaitGroup
	// serving is closed when the accept loop has ended; nil before Start.
	serving chan struct{}
}

// New makes a gateway that serves nothing yet. It wraps ErrNotLoopback for an address that other machines can reach.
func New(config Config, deps Deps) (*Gateway, error) {
	if deps.Kernel == nil || deps.Directory == nil || deps.Journal == nil || deps.Log == nil {
		return nil, errors.New("gateway: kernel, directory, journal and log are required")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{
		config:  config,
		deps:    deps,
		log:     deps.Log.With(slog.String(messages.AttrComponent, "gateway")),
		client:  actors.NewClient(deps.Kernel, deps.Directory, deps.Journal),
		origins: newOrigins(config.Origins),
		sockets: make(map[*socket]struct{}),
	}
	g.base, g.cancel = context.WithCancelCause(context.Background())
	g.handler = g.routes()
	g.server = &http.Server{
		Handler:           g.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         g.connection,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	return g, nil
}

// Handler gives the routes without a listener, for tests and for hosts that serve them themselves. Stop still closes its
// connections.
func (g *Gateway) Handler() http.Handler { return g.handler }

// Start listens and serves in the background.
func (g *Gateway) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", g.config.Listen)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	// localhost may be resolved to anything.
	if addr, err := netip.ParseAddrPort(listener.Addr().String()); err != nil || !addr.Addr().IsLoopback() {
		return errors.Join(fmt.Errorf("gateway: listen %q: %s: %w", g.config.Listen, listener.Addr(), ErrNotLoopback), listener.Close())
	}
	g.Serve(listener)
	g.log.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String(messages.AttrAddress, listener.Addr().String()))
	return nil
}

// Serve serves a listener in the background, once. The caller answers for who can reach it.
func (g *Gateway) Serve(listener net.Listener) {
	done := make(chan struct{})
	g.mu.Lock()
	g.addr, g.serving = listener.Addr(), done
	g.mu.Unlock()
	go func() {
		defer close(done)
		if err := g.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.LogAttrs(context.Background(), slog.LevelError, "serving ended", slog.Any(messages.AttrError, err))
		}
	}()
}

// Addr is the address that is served; nil before Start.
func (g *Gateway) Addr() net.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addr
}

// Drain makes /readyz say that no new work should be sent here. Everything is still served; that no turn is admitted any
// more is the sessions' word.
func (g *Gateway) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
}

// Stop takes no connections any more, sends what waits in the outboxes, closes the sockets with 1001 within two seconds, and
// then ends the server. When ctx ends first everything is cut and its cause is returned.
func (g *Gateway) Stop(ctx context.Context) error {
	g.mu.Lock()
	g.draining, g.stopping = true, true
	serving := g.serving
	// The farewell is behind everything that sessions have sent to the connection's actor.
	for s := range g.sockets {
		g.deps.Kernel.Tell(s.pid, farewell{})
	}
	g.mu.Unlock()
	g.cancel(errStopped)

	g.closeSockets(ctx)
	g.closeServer(ctx)
	if serving != nil {
		<-serving
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stop gateway: %w", context.Cause(ctx))
	}
	return nil
}

// closeServer waits for the requests that are being answered. All waiting has ended with base, so what takes longer has a
// client that does not read.
func (g *Gateway) closeServer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := g.server.Shutdown(ctx); err != nil {
		g.log.LogAttrs(ctx, slog.LevelWarn, "requests cut", slog.Any(messages.AttrError, errors.Join(err, g.server.Close())))
	}
}

// closeSockets waits until all connections are gone and cuts those that take too long.
func (g *Gateway) closeSockets(ctx context.Context) {
	gone := make(chan struct{})
	go func() {
		g.gone.Wait()
		close(gone)
	}()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-gone:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	for s := range g.sockets {
		s.cut()
	}
	g.mu.Unlock()
	<-gone
}

// adopt counts a connection in; false: the gateway stops.
func (g *Gateway) adopt(s *socket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return false
	}
	g.sockets[s] = struct{}{}
	g.gone.Add(1)
	return true
}

func (g *Gateway) release(s *socket) {
	g.mu.Lock()
	delete(g.sockets, s)
	g.mu.Unlock()
	g.gone.Done()
}

// refusing says why new work should go elsewhere; nil = it is welcome.
func (g *Gateway) refusing() *messages.Failure {
	g.mu.Lock()
	draining := g.draining
	g.mu.Unlock()
	if draining {
		return messages.FailRetryable(messages.CodeDraining, "the server is shutting down")
	}
	if err := g.deps.Journal.Healthy(); err != nil {
		return messages.FailRetryable(messages.CodeUnavailable, "the journal takes no records")
	}
	return nil
}

func (g *Gateway) isStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopping
}
