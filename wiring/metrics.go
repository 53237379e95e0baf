package wiring

import (
	"context"
	"errors"
	"runtime"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/inference/telemetry"
	"github.com/correx/correx-actors/persistence"
)

// Labels of the runtime's metrics. None may ever name a session, a turn or a run.
const (
	labelState   = attribute.Key("state")
	labelVersion = attribute.Key("version")
	labelGo      = attribute.Key("go")
)

// breakerStates are all states: each is a series, so that one that is over reads 0 and does not linger.
var breakerStates = []route.State{route.StateClosed, route.StateOpen, route.StateTrying}

// runtimeParts are what the metrics of the runtime are read from. Reading asks no actor.
type runtimeParts struct {
	fx.In

	Config    Config
	Meters    metric.MeterProvider
	Slots     *slots.Slots
	Directory *directory.Directory
	Journal   persistence.Journal
	Routes    *route.Router
	Gateway   *gateway.Gateway
}

// observe registers the metrics of the runtime: they are read when somebody asks.
func observe(p runtimeParts) error {
	g := gauges{meter: p.Meters.Meter("github.com/correx/correx-actors/wiring")}
	read := []func(context.Context, metric.Observer){
		p.build(&g), p.runs(&g), p.sessions(&g), p.stored(&g), p.breakers(&g), p.connections(&g),
	}
	if err := errors.Join(g.faults...); err != nil {
		return &StartError{Part: "the metrics", Err: err}
	}
	_, err := g.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for _, each := range read {
			each(ctx, o)
		}
		return nil
	}, g.all...)
	if err != nil {
		return &StartError{Part: "the metrics", Err: err}
	}
	return nil
}

// gauges makes instruments and gathers what goes wrong.
type gauges struct {
	meter  metric.Meter
	all    []metric.Observable
	faults []error
}

func (g *gauges) gauge(name, unit, about string) metric.Int64Observable {
	made, err := g.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
	return g.keep(made, err)
}

func (g *gauges) counter(name, unit, about string) metric.Int64Observable {
	made, err := g.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return g.keep(made, err)
}

func (g *gauges) keep(made metric.Int64Observable, err error) metric.Int64Observable {
	g.all, g.faults = append(g.all, made), append(g.faults, err)
	return made
}

func (p *runtimeParts) build(g *gauges) func(context.Context, metric.Observer) {
	build := g.gauge("correx.build.info", "", "1, labeled with the server's version and that of Go.")
	labels := metric.WithAttributes(labelVersion.String(p.Config.Version), labelGo.String(runtime.Version()))
	return func(_ context.Context, o metric.Observer) { o.ObserveInt64(build, 1, labels) }
}

func (p *runtimeParts) runs(g *gauges) func(context.Context, metric.Observer) {
	limit := g.gauge("correx.run.slots.limit", "{slot}", "Run slots: runs.max_concurrent.")
	used := g.gauge("correx.run.slots.used", "{slot}", "Run slots that are taken.")
	waiting := g.gauge("correx.run.slots.waiting", "{run}", "Runs that wait for a slot.")
	leases := g.gauge("correx.leases.held", "{lease}", "Leases of resumed conversations that are held.")
	forLease := g.gauge("correx.leases.waiting", "{run}", "Runs that wait for a lease.")
	return func(_ context.Context, o metric.Observer) {
		stats := p.Slots.Stats()
		o.ObserveInt64(limit, int64(p.Config.Runs.MaxConcurrent))
		o.ObserveInt64(used, int64(stats.Used))
		o.ObserveInt64(waiting, int64(stats.Waiting))
		o.ObserveInt64(leases, int64(stats.Leases))
		o.ObserveInt64(forLease, int64(stats.WaitingForLease))
	}
}

func (p *runtimeParts) sessions(g *gauges) func(context.Context, metric.Observer) {
	active := g.gauge("correx.sessions.active", "{session}", "Sessions in memory.")
	damaged := g.gauge("correx.sessions.quarantined", "{session}", "Sessions found with damaged records since the start.")
	return func(_ context.Context, o metric.Observer) {
		inMemory, quarantined := p.Directory.Count()
		o.ObserveInt64(active, int64(inMemory))
		o.ObserveInt64(damaged, int64(quarantined))
	}
}

// stored reads the journal. One that has failed tells only that.
func (p *runtimeParts) stored(g *gauges) func(context.Context, metric.Observer) {
	healthy := g.gauge("correx.journal.healthy", "", "1 while the journal takes records, else 0: then restart the server.")
	appends := g.counter("correx.journal.appends", "{append}", "Appends that are durable, since the start.")
	commits := g.counter("correx.journal.commits", "{commit}", "Commits that they shared.")
	known := g.gauge("correx.journal.sessions", "{session}", "Sessions in the journal.")
	open := g.gauge("correx.journal.sessions.open", "{session}", "Sessions with a turn that has no answer yet.")
	events := g.gauge("correx.journal.events", "{event}", "Records of event logs in the journal.")
	file := g.gauge("correx.journal.file.size", "By", "Size of the journal's file.")
	free := g.gauge("correx.journal.file.free", "By", "Part of it that is free for new records.")
	return func(ctx context.Context, o metric.Observer) {
		stats, err := p.Journal.Stats(ctx)
		if err != nil || p.Journal.Healthy() != nil {
			o.ObserveInt64(healthy, 0)
			return
		}
		o.ObserveInt64(healthy, 1)
		for _, n := range []struct {
			instrument metric.Int64Observable
			value      uint64
		}{{appends, stats.Appends}, {commits, stats.Commits}, {known, stats.Sessions}, {open, stats.Open}, {events, stats.Events}} {
			o.ObserveInt64(n.instrument, int64(n.value)) //nolint:gosec // counts
		}
		o.ObserveInt64(file, stats.FileBytes)
		o.ObserveInt64(free, stats.FreeBytes)
	}
}

func (p *runtimeParts) breakers(g *gauges) func(context.Context, metric.Observer) {
	state := g.gauge("correx.provider.breaker", "", "1 for the state of the provider's breaker (closed, open, trying), 0 for the others.")
	return func(_ context.Context, o metric.Observer) {
		for _, health := range p.Routes.Health() {
			for _, s := range breakerStates {
				value := int64(0)
				if s == health.State {
					value = 1
				}
				o.ObserveInt64(state, value, metric.WithAttributes(
					attribute.String(telemetry.AttrProvider, health.Provider), labelState.String(string(s))))
			}
		}
	}
}

func (p *runtimeParts) connections(g *gauges) func(context.Context, metric.Observer) {
	sockets := g.gauge("correx.gateway.websockets", "{connection}", "Open WebSocket connections.")
	plain := g.gauge("correx.gateway.http", "{connection}", "Open HTTP connections, idle ones and streams too.")
	return func(_ context.Context, o metric.Observer) {
		stats := p.Gateway.Stats()
		o.ObserveInt64(sockets, int64(stats.WebSockets))
		o.ObserveInt64(plain, int64(stats.HTTP))
	}
}
