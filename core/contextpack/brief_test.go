package contextpack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

func TestBriefTellsAStageThatFailedBeforeItSucceeded(t *testing.T) {
	t.Parallel()
	state := router.State{}
	for _, e := range []messages.Event{
		&messages.StageFailed{StageId: "sign", Reason: "timeout"},
		&messages.StageFailed{StageId: "sign", Reason: "timeout again"},
		&messages.StageCompleted{StageId: "sign"},
		&messages.StageCompleted{StageId: "test"},
		&messages.StageFailed{StageId: "test", Reason: "flaky"},
	} {
		state = reduce(state, e)
	}
	brief := Build(state, nil, Budget{Tokens: 4096, KeepLast: 6, Counter: BytesCounter{}}).Brief
	require.Equal(t, []string{"sign"}, brief.Recovered)
	require.Equal(t, []string{"sign"}, brief.Succeeded)
	require.Equal(t, []string{"test"}, brief.Failed, "the newest outcome counts")
}
