package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// BenchmarkItem is what one numbered item costs a connection's actor.
func BenchmarkItem(b *testing.B) {
	for name, body := range map[string]messages.Intent{
		"delta": &messages.StreamDelta{RunId: messages.RunIDOf(messages.NewTurnID()), Attempt: 1, Offset: 1234, Text: strings.Repeat("x", 200)},
		"phase": &messages.RunPhaseChanged{RunId: messages.RunIDOf(messages.NewTurnID()), TurnIds: []string{messages.NewTurnID()}, Phase: "streaming"},
		"final": &messages.RouterResponse{
			RunId: messages.RunIDOf(messages.NewTurnID()), TurnIds: []string{messages.NewTurnID()}, Content: strings.Repeat("x", 2000), Outcome: "completed",
		},
	} {
		m := messages.NewIntent(messages.NewKey("s1"), 7, body)
		b.Run(name, func(b *testing.B) {
			o := newOutbox(1<<20, 1000)
			b.ReportAllocs()
			for b.Loop() {
				data, err := protocol.Encode(itemFrame(m))
				require.NoError(b, err)
				o.put(outFrame{data: data})
				batch, _ := o.take()
				o.written(1, len(data))
				o.reuse(batch)
			}
		})
	}
}
