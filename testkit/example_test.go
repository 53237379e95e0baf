package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// A conversation without actors: the kit checks the invariants after every command.
func ExampleSessionKit() {
	t := new(testing.T) // in a test: its own t
	kit := testkit.NewSessionKit(t).Given(&messages.StageStarted{StageId: "build"})

	started := kit.Submit("go left", func(r *messages.SubmitTurn) { r.Mode = "STEERING" })
	order, _ := started.Started()
	fmt.Println("run", order.RunID, "sees stage", order.Router.CurrentStageID)

	kit.Run(session.RunStreamed{Text: "Going "})
	kit.Advance(time.Second)
	kit.Restart() // a crash: the run is started again
	done := kit.Answer("Going left.")
	for _, item := range done.Published() {
		fmt.Printf("%T\n", item.Intent)
	}
	for _, note := range done.State.Router.NotesFor("build") {
		fmt.Println("note:", note.Content)
	}
	// Output:
	// run run_1 sees stage build
	// *messages.RunPhaseChanged
	// *messages.RunPhaseChanged
	// *messages.TurnStateChanged
	// *messages.RunPhaseChanged
	// *messages.RouterResponse
	// note: go left
}

// A model that streams, is rate limited, and hangs.
func ExampleScriptedProvider() {
	t := new(testing.T) // in a test: its own t
	model := testkit.NewProvider(t,
		testkit.Script(testkit.Stream("Hel", "lo"), testkit.Usage(12, 2)),
		testkit.Script(testkit.Fail(inference.KindRateLimited)),
		testkit.Script(testkit.Connect(), testkit.HangUntilCancel()),
	)
	report := func(e inference.Event) error {
		fmt.Printf("%T %v\n", e, e)
		return nil
	}
	done, _ := model.Infer(context.Background(), inference.Request{Model: "small"}, report)
	fmt.Println(done.FinishReason, done.Usage.OutputTokens)

	_, err := model.Infer(context.Background(), inference.Request{}, report)
	fmt.Println(inference.KindOf(err))

	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(time.Millisecond, func() { cancel(errors.New("the user has had enough")) })
	_, _ = model.Infer(ctx, inference.Request{}, report)
	fmt.Println(model.ExpectCanceled().Cause)
	// Output:
	// inference.Connected {}
	// inference.Delta {Hel}
	// inference.Delta {lo}
	// stop 2
	// rate_limited
	// inference.Connected {}
	// the user has had enough
}
