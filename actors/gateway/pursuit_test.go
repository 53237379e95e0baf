package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
)

// Every item that is about a run is found to be: else the stream of a turn would leave it out.
func TestEveryItemOfARunIsOfItsTurn(t *testing.T) {
	t.Parallel()
	bodies := (&messages.DeliveryIntent{}).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
	require.Positive(t, bodies.Len())
	for i := range bodies.Len() {
		field := bodies.Get(i)
		m := &messages.DeliveryIntent{}
		fillMessage(m.ProtoReflect().Mutable(field).Message())
		body := m.ProtoReflect().Get(field).Message()
		run := body.Get(body.Descriptor().Fields().ByName("run_id")).String()
		require.NotEmpty(t, run)
		p := pursuit{turn: "turn_other", run: run}
		if field.Name() == "turn_state" {
			require.Empty(t, runOf(m), "it is about one turn of the run")
			require.Equal(t, meetsOther, p.meets(m))
			continue
		}
		require.Equal(t, run, runOf(m), field.Name())
		require.NotEqual(t, meetsOther, p.meets(m), field.Name())
		p.run = "run_other"
		require.Equal(t, meetsOther, p.meets(m), field.Name())
	}
}
