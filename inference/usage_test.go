package inference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

func used(source messages.UsageSource, input, output uint64) *messages.Usage {
	return &messages.Usage{InputTokens: &input, OutputTokens: &output, Source: string(source)}
}

func TestB119UsageOfAllCallsIsCountedFromTheWeakestSource(t *testing.T) {
	t.Parallel()
	unknown := &messages.Usage{Source: string(messages.UsageUnknown)}
	reported, estimated := used(messages.UsageReported, 10, 5), used(messages.UsageEstimated, 7, 1)
	for name, row := range map[string]struct {
		calls []*messages.Usage
		want  *messages.Usage
	}{
		"nothing was called":        {nil, unknown},
		"one call":                  {[]*messages.Usage{reported}, used(messages.UsageReported, 10, 5)},
		"both reported":             {[]*messages.Usage{reported, reported}, used(messages.UsageReported, 20, 10)},
		"estimated is weaker":       {[]*messages.Usage{reported, estimated}, used(messages.UsageEstimated, 17, 6)},
		"in any order":              {[]*messages.Usage{estimated, reported}, used(messages.UsageEstimated, 17, 6)},
		"unknown is the weakest":    {[]*messages.Usage{reported, unknown, estimated}, used(messages.UsageUnknown, 17, 6)},
		"unknown is not 0":          {[]*messages.Usage{unknown, unknown}, unknown},
		"an unheard source":         {[]*messages.Usage{used("guessed", 1, 1)}, used(messages.UsageUnknown, 1, 1)},
		"a call that tells nothing": {[]*messages.Usage{nil, reported}, used(messages.UsageUnknown, 10, 5)},
	} {
		require.Equal(t, row.want, inference.SumUsage(row.calls...), name)
	}
	require.Equal(t, used(messages.UsageReported, 10, 5), reported, "its arguments are left alone")
}
