// Command embed-plain runs the runtime without a container: a host makes the parts itself, in the order in which they need each
// other, and stops them in reverse. There is no gateway: the sessions are reached in this process only.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/offline"
	"github.com/correx/correx-actors/inference/tokenizer"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "embed-plain:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	journal := memory.New(memory.Config{}) // a real host opens bolt.Open(bolt.Config{Path: …, Logger: log})
	defer func() { err = errors.Join(err, journal.Close()) }()

	sys := kernel.New(kernel.Config{Logger: log})
	defer func() { err = errors.Join(err, sys.Shutdown(ctx)) }()

	deps, err := dependencies(sys, journal, log)
	if err != nil {
		return err
	}
	dir, err := directory.Start(sys, deps)
	if err != nil {
		return err
	}
	defer func() {
		// Running answers get ten seconds; what is not finished by then goes on after the next start.
		budget, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		err = errors.Join(err, dir.Drain(budget, ctx), dir.Stop(ctx))
	}()
	return converse(ctx, actors.NewClient(sys, dir, journal))
}

// dependencies says what every session is made with.
func dependencies(sys *kernel.System, journal persistence.Journal, log *slog.Logger) (session.Deps, error) {
	router, err := inference.NewTable(offline.New(offline.Config{}))
	if err != nil {
		return session.Deps{}, err
	}
	deps := session.Deps{
		Kernel:  sys,
		Journal: journal,
		Core:    core.DefaultConfig(),
		Runner: runner.Deps{
			Kernel: sys, Router: router, Counter: tokenizer.For, Limits: runner.DefaultLimits(), Log: log,
		},
		Output:     session.OutputConfig{Keep: session.DefaultKeep, KeepBytes: session.DefaultKeepBytes},
		Idle:       session.DefaultIdle,
		UnknownFor: session.DefaultUnknownFor,
		Log:        log,
	}
	return deps, deps.Validate()
}

// converse leaves a steering note and shows that the workflow's host can read it.
func converse(ctx context.Context, client *actors.Client) error {
	key := messages.NewKey("release-42")
	_, err := client.Record(ctx, key, nil, &messages.WorkflowStarted{WorkflowId: "release"}, &messages.StageStarted{StageId: "test"})
	if err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	output, err := client.Subscribe(ctx, key, actors.SubscribeOptions{})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer output.Close()
	for _, turn := range []*messages.SubmitTurn{
		{Text: "Which stage is running?"},
		{Text: "Run the slow tests as well.", Mode: string(messages.ChatModeSteering)},
	} {
		fmt.Println("user:  ", turn.GetText())
		accepted, err := client.Submit(ctx, key, turn)
		if err != nil {
			return fmt.Errorf("submit turn: %w", err)
		}
		if err := stream(ctx, output, accepted.GetRunId()); err != nil {
			return fmt.Errorf("wait for the answer: %w", err)
		}
	}
	notes, err := client.SteeringNotes(ctx, key, "test")
	if err != nil {
		return fmt.Errorf("read steering notes: %w", err)
	}
	for _, note := range notes {
		fmt.Printf("note for stage %s: %s\n", note.StageID, note.Content)
	}
	return nil
}

// stream prints the answer of a run as it grows.
func stream(ctx context.Context, output *actors.Subscription, runID string) error {
	fmt.Print("router: ")
	for item, err := range output.Items(ctx) {
		if err != nil {
			return err
		}
		intent, _ := item.(*messages.DeliveryIntent) // gaps come only to readers that were away
		if delta := intent.GetStreamDelta(); delta.GetRunId() == runID {
			fmt.Print(delta.GetText())
		}
		if intent.GetRouterResponse().GetRunId() == runID {
			fmt.Println()
			return nil
		}
	}
	return nil
}
