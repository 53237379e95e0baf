package openai_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

var errInterrupted = errors.New("interrupted by a newer turn")

// endless is an answer that goes on until the client goes away.
func endless() llmserver.Answer { return llmserver.Answer{Deltas: []string{"one", " two"}, Hold: true} }

// stuck is an answer that says one word and then waits for ever.
func stuck() llmserver.Answer {
	return llmserver.Answer{Reasoning: []string{"hm"}, Deltas: []string{"one", "two"}, Delay: time.Hour}
}

func TestB112CancelIsToldByTheContextsCause(t *testing.T) {
	t.Parallel()
	_, provider := serve(t, stuck())
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := provider.Infer(ctx, ask(), func(event inference.Event) error {
		if _, ok := event.(inference.Activity); ok {
			cancel(errInterrupted)
		}
		return nil
	})
	require.Equal(t, inference.KindCanceled, inference.KindOf(err))
	require.ErrorIs(t, err, errInterrupted)
	require.NotErrorIs(t, err, context.Canceled)
}

func TestB113CancelledStreamsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const streams = 1000
	server, provider := serve(t, stuck())
	var group errgroup.Group
	group.SetLimit(16)
	for range streams {
		group.Go(func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := provider.Infer(ctx, ask(), func(inference.Event) error {
				cancel()
				return nil
			})
			if kind := inference.KindOf(err); kind != inference.KindCanceled {
				return errors.New(string(kind))
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for _, request := range server.Requests() {
		<-request.Done
	}
	// TestMain looks for goroutines.
}

func TestB116CancelClosesTheUpstreamConnection(t *testing.T) {
	t.Parallel()
	server, provider := serve(t, stuck())
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := provider.Infer(ctx, ask(), func(inference.Event) error { return nil })
		over <- err
	}()
	request, err := server.Await(t.Context(), 1)
	require.NoError(t, err)
	cancel()
	within(t, request.Gone)
	require.Equal(t, inference.KindCanceled, inference.KindOf(<-over))
}

func within(t *testing.T, closed <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
		require.Fail(t, "the upstream connection was not closed within a second")
	}
}

func TestB115AnyByteIsASignOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const stall = 90 * time.Second
		server := llmserver.New(llmserver.Answer{Deltas: []string{"late"}, KeepAlives: 20, KeepAliveEvery: time.Minute})
		client, stop := server.Pipe()
		provider, err := openai.New(openai.Config{BaseURL: llmserver.PipeURL, HTTPClient: client, Model: llmserver.Model})
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		clock := time.AfterFunc(stall, func() { cancel(errors.New("stalled")) })
		var text strings.Builder
		started := time.Now()
		_, err = provider.Infer(ctx, ask(), func(event inference.Event) error {
			clock.Reset(stall)
			if delta, ok := event.(inference.Delta); ok {
				text.WriteString(delta.Text)
			}
			return nil
		})
		clock.Stop()
		require.NoError(t, err)
		require.Equal(t, "late", text.String())
		require.Equal(t, 20*time.Minute, time.Since(started).Truncate(time.Minute))
		stop()
	})
}

func TestDeadlineIsACancelWithItsCause(t *testing.T) {
	t.Parallel()
	_, provider := serve(t, stuck())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := provider.Infer(ctx, ask(), func(inference.Event) error { return nil })
	require.Equal(t, inference.KindCanceled, inference.KindOf(err))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCancelledContextMakesNoCall(t *testing.T) {
	t.Parallel()
	server, provider := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, _, err := infer(ctx, provider, ask())
	require.Equal(t, inference.KindCanceled, inference.KindOf(err))
	require.Zero(t, h.connected)
	require.Empty(t, server.Requests())
}

func TestErrorOfReportStopsTheCallWithThatError(t *testing.T) {
	t.Parallel()
	full := errors.New("mailbox is full")
	for name, refuses := range map[string]func(inference.Event) bool{
		"connected": func(e inference.Event) bool { _, is := e.(inference.Connected); return is },
		"delta":     func(e inference.Event) bool { _, is := e.(inference.Delta); return is },
		"activity":  func(e inference.Event) bool { _, is := e.(inference.Activity); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := endless()
			answer.KeepAlives = 1
			server, provider := serve(t, answer)
			calls, refused := 0, 0
			_, err := provider.Infer(t.Context(), ask(), func(event inference.Event) error {
				calls++
				if refuses(event) {
					refused = calls
					return full
				}
				return nil
			})
			require.Equal(t, full, err)
			require.Equal(t, refused, calls, "nothing is reported after the error")
			request, err := server.Await(t.Context(), 1)
			require.NoError(t, err)
			within(t, request.Done)
		})
	}
}

func TestAnswersInARowShareAConnection(t *testing.T) {
	t.Parallel()
	server, provider := serve(t, llmserver.Answer{Quirk: "late_end"})
	for range 5 {
		_, _, err := infer(t.Context(), provider, ask())
		require.NoError(t, err)
	}
	var remotes []string
	for _, request := range server.Requests() {
		remotes = append(remotes, request.Remote)
	}
	require.Len(t, remotes, 5)
	require.Len(t, slices.Compact(remotes), 1)
}

// The runner estimates the tokens of a call that was cut; for that it must not be told zeros.
func TestB121UsageOfAnAbortedCallIsNoZero(t *testing.T) {
	t.Parallel()
	const words = 200
	_, provider := serve(t, llmserver.Answer{Deltas: slices.Repeat([]string{"word "}, words+1), Usage: &llmserver.Usage{Input: 9, Output: words}, Hold: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	deltas := 0
	completion, err := provider.Infer(ctx, ask(), func(event inference.Event) error {
		if _, ok := event.(inference.Delta); ok {
			if deltas++; deltas == words {
				cancel(errInterrupted)
			}
		}
		return nil
	})
	require.ErrorIs(t, err, errInterrupted)
	require.Equal(t, inference.Completion{Model: llmserver.Model}, completion)
}
