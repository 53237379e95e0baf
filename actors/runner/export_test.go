package runner

import (
	"context"

	core "github.com/correx/correx-actors/core/session"
)

// Attempt makes a run without its actor; tell gets its reports in their order. No text is acknowledged, so a run's second one
// comes with its end.
func Attempt(ctx context.Context, deps *Deps, order core.RunOrder, tell func(any)) {
	report := &reporter{order: order, tell: tell}
	report.finish(attempt(ctx, deps, order, report, &toolRun{deps: deps, report: report, steer: newSteering(report, false)}))
}
