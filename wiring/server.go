package wiring

import (
	"context"
	"errors"
	"net"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/gateway"
)

// Server is a process that does nothing but serve: the app of Options.
type Server struct {
	app     *fx.App
	gateway *gateway.Gateway
}

// NewServer opens the journal and makes all parts; options may decorate them. Errors: *StartError with the part that failed,
// what Config.Validate says.
func NewServer(cfg Config, options ...fx.Option) (*Server, error) {
	s := &Server{}
	s.app = fx.New(Options(cfg), fx.Populate(&s.gateway), fx.Options(options...))
	if err := s.app.Err(); err != nil {
		return nil, cause(err)
	}
	return s, nil
}

// Start begins to serve. Errors as of NewServer.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.StartTimeout())
	defer cancel()
	return cause(s.app.Start(ctx))
}

// Addr is the address that is served; valid after Start.
func (s *Server) Addr() net.Addr { return s.gateway.Addr() }

// Stop drains and stops in order, within StopTimeout.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.app.StopTimeout())
	defer cancel()
	return s.app.Stop(ctx)
}

// cause takes the part that failed out of fx's report of the graph.
func cause(err error) error {
	var part *StartError
	if errors.As(err, &part) {
		return part
	}
	return err
}
