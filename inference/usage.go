package inference

import "github.com/correx/correx-actors/messages"

// SumUsage adds up what the calls of one run used, the failed ones too: they are billed as well. The numbers are the sum of
// those that are known, and the source is the weakest of all (unknown below estimated below reported): numbers whose source is
// unknown are therefore what was used at least. Without any number there is none, for unknown is not 0.
func SumUsage(calls ...*messages.Usage) *messages.Usage {
	sum := &messages.Usage{Source: string(messages.UsageUnknown)}
	for i, call := range calls {
		source := sourceOf(call)
		if i == 0 || strength(source) < strength(sourceOf(sum)) {
			sum.Source = string(source)
		}
		if call != nil {
			add(&sum.InputTokens, call.InputTokens)
			add(&sum.OutputTokens, call.OutputTokens)
		}
	}
	return sum
}

// sourceOf reads anything else than the known sources as unknown.
func sourceOf(u *messages.Usage) messages.UsageSource {
	if source := messages.UsageSource(u.GetSource()); source.Valid() {
		return source
	}
	return messages.UsageUnknown
}

func strength(source messages.UsageSource) int {
	switch source {
	case messages.UsageUnknown:
		return 0
	case messages.UsageEstimated:
		return 1
	case messages.UsageReported:
		return 2
	}
	return 0
}

func add(sum **uint64, n *uint64) {
	switch {
	case n == nil:
	case *sum == nil:
		total := *n
		*sum = &total
	default:
		**sum += *n
	}
}
