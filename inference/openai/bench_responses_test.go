package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkResponses takes 10,000 small deltas of the responses API through the provider, in packets of 4 KiB.
func BenchmarkResponses(b *testing.B) {
	var body strings.Builder
	for i := range benchDeltas {
		fmt.Fprintf(&body, "event: response.output_text.delta\ndata: "+
			`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" tok%d","logprobs":[]}`+
			"\n\n", i, i%10)
	}
	body.WriteString("event: response.completed\ndata: " + `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}` + "\n\n")
	client := &http.Client{Transport: doer{contentType: "text/event-stream", body: []byte(body.String()), piece: 4 << 10}}
	provider, err := New(Config{HTTPClient: client, Model: "fake-1", API: APIResponses})
	require.NoError(b, err)
	var guarded cost
	for b.Loop() {
		guarded.add(func() { require.Equal(b, 5*benchDeltas, benchGuarded(b, provider)) })
	}
	b.ReportMetric(guarded.fastest()/benchDeltas, "ns/delta")
	b.ReportMetric(float64(guarded.allocs)/float64(b.N)/benchDeltas, "allocs/delta")
}
