// Command embed runs the runtime inside a host's own fx app: the host brings its parts, takes *actors.Client from the graph,
// tells a session what its workflow does, and holds a conversation about it. The gateway serves the same sessions to others.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/wiring"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg := wiring.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.Journal.Driver = wiring.DriverMemory // a real host names a DataDir instead
	cfg.Provider = wiring.ProviderOffline

	var client *actors.Client
	app := fx.New(
		wiring.Module(cfg),
		fx.StopTimeout(wiring.StopTimeout(cfg)),
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		// What the host decorates, the runtime uses.
		fx.Decorate(func() *slog.Logger {
			return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}),
		fx.Populate(&client),
	)
	if err := app.Start(ctx); err != nil {
		return err
	}
	err := converse(ctx, client)
	stop, cancel := context.WithTimeout(ctx, app.StopTimeout())
	defer cancel()
	return errors.Join(err, app.Stop(stop))
}

// converse records a workflow's events and asks about them.
func converse(ctx context.Context, client *actors.Client) error {
	key := messages.NewKey("release-42")
	_, err := client.Record(ctx, key, nil,
		&messages.WorkflowStarted{WorkflowId: "release"},
		&messages.StageStarted{StageId: "build"},
		&messages.StageCompleted{StageId: "build", Summary: "binaries for 3 platforms", NextStageId: "test"},
	)
	if err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	output, err := client.Subscribe(ctx, key, actors.SubscribeOptions{})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer output.Close()
	for _, text := range []string{"What is the status?", "What was done?"} {
		fmt.Println("user:  ", text)
		turn, err := client.Submit(ctx, key, &messages.SubmitTurn{Text: text})
		if err != nil {
			return fmt.Errorf("submit turn: %w", err)
		}
		answer, err := await(ctx, output, turn.GetRunId())
		if err != nil {
			return fmt.Errorf("wait for the answer: %w", err)
		}
		fmt.Println("router:", answer)
	}
	return nil
}

// await reads the output up to the answer of a run.
func await(ctx context.Context, output *actors.Subscription, runID string) (string, error) {
	for {
		item, err := output.Next(ctx)
		if err != nil {
			return "", err
		}
		intent, ok := item.(*messages.DeliveryIntent)
		if !ok {
			continue
		}
		if response := intent.GetRouterResponse(); response != nil && response.GetRunId() == runID {
			return response.GetContent(), nil
		}
	}
}
