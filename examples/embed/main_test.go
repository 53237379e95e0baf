package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExampleRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, run(t.Context()))
}
