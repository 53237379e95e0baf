package bolt

import (
	"strconv"
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
	keeps  int // > 0: each append puts an idempotency key, which is its head, and keeps so many
}

func newOwner(t testing.TB, j *Journal, id messages.SessionID) *owner {
	t.Helper()
	key := messages.NewKey(id)
	c, err := j.Claim(t.Context(), key, persistence.Owner{})
	require.NoError(t, err)
	return &owner{j: j, key: key, expect: persistence.Expect(c)}
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
	if w.keeps > 0 {
		batch.Index = []persistence.IndexPut{keyed(strconv.FormatUint(w.expect.EventHead+uint64(n), 10), w.keeps)}
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

// put appends one event with puts of the index.
func (w *owner) put(puts ...persistence.IndexPut) error {
	done := make(chan error, 1)
	batch := persistence.Batch{Records: []messages.Record{eventOf([]byte("event"))}, Index: puts}
	w.j.Append(w.key, w.expect, batch, func(_ persistence.Appended, err error) { done <- err })
	err := <-done
	if err == nil {
		w.expect.EventHead++
	}
	return err
}

// keyed is a put of an idempotency key.
func keyed(name string, keep int) persistence.IndexPut {
	return persistence.IndexPut{Index: persistence.IndexIdempotency, Name: name, Value: []byte("value of " + name), Keep: keep}
}

// has says whether a session has an idempotency key.
func has(t testing.TB, j *Journal, key messages.Key, name string) bool {
	t.Helper()
	_, found, err := j.Lookup(t.Context(), key, persistence.IndexIdempotency, name)
	require.NoError(t, err)
	return found
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
