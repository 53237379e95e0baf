package tools

import (
	"context"
	"errors"
	"time"
)

// maxDemoSleep bounds the demo tool sleep.
const maxDemoSleep = time.Hour

// Demo gives the tools with which streaming, steering and cancelling can be tried without a server: echo{text}, sleep{ms} and
// fail{message}. Sleep is sequential, so that there is a boundary after it.
func Demo() ([]*Tool, error) {
	type echoed struct {
		Text string `json:"text" jsonschema:"what to say back"`
	}
	echo, echoErr := Func(Spec{Name: "echo", Description: "Says a text back."},
		func(_ context.Context, in echoed) (string, error) { return in.Text, nil })
	type sleeping struct {
		MS uint32 `json:"ms" jsonschema:"how many milliseconds to wait"`
	}
	sleep, sleepErr := Func(Spec{Name: "sleep", Description: "Waits, then says so.", Sequential: true},
		func(ctx context.Context, in sleeping) (string, error) {
			wait := min(time.Duration(in.MS)*time.Millisecond, maxDemoSleep)
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
				return "slept " + wait.String(), nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
	type failing struct {
		Message string `json:"message" jsonschema:"what to fail with"`
	}
	fail, failErr := Func(Spec{Name: "fail", Description: "Fails with a message."},
		func(_ context.Context, in failing) (string, error) { return "", errors.New(in.Message) })
	if err := errors.Join(echoErr, sleepErr, failErr); err != nil {
		return nil, err
	}
	return []*Tool{echo, sleep, fail}, nil
}
