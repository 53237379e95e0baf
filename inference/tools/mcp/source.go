// Package mcp offers the tools of servers that speak the Model Context Protocol, over the standard streams of a child process or over
// HTTP. A server is not trusted: what it says is bounded, it can neither replace a tool of somebody else nor see the environment of
// this process, and its end is noticed and answered by a new connection. Only its tools are used.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/messages"
)

// Server is where a server is found: either a command or a URL.
type Server struct {
	// Name prefixes the names of its tools, as in name__tool: 1 to 24 letters, digits, "-" and single "_".
	Name string
	// Command is started with Args and spoken to over its standard streams.
	Command string
	Args    []string
	// Env names the variables of this process that the command gets besides the usual ones (PATH, HOME and the like). It gets no
	// others: ours hold the keys of providers.
	Env []string
	// URL of a server that is there already, http or https.
	URL string
}

var serverName = regexp.MustCompile(`^[a-zA-Z0-9-](?:_?[a-zA-Z0-9-]){0,23}$`)

// Validate says what is wrong with s.
func (s Server) Validate() error {
	var problems []error
	if len(s.Name) > 24 || !serverName.MatchString(s.Name) {
		problems = append(problems, errors.New("its name is not 1 to 24 letters, digits, dashes and single underscores"))
	}
	if (s.Command == "") == (s.URL == "") {
		problems = append(problems, errors.New("it needs a command or a url, and not both"))
	}
	if s.URL != "" {
		at, err := url.Parse(s.URL)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			problems = append(problems, errors.New("its url is no http or https address"))
		}
		if len(s.Args) > 0 || len(s.Env) > 0 {
			problems = append(problems, errors.New("args and env belong to a command"))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("mcp server %q: %w", s.Name, errors.Join(problems...))
	}
	return nil
}

// Config of a Source. A zero field means its standard.
type Config struct {
	// Connect bounds the start of a server and the listing of its tools. 0 = 15 s.
	Connect time.Duration
	// MinPause and MaxPause are between attempts to connect. 0 = 500 ms and 30 s.
	MinPause, MaxPause time.Duration
	// Grace is how long a server may take to end before it is killed. 0 = 2 s.
	Grace time.Duration
}

func (c Config) orStandard() Config {
	for _, one := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.Connect, 15 * time.Second}, {&c.MinPause, 500 * time.Millisecond}, {&c.MaxPause, 30 * time.Second}, {&c.Grace, 2 * time.Second},
	} {
		if *one.field <= 0 {
			*one.field = one.standard
		}
	}
	return c
}

// Status tells how a server is doing.
type Status struct {
	Connected bool
	// Reason why it is not connected, safe to show.
	Reason string
	Tools  int
}

// Source offers the tools of one server and keeps the connection to it. While the server is away its tools stay offered, and calls of
// them fail with the reason: a list that flickers would confuse the models more. It is safe for concurrent use.
type Source struct {
	server Server
	config Config
	log    *slog.Logger
	cancel context.CancelFunc
	closed chan struct{}

	mu    sync.Mutex
	tools []*tools.Tool
	conn  *connection
	// reason why conn is nil.
	reason string
	// listed is closed when the first list is there.
	listed chan struct{}
}

var _ tools.Source = (*Source)(nil)

// Open makes a source and begins to connect; it does not wait for that, and a server that is not there is tried again. The source must
// be closed.
func Open(server Server, config Config, log *slog.Logger) (*Source, error) {
	if err := server.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Source{
		server: server, config: config.orStandard(), cancel: cancel, closed: make(chan struct{}), listed: make(chan struct{}),
		log: log.With(slog.String(messages.AttrComponent, "mcp"), slog.String(messages.AttrProvider, server.Name)), reason: "it is being connected",
	}
	go s.keep(ctx)
	return s, nil
}

// Name implements tools.Source.
func (s *Source) Name() string { return "mcp " + s.server.Name }

// Tools implements tools.Source.
func (s *Source) Tools() []*tools.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Status tells how the server is doing now.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Connected: s.conn != nil, Reason: s.reason, Tools: len(s.tools)}
}

// Ready waits until the tools were listed once, or ctx ends.
func (s *Source) Ready(ctx context.Context) error {
	select {
	case <-s.listed:
		return nil
	case <-s.closed:
		return fmt.Errorf("mcp server %q is closed", s.server.Name)
	case <-ctx.Done():
		return fmt.Errorf("mcp server %q is not ready, %s: %w", s.server.Name, s.Status().Reason, context.Cause(ctx))
	}
}

// Close ends the connection, and with it the calls that use it, and kills the process group of a command. It waits for that, or for ctx.
func (s *Source) Close(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close mcp server %q: %w", s.server.Name, context.Cause(ctx))
	}
}

// keep connects, and connects again when the connection is lost.
func (s *Source) keep(ctx context.Context) {
	defer close(s.closed)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = s.config.MinPause, s.config.MaxPause
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		// Every second attempt uses the older handshake: there are servers that do not answer what they do not know.
		err := s.once(ctx, attempt%2 == 1)
		if ctx.Err() != nil {
			break
		}
		// A server that comes up and dies at once is not one that works.
		if time.Since(began) > s.config.MaxPause {
			pause.Reset()
		}
		again := pause.NextBackOff()
		s.log.LogAttrs(ctx, slog.LevelWarn, "mcp server away",
			slog.String(messages.AttrReason, safe(err)), slog.Int64(messages.AttrDuration, again.Milliseconds()))
		s.away(safe(err)) // Also of a server that could not be connected.
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	s.away("it is closed")
}

// once holds one connection from its start to its end, and says why it ended.
func (s *Source) once(ctx context.Context, older bool) error {
	conn, err := s.connect(ctx, older)
	if err != nil {
		return err
	}
	err = s.hold(ctx, conn)
	// Before it is closed, which takes time: calls are to fail at once.
	s.away(safe(err))
	conn.close(s.config.Grace)
	return err
}

// hold keeps the list up to date for as long as the connection lasts.
func (s *Source) hold(ctx context.Context, conn *connection) error {
	for {
		if err := s.list(ctx, conn); err != nil {
			return err
		}
		select {
		case <-conn.changed:
		case <-conn.lost:
			return errLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var (
	errLost = errors.New("the connection was lost")
	errList = errors.New("its tools could not be listed")
)

// list takes over what the server offers now.
func (s *Source) list(ctx context.Context, conn *connection) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Connect)
	defer cancel()
	offers, err := conn.list(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errList, err)
	}
	list := s.toolsOf(offers)
	s.mu.Lock()
	first := s.conn == nil
	s.tools, s.conn, s.reason = list, conn, ""
	select {
	case <-s.listed:
	default:
		close(s.listed)
	}
	s.mu.Unlock()
	if first {
		s.log.LogAttrs(ctx, slog.LevelInfo, "mcp server connected", slog.Int(messages.AttrCount, len(list)))
	} else {
		s.log.LogAttrs(ctx, slog.LevelDebug, "mcp tools listed", slog.Int(messages.AttrCount, len(list)))
	}
	return nil
}

func (s *Source) away(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.reason = nil, reason
}

// connected gives the connection of now, or why there is none.
func (s *Source) connected() (*connection, *tools.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, s.unavailable(s.reason)
	}
	return s.conn, nil
}

func (s *Source) unavailable(reason string) *tools.Failure {
	return &tools.Failure{Type: tools.ErrorUnavailable, Message: fmt.Sprintf("the server %s is away: %s", s.server.Name, reason)}
}

// safe is what may be told of an error: its words come from a server, or name a command.
func safe(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(inference.Bound(tools.FailureOf("", err).Message, 200))
}
