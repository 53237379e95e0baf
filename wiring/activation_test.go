package wiring_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/wiring"
)

// counts keeps the numbers of the lines with one message.
type counts struct {
	slog.Handler
	message string

	mu    sync.Mutex
	lines []map[string]int64
}

func (*counts) Enabled(context.Context, slog.Level) bool { return true }

func (c *counts) Handle(_ context.Context, r slog.Record) error {
	if r.Message != c.message {
		return nil
	}
	line := make(map[string]int64)
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.Int64()
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	return nil
}

func (c *counts) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c *counts) seen() []map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines
}

// B34: a start says how many turns it goes on with, not only of how many sessions they are.
func TestB34StartCountsTheTurnsThatItGoesOnWith(t *testing.T) {
	t.Parallel()
	kept := memory.New(memory.Config{})
	provider := testkit.NewProvider(t, testkit.Script(testkit.HangUntilCancel()), testkit.Script(testkit.HangUntilCancel())).
		Otherwise(testkit.Stream("ok"))
	var client *actors.Client
	first := fxtest.New(t, wiring.Module(cutShort()), fx.NopLogger, quiet(), keptIn(kept), answeredBy(provider), fx.Populate(&client))
	first.RequireStart()
	for _, session := range []messages.SessionID{"a", "b", "a", "a"} {
		_, err := client.Submit(t.Context(), messages.NewKey(session), &messages.SubmitTurn{Text: "hi"})
		require.NoError(t, err)
	}
	provider.ExpectCalls(2)
	first.RequireStop()

	said := &counts{message: "sessions have open work"}
	second := fxtest.New(t, wiring.Module(cutShort()), fx.NopLogger, keptIn(kept), answeredBy(provider),
		fx.Decorate(func() *slog.Logger { return slog.New(said) }))
	second.RequireStart()
	defer second.RequireStop()
	require.Eventually(t, func() bool { return len(said.seen()) > 0 }, 5*time.Second, time.Millisecond)
	require.Equal(t, map[string]int64{messages.AttrCount: 2, messages.AttrTurns: 4}, said.seen()[0])
}

// cutShort stops without waiting for runs.
func cutShort() wiring.Config {
	cfg := config()
	cfg.Drain.Timeout = time.Millisecond
	return cfg
}
