package wiring_test

import (
	"context"
	"fmt"
	"log/slog"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/wiring"
)

// A host embeds the runtime in its own fx app, tells a session what its workflow does, and asks about it. examples/embed is a
// whole program; examples/embed-plain does the same without fx.
func ExampleModule() {
	cfg := wiring.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.Journal.Driver = wiring.DriverMemory
	cfg.Provider = wiring.ProviderOffline

	var client *actors.Client
	app := fx.New(
		wiring.Options(cfg),
		fx.Decorate(func() *slog.Logger { return slog.New(slog.DiscardHandler) }),
		fx.Populate(&client),
	)
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := app.Stop(ctx); err != nil {
			fmt.Println(err)
		}
	}()

	key := messages.NewKey("release-42")
	_, err := client.Record(ctx, key, nil, &messages.WorkflowStarted{WorkflowId: "release"}, &messages.StageStarted{StageId: "build"})
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := client.Subscribe(ctx, key, actors.SubscribeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer output.Close()
	if _, err := client.Submit(ctx, key, &messages.SubmitTurn{Text: "What is the status?"}); err != nil {
		fmt.Println(err)
		return
	}
	for item, err := range output.Items(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if intent, ok := item.(*messages.DeliveryIntent); ok && intent.GetRouterResponse() != nil {
			fmt.Println(intent.GetRouterResponse().GetOutcome())
			break
		}
	}
	state, err := client.State(ctx, key)
	fmt.Println(state.GetWorkflowStatus(), state.GetCurrentStageId(), err)
	// Output:
	// completed
	// RUNNING build <nil>
}
