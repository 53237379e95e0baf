package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

func delta(attempt uint32, offset uint64, text string) protocol.ServerFrame {
	return &protocol.StreamDelta{RunID: "r", Attempt: attempt, Offset: offset, Text: text}
}

func TestAnswerPrintsEachByteOnce(t *testing.T) {
	t.Parallel()
	whole := &protocol.RouterResponse{Content: "one two three"}
	for _, c := range []struct {
		name   string
		frames []protocol.ServerFrame
		want   string // "|" begins again
	}{
		{"deltas", []protocol.ServerFrame{delta(1, 0, "one "), delta(1, 4, "two "), delta(1, 8, "three"), whole}, "one two three"},
		{"only the end", []protocol.ServerFrame{whole}, "one two three"},
		{"delta again", []protocol.ServerFrame{delta(1, 0, "one "), delta(1, 0, "one "), delta(1, 2, "e two "), whole}, "one two three"},
		{"snapshot", []protocol.ServerFrame{delta(1, 0, "one "), &protocol.StreamSnapshot{Attempt: 1, Text: "one two"}, whole}, "one two three"},
		{"resync", []protocol.ServerFrame{
			delta(1, 0, "one "), &protocol.Resync{RunID: "r", Attempt: 1, Text: "one two "}, delta(1, 8, "three"), whole,
		}, "one two three"},
		{"resync at the beginning of a new attempt", []protocol.ServerFrame{
			delta(1, 0, "one "), &protocol.Resync{RunID: "r", Attempt: 2}, delta(2, 0, "one two "), whole,
		}, "one two three"},
		{"snapshot after a missed beginning", []protocol.ServerFrame{
			delta(1, 4, "two "), &protocol.StreamSnapshot{Attempt: 1, Text: "one two "}, delta(1, 8, "three"), whole,
		}, "two |one two three"},
		{"resync without a run", []protocol.ServerFrame{delta(1, 0, "one "), &protocol.Resync{}, delta(1, 4, "two three"), whole}, "one two three"},
		{"new attempt with the same words", []protocol.ServerFrame{
			delta(1, 0, "one two "), delta(2, 0, "one "), delta(2, 4, "two three"), whole,
		}, "one two three"},
		{"new attempt with other words", []protocol.ServerFrame{delta(1, 0, "uno due "), delta(2, 0, "one "), delta(2, 4, "two three"), whole}, "uno due |one two three"},
		{"new attempt that stays shorter", []protocol.ServerFrame{
			delta(1, 0, "one two three four"), delta(2, 0, "one two three"), whole,
		}, "one two three four|one two three"},
		{"missed beginning", []protocol.ServerFrame{delta(1, 4, "two "), delta(1, 8, "three"), whole}, "two three|one two three"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var answer client.Answer
			var got strings.Builder
			for _, frame := range c.frames {
				add, again := answer.Show(frame)
				if again {
					got.WriteByte('|')
				}
				got.WriteString(add)
			}
			require.Equal(t, c.want, got.String())
		})
	}
}
