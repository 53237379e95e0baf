package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/messages"
)

// Text and Finals share their older parts; a plain slice is the twin that they are compared with.

func TestTextIsTheSumOfItsPiecesAndOldValuesStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type pair struct {
			text Text
			want string
		}
		all := []pair{{}}
		for range rapid.IntRange(0, 20).Draw(rt, "appends") {
			from := all[rapid.IntRange(0, len(all)-1).Draw(rt, "from")]
			piece := rapid.String().Draw(rt, "piece")
			all = append(all, pair{from.text.Append(piece), from.want + piece})
		}
		for _, p := range all {
			require.Equal(rt, p.want, p.text.String())
			require.Equal(rt, len(p.want), p.text.Len())
		}
	})
}

func TestFinalsKeepTheNewestAndOldValuesStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var list Finals
		var twin []*messages.RunEnded
		var seq uint64
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			before, size := list, len(twin)
			if rapid.IntRange(0, 3).Draw(rt, "what") > 0 {
				seq += uint64(rapid.IntRange(1, 5).Draw(rt, "gap"))
				run := &messages.RunEnded{FinalSeq: seq, EndedAt: timestamppb.New(time.Unix(int64(seq/2), 0))} //nolint:gosec // small
				list, twin = list.add(run), append(twin, run)
			} else {
				after := uint64(rapid.IntRange(0, 40).Draw(rt, "after"))
				oldest := time.Unix(int64(rapid.IntRange(0, 20).Draw(rt, "oldest")), 0)
				limit := rapid.IntRange(0, 10).Draw(rt, "limit")
				require.Equal(rt, anyAcked(twin, after), list.acked(after))
				list, twin = list.keep(after, oldest, limit), keepTwin(twin, after, oldest, limit)
			}
			require.Equal(rt, len(twin), list.Len())
			require.Equal(rt, twin, list.After(0, time.Time{}))
			require.Len(rt, before.After(0, time.Time{}), size)
		}
	})
}

func keepTwin(runs []*messages.RunEnded, after uint64, oldest time.Time, limit int) []*messages.RunEnded {
	var kept []*messages.RunEnded
	for _, run := range runs {
		if run.GetFinalSeq() > after && !run.GetEndedAt().AsTime().Before(oldest) {
			kept = append(kept, run)
		}
	}
	if len(kept) > limit {
		kept = kept[len(kept)-limit:]
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func anyAcked(runs []*messages.RunEnded, seq uint64) bool {
	return len(runs) > 0 && runs[0].GetFinalSeq() <= seq
}
