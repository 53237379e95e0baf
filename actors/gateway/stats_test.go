package gateway_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/gateway"
)

func TestStatsTellWhoIsConnected(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.Equal(t, gateway.Stats{}, s.gateway.Stats())
	socket := s.dial()
	tells := func(want gateway.Stats) {
		t.Helper()
		require.Eventually(t, func() bool { return s.gateway.Stats() == want }, patience, time.Millisecond, "%+v", want)
	}
	tells(gateway.Stats{WebSockets: 1})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", http.NoBody)
	require.NoError(t, err)
	response, err := s.http.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	tells(gateway.Stats{WebSockets: 1, HTTP: 1}) // it is kept alive
	s.http.CloseIdleConnections()
	tells(gateway.Stats{WebSockets: 1})
	require.NoError(t, socket.ws.CloseNow())
	tells(gateway.Stats{})
}

// Without a source of metrics the route does not exist.
func TestThereAreNoMetricsUnlessGiven(t *testing.T) {
	t.Parallel()
	s := start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := s.http.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}
