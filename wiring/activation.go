package wiring

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// activationBatch is how many sessions with open work are started at once: enough to keep the journal busy, few enough that
// new commands are served meanwhile.
const activationBatch = 64

// activation starts the sessions that the last process left with open work, so that every accepted turn gets its answer (I7)
// even if nobody asks for it.
type activation struct {
	dir     *directory.Directory
	journal persistence.Journal
	log     *slog.Logger

	cancel context.CancelCauseFunc
	ended  chan struct{}
}

func (a *activation) start() {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.cancel, a.ended = cancel, make(chan struct{})
	go func() {
		defer close(a.ended)
		a.run(ctx)
	}()
}

// stop gives up on the rest; it waits for the next start.
func (a *activation) stop(ctx context.Context) {
	if a.cancel == nil {
		return
	}
	a.cancel(errStopping)
	select {
	case <-a.ended:
	case <-ctx.Done():
	}
}

func (a *activation) run(ctx context.Context) {
	started := time.Now()
	keys, turns, damaged := a.open(ctx)
	if len(keys) == 0 && damaged == 0 {
		return
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "sessions have open work",
		slog.Int(messages.AttrCount, len(keys)), slog.Int(messages.AttrTurns, turns))
	failed := damaged
	for done := 0; done < len(keys) && ctx.Err() == nil; {
		batch := keys[done:min(done+activationBatch, len(keys))]
		failed += a.activate(ctx, batch)
		done += len(batch)
		if len(keys) > activationBatch {
			a.log.LogAttrs(ctx, slog.LevelInfo, "sessions are being activated",
				slog.Int(messages.AttrCount, done), slog.String(messages.AttrState, fmt.Sprintf("%d of %d", done, len(keys))))
		}
	}
	if ctx.Err() != nil {
		return
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "open work goes on", slog.Int(messages.AttrCount, len(keys)-failed),
		slog.Int64(messages.AttrDuration, time.Since(started).Milliseconds()))
}

// open lists the sessions with open work, and counts the turns that wait for an answer. A session that cannot be read is logged
// and counted: it must not keep the others.
func (a *activation) open(ctx context.Context) (keys []messages.Key, turns, damaged int) {
	for info, err := range a.journal.OpenSessions(ctx) {
		switch {
		case err == nil:
			keys = append(keys, info.Key)
			turns += openTurns(info.Work)
		case ctx.Err() == nil:
			damaged++
			a.log.LogAttrs(ctx, slog.LevelError, "open session cannot be read", slog.Any(messages.AttrError, err))
		}
	}
	return keys, turns, damaged
}

// openTurns counts the run as the turn that it answers; those that joined it have ended.
func openTurns(work persistence.Work) int {
	if work.Running {
		return 1 + int(work.Waiting)
	}
	return int(work.Waiting)
}

// activate starts one batch and waits until each session has replayed, which paces the start. It gives the number of failures.
func (a *activation) activate(ctx context.Context, batch []messages.Key) (failed int) {
	a.dir.Activate(batch)
	for _, key := range batch {
		if _, err := a.dir.Ask(ctx, key, &messages.GetSession{}); err != nil && ctx.Err() == nil {
			failed++
			a.log.LogAttrs(ctx, slog.LevelError, "open session cannot be activated",
				slog.String(messages.AttrTenant, string(key.Tenant)), slog.String(messages.AttrSession, string(key.Session)),
				slog.Any(messages.AttrError, err))
		}
	}
	return failed
}
