package bolt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// owner owns a session and appends events to it.
type owner struct {
	j      *Journal
	key    messages.Key
	expect persistence.Expect
}

func newOwner(t testing.TB, j *Journal, id messages.SessionID) *owner {
	t.Helper()
	key := messages.NewKey(id)
	c, err := j.Claim(t.Context(), key, persistence.Owner{})
	require.NoError(t, err)
	return &owner{j, key, persistence.Expect(c)}
}

func eventOf(payload []byte) messages.Record {
	return messages.Record{
		ID: messages.NewRecordID(), Stream: messages.StreamEvents, Type: "stage_completed", Version: 1,
		Time: time.Unix(1_700_000_000, 0), Payload: payload,
	}
}

// start begins an append of n events.
func (w *owner) start(n int, done chan<- error) {
	batch := persistence.Batch{}
	for range n {
		batch.Records = append(batch.Records, eventOf([]byte("event")))
	}
	w.j.Append(w.key, w.expect, batch, func(_ persistence.Appended, err error) { done <- err })
}

func (w *owner) append(n int) error {
	done := make(chan error, 1)
	w.start(n, done)
	err := <-done
	if err == nil {
		w.expect.EventHead += uint64(n)
	}
	return err
}

// count replays a session's events and gives their number.
func count(t testing.TB, j *Journal, key messages.Key) int {
	t.Helper()
	n := 0
	for _, err := range j.Replay(t.Context(), key, messages.StreamEvents, 0) {
		require.NoError(t, err)
		n++
	}
	return n
}
