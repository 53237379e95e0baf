package gateway_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/actors/kernel"
)

func TestOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	for listen, ok := range map[string]bool{
		"127.0.0.1:7711": true, "127.8.8.8:0": true, "[::1]:7711": true, "localhost:7711": true,
		":7711": false, "0.0.0.0:7711": false, "[::]:7711": false, "192.168.0.1:7711": false, "example.com:7711": false,
		"10.0.0.1:1": false, "localhost.example.com:7711": false,
	} {
		config := gateway.DefaultConfig()
		config.Listen = listen
		if err := config.Validate(); ok {
			require.NoError(t, err, listen)
		} else {
			require.ErrorIs(t, err, gateway.ErrNotLoopback, listen)
			require.ErrorContains(t, err, "no authentication")
		}
	}
}

func TestConfigReportsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	require.NoError(t, gateway.DefaultConfig().Validate())
	err := gateway.Config{Listen: "7711", Origins: []string{"chat.example.com", "https://ok.example.com", "https://x/path"}}.Validate()
	for _, part := range []string{
		`listen "7711"`, `"chat.example.com"`, `"https://x/path"`, "max_frame_bytes", "bodies", "heartbeat",
		"outbox's limit in bytes", "outbox's limit in frames", "in flight", "subscriptions",
	} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "ok.example.com")
	_, err = gateway.New(gateway.DefaultConfig(), gateway.Deps{Kernel: new(kernel.System), Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "required")
}

func TestAnAddressInUseIsReported(t *testing.T) {
	t.Parallel()
	s := start(t)
	config := gateway.DefaultConfig()
	config.Listen = s.gateway.Addr().String()
	g, err := gateway.New(config, gateway.Deps{Kernel: s.sys, Directory: s.dir, Journal: s.journal, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.ErrorContains(t, g.Start(t.Context()), "address already in use")
	require.NoError(t, g.Stop(t.Context()))
}
