package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/persistence"
)

// Config says how clients are served. Begin with DefaultConfig.
type Config struct {
	// Listen is the address, "host:port"; only loopback hosts are served. Port 0 = any free one.
	Listen string
	// Origins are the web origins ("https://chat.example.com") beside the server's own whose pages may use it.
	Origins []string
	// MaxFrameBytes bounds a frame of a client; a longer one closes its connection with 1009.
	MaxFrameBytes int64
	// MaxBodyBytes bounds the body of an HTTP request.
	MaxBodyBytes int64
	// Heartbeat is the interval of control pings; a peer that is silent for two of them is gone.
	Heartbeat time.Duration
	// OutboxBytes and OutboxFrames bound what waits for one connection; one frame may exceed the bytes. At the limit the
	// connection is closed with 1013. Less than two of the longest answers would close connections that are not slow.
	OutboxBytes  int
	OutboxFrames int
	// MaxInFlight bounds the frames of one connection whose answers it has not got; beyond it the server stops reading.
	MaxInFlight int
	// MaxSubscriptions bounds the sessions that one connection follows; beyond it they are refused with rate_limited.
	MaxSubscriptions int
	// Version and Node are told to clients in the hello frame.
	Version string
	Node    string
}

// DefaultConfig gives the documented defaults.
func DefaultConfig() Config {
	return Config{
		Listen:           "127.0.0.1:7711",
		MaxFrameBytes:    64 << 10,
		MaxBodyBytes:     1 << 20,
		Heartbeat:        30 * time.Second,
		OutboxBytes:      8 << 20,
		OutboxFrames:     4096,
		MaxInFlight:      256,
		MaxSubscriptions: 1000,
		Version:          "dev",
	}
}

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	errs := []error{checkListen(c.Listen)}
	for _, origin := range c.Origins {
		if _, err := parseOrigin(origin); err != nil {
			errs = append(errs, fmt.Errorf("origins: %w", err))
		}
	}
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"limits.max_frame_bytes", c.MaxFrameBytes},
		{"the limit of HTTP bodies", c.MaxBodyBytes},
		{"the heartbeat", int64(c.Heartbeat)},
		{"the outbox's limit in bytes", int64(c.OutboxBytes)},
		{"the outbox's limit in frames", int64(c.OutboxFrames)},
		{"the limit of frames in flight", int64(c.MaxInFlight)},
		{"the limit of subscriptions", int64(c.MaxSubscriptions)},
	} {
		if limit.value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want more than 0", limit.name, limit.value))
		}
	}
	return errors.Join(errs...)
}

// Deps is what the gateway is made with.
type Deps struct {
	Kernel    *kernel.System
	Directory *directory.Directory
	Journal   persistence.Journal
	Log       *slog.Logger
	// Metrics serves GET /metrics; nil = the route does not exist.
	Metrics http.Handler
}

// ErrNotLoopback is wrapped when the address to listen on can be reached from other machines.
var ErrNotLoopback = errors.New("not a loopback address, and there is no authentication yet")

// checkListen refuses addresses that others could reach.
func checkListen(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen %q: %w", listen, err)
	}
	if host == localhost {
		return nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.IsLoopback() {
		return fmt.Errorf("listen %q: %w; use 127.0.0.1, [::1] or localhost", listen, ErrNotLoopback)
	}
	return nil
}

// parseOrigin reads "scheme://host[:port]".
func parseOrigin(origin string) (*url.URL, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", origin, err)
	}
	if u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return nil, fmt.Errorf("%q is not scheme://host[:port]", origin)
	}
	return u, nil
}
