package openai_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

// failing is a transport that never gets an answer.
type failing struct{ err error }

// RoundTrip implements http.RoundTripper.
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestConnectLimitIsToldApart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err   error
		kind  inference.Kind
		limit inference.Limit
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, inference.KindTimeout, inference.LimitConnect},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, inference.KindTimeout, ""},
		{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}, inference.KindUnavailable, ""},
	} {
		p, err := openai.New(openai.Config{Model: "m", HTTPClient: &http.Client{Transport: failing{row.err}}})
		require.NoError(t, err)
		_, err = p.Infer(t.Context(), ask(), func(inference.Event) error { return nil })
		var failure *inference.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, row.kind, failure.Kind, row.err)
		require.Equal(t, row.limit, failure.Limit, row.err)
	}
}
