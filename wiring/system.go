package wiring

import (
	"log/slog"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/persistence"
)

var system = fx.Provide(newSystem)

// newSystem takes the journal, which it does not use, so that the journal's hook comes first and its close last: no actor may
// be left that still appends.
func newSystem(lc fx.Lifecycle, log *slog.Logger, _ persistence.Journal) *kernel.System {
	sys := kernel.New(kernel.Config{Logger: log})
	lc.Append(fx.StopHook(sys.Shutdown))
	return sys
}
