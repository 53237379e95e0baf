package actors_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

// host is one process: kernel, directory and client over a journal that outlives it.
type host struct {
	t       *testing.T
	sys     *kernel.System
	dir     *directory.Directory
	client  *actors.Client
	journal *testkit.FaultyJournal
	model   *testkit.ScriptedProvider
	deps    session.Deps
}

var key = messages.NewKey("s1")

// inBubble runs scenario with virtual time and a fresh process over a fresh journal.
func inBubble(t *testing.T, scenario func(t *testing.T, h *host)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := testkit.NewFaultyJournal(memory.New(memory.Config{}))
		h := start(t, journal, testkit.NewProvider(t), nil)
		defer func() { // also when the scenario fails: a bubble must end empty
			h.stop()
			require.NoError(t, journal.Close())
		}()
		scenario(t, h)
	})
}

func start(t *testing.T, journal *testkit.FaultyJournal, model *testkit.ScriptedProvider, change func(*session.Deps)) *host {
	t.Helper()
	return startOn(t, kernel.New(kernel.Config{}), journal, model, change)
}

func startOn(
	t *testing.T, sys *kernel.System, journal *testkit.FaultyJournal, model *testkit.ScriptedProvider, change func(*session.Deps),
) *host {
	t.Helper()
	deps := session.Deps{
		Kernel:  sys,
		Journal: journal,
		Owner:   persistence.Owner{Node: "n1"},
		Core:    core.DefaultConfig(),
		Runner: runner.Deps{
			Kernel:  sys,
			Router:  testkit.Route(model),
			Counter: func(string) contextpack.TokenCounter { return contextpack.BytesCounter{} },
			Limits:  runner.DefaultLimits(),
			Log:     slog.New(slog.DiscardHandler),
		},
		Output:     session.OutputConfig{Keep: session.DefaultKeep, KeepBytes: session.DefaultKeepBytes},
		Idle:       session.DefaultIdle,
		UnknownFor: session.DefaultUnknownFor,
		Log:        slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&deps)
	}
	require.NoError(t, deps.Validate())
	dir, err := directory.Start(sys, deps)
	require.NoError(t, err)
	return &host{
		t: t, sys: sys, dir: dir, client: actors.NewClient(sys, dir, journal), journal: journal, model: model, deps: deps,
	}
}

// stop ends the process as kill -9 would leave the journal: nothing more is recorded.
func (h *host) stop() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(h.t, h.dir.Stop(ctx))
	require.NoError(h.t, h.sys.Shutdown(ctx))
	time.Sleep(time.Nanosecond) // virtual: all that goes on has ended; synctest.Wait is the schedule's where there is one
}

// restart is a new process over the same journal; sessions with open work are activated, as a start does.
func (h *host) restart() *host {
	h.t.Helper()
	h.stop()
	next := start(h.t, h.journal, h.model, nil)
	next.activate()
	return next
}

func (h *host) activate() {
	h.t.Helper()
	var keys []messages.Key
	for info, err := range h.journal.OpenSessions(h.t.Context()) {
		require.NoError(h.t, err)
		keys = append(keys, info.Key)
	}
	h.dir.Activate(keys)
}

func (h *host) submit(text string, change ...func(*messages.SubmitTurn)) *messages.TurnAccepted {
	h.t.Helper()
	accepted, err := h.client.Submit(h.t.Context(), key, turn(text, change...))
	require.NoError(h.t, err)
	return accepted
}

func turn(text string, change ...func(*messages.SubmitTurn)) *messages.SubmitTurn {
	t := &messages.SubmitTurn{Text: text}
	for _, c := range change {
		c(t)
	}
	return t
}

func steering(t *messages.SubmitTurn) { t.Mode = string(messages.ChatModeSteering) }

func keyed(k string) func(*messages.SubmitTurn) {
	return func(t *messages.SubmitTurn) { t.IdempotencyKey = k }
}

func (h *host) subscribe(after uint64) *actors.Subscription {
	h.t.Helper()
	sub, err := h.client.Subscribe(h.t.Context(), key, actors.SubscribeOptions{AfterSeq: &after})
	require.NoError(h.t, err)
	return sub
}

func (h *host) state() *messages.SessionView {
	h.t.Helper()
	state, err := h.client.State(h.t.Context(), key)
	require.NoError(h.t, err)
	return state
}

// end waits for the end of a turn and gives it.
func (h *host) end(id messages.TurnID) *messages.TurnStatus {
	h.t.Helper()
	for range 100_000 {
		status, err := h.client.Turn(h.t.Context(), key, id)
		if f := new(messages.Failure); !errors.As(err, &f) || !f.GetRetryable() { // a session that just ended asks to try again
			require.NoError(h.t, err)
		}
		if messages.TurnState(status.GetState()).Ended() {
			return status
		}
		time.Sleep(100 * time.Millisecond) // virtual
	}
	h.t.Fatalf("turn %s does not end", id)
	return nil
}

// items reads what is there for a subscription, until nothing more comes.
func (h *host) items(sub *actors.Subscription) []actors.Item {
	h.t.Helper()
	var all []actors.Item
	for {
		ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Second)
		item, err := sub.Next(ctx)
		cancel()
		if err != nil {
			require.ErrorIs(h.t, err, context.DeadlineExceeded)
			return all
		}
		all = append(all, item)
	}
}

func (h *host) notes() []string {
	h.t.Helper()
	var notes []string
	for stored, err := range h.client.Events(h.t.Context(), key, 0) {
		require.NoError(h.t, err)
		event, err := messages.DecodeEvent(stored.GetEvent().GetType(), stored.GetEvent().GetVersion(), stored.GetEvent().GetPayload())
		require.NoError(h.t, err)
		if note, ok := event.(*messages.SteeringNoteAdded); ok {
			notes = append(notes, note.GetContent())
		}
	}
	return notes
}

func requireCode(t *testing.T, code messages.Code, err error) *messages.Failure {
	t.Helper()
	var f *messages.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, string(code), f.GetCode(), f.GetMessage())
	return f
}

// show prints items in short, for comparison.
func show(items []actors.Item) []string {
	var out []string
	for _, item := range items {
		switch m := item.(type) {
		case *messages.DeliveryIntent:
			out = append(out, showIntent(m.Intent()))
		case *messages.Gap:
			out = append(out, "gap")
		case *messages.Resync:
			out = append(out, "resync")
		}
	}
	return out
}

func showIntent(intent messages.Intent) string {
	switch b := intent.(type) {
	case *messages.RunPhaseChanged:
		return "phase " + b.GetPhase()
	case *messages.StreamDelta:
		return "delta " + b.GetText()
	case *messages.StreamSnapshot:
		return "snapshot " + b.GetText()
	case *messages.StreamFinalize:
		return "finalize " + b.GetText()
	case *messages.TurnStateChanged:
		return "turn " + b.GetState()
	case *messages.RouterResponse:
		return "response " + b.GetOutcome() + " " + b.GetContent()
	case *messages.Notice:
		return "notice " + b.GetText()
	case *messages.WatchdogPrompt:
		return "prompt " + b.GetText()
	case *messages.ToolStatus:
		return fmt.Sprintf("tools %d, final %t", len(b.GetActions()), b.GetFinal())
	}
	return "unknown"
}

var _ inference.Provider = (*testkit.ScriptedProvider)(nil)
