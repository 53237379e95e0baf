package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

func TestToolsTellEachStepOnce(t *testing.T) {
	t.Parallel()
	var tools client.Tools
	yes, no := true, false
	status := func(run string, actions ...protocol.Action) []string {
		return tools.News(&protocol.ToolStatus{RunID: run, Actions: actions})
	}
	require.Equal(t, []string{"tool echo …"}, status("r1", protocol.Action{ID: "1", Title: "echo", Phase: "started"}))
	require.Empty(t, status("r1", protocol.Action{ID: "1", Title: "echo", Phase: "updated"}))
	require.Equal(t, []string{"tool echo done", "tool fail failed: it was asked to"}, status("r1",
		protocol.Action{ID: "1", Title: "echo", Phase: "completed", OK: &yes},
		protocol.Action{ID: "2", Title: "fail", Phase: "completed", OK: &no, Error: &protocol.ActionError{Message: "it was asked to"}}))
	require.Empty(t, status("r1", protocol.Action{ID: "1", Title: "echo", Phase: "completed", OK: &yes}), "the last word is no news")
	require.Equal(t, []string{"tool echo …"}, status("r2", protocol.Action{ID: "1", Title: "echo", Phase: "started"}))
}
