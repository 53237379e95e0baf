package kernel_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
)

// shouter answers every string in capitals.
type shouter struct{}

// Receive implements actor.Actor.
func (shouter) Receive(ctx actor.Context) {
	if text, ok := ctx.Message().(string); ok {
		ctx.Respond(strings.ToUpper(text))
	}
}

func Example() {
	ctx := context.Background()
	system := kernel.New(kernel.Config{})
	pid, err := system.Spawn(system.Props(func() actor.Actor { return shouter{} }, kernel.PropsOptions{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(system.Ask(ctx, pid, "hello"))
	fmt.Println(system.Stop(ctx, pid))
	fmt.Println(system.Ask(ctx, pid, "hello"))
	fmt.Println(system.Shutdown(ctx))
	// Output:
	// HELLO <nil>
	// <nil>
	// <nil> actor stopped
	// <nil>
}
