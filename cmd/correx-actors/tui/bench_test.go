package tui

import (
	"fmt"
	"testing"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// BenchmarkStream draws the screen after each token of an answer of 200 kB that ends a conversation of 2,000 entries.
func BenchmarkStream(b *testing.B) {
	const token, tokens = "eight b ", 25_000
	history := &protocol.State{SessionID: "s1"}
	for i := range 1000 {
		history.ConversationHistory = append(history.ConversationHistory,
			protocol.HistoryEntry{Role: roleUser, Content: fmt.Sprintf("question %d", i)},
			protocol.HistoryEntry{Role: "ROUTER", Content: fmt.Sprintf("answer %d\n\n- with a list\n- of two", i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		m := newModel("s1", "k")
		m.Update(notices{&client.Connected{Start: &protocol.Subscribed{NextSeq: 1, State: history}}})
		for i := range uint64(tokens) {
			text := token
			if i%50 == 49 {
				text = "line end\n"[1:]
			}
			m.Update(notices{&client.Arrived{Frame: &protocol.StreamDelta{
				Item: protocol.Item{Seq: i + 1}, RunID: "r1", Attempt: 1, Offset: i * uint64(len(token)), Text: text,
			}}})
			m.View()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tokens, "ns/token")
}
