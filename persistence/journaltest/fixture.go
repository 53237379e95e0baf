package journaltest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// session is the key that a rule uses when one is enough.
var session = messages.NewKey("sess_1")

// writer is the owner of a session, as its actor would be: one claim, and the heads it knows.
type writer struct {
	j      persistence.Journal
	key    messages.Key
	expect persistence.Expect
}

func claim(t *testing.T, j persistence.Journal, key messages.Key) *writer {
	t.Helper()
	c, err := j.Claim(t.Context(), key, persistence.Owner{Node: "node-1"})
	require.NoError(t, err)
	return &writer{j: j, key: key, expect: persistence.Expect(c)}
}

// try appends what the writer believes to be next, and waits for the answer.
func (w *writer) try(batch persistence.Batch) (persistence.Appended, error) {
	return appendTo(w.j, w.key, w.expect, batch)
}

// append is try for appends that must succeed.
func (w *writer) append(t *testing.T, batch persistence.Batch) persistence.Appended {
	t.Helper()
	res, err := w.try(batch)
	require.NoError(t, err)
	w.expect.EventHead, w.expect.LedgerHead = res.EventHead, res.LedgerHead
	return res
}

type answer struct {
	res persistence.Appended
	err error
}

func appendTo(
	j persistence.Journal, key messages.Key, expect persistence.Expect, batch persistence.Batch,
) (persistence.Appended, error) {
	answered := make(chan answer, 1)
	j.Append(key, expect, batch, func(res persistence.Appended, err error) { answered <- answer{res, err} })
	a := <-answered
	return a.res, a.err
}

// record makes a record whose payload names it.
func record(stream messages.Stream, payload string) messages.Record {
	typ := "stage_started"
	if stream == messages.StreamLedger {
		typ = "turn_admitted"
	}
	return messages.Record{
		ID: messages.NewRecordID(), Stream: stream, Type: typ, Version: 1, Payload: []byte(payload),
		Time: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC),
	}
}

func event(payload string) messages.Record  { return record(messages.StreamEvents, payload) }
func ledger(payload string) messages.Record { return record(messages.StreamLedger, payload) }

func batchOf(records ...messages.Record) persistence.Batch {
	return persistence.Batch{Records: records}
}

// events makes n events with payloads "prefix-1" to "prefix-n".
func events(prefix string, n int) []messages.Record {
	recs := make([]messages.Record, n)
	for i := range recs {
		recs[i] = event(fmt.Sprintf("%s-%d", prefix, i+1))
	}
	return recs
}

// collect gives copies of a stream's records.
func collect(
	t *testing.T, j persistence.Journal, key messages.Key, stream messages.Stream, after uint64,
) ([]messages.Record, error) {
	t.Helper()
	var recs []messages.Record
	for rec, err := range j.Replay(t.Context(), key, stream, after) {
		if err != nil {
			return recs, err
		}
		rec.Payload = bytes.Clone(rec.Payload)
		recs = append(recs, rec)
	}
	return recs, nil
}

// payloads gives the payloads of a stream, which must be whole, and checks that the sequences have no hole.
func payloads(
	t *testing.T, j persistence.Journal, key messages.Key, stream messages.Stream, after uint64,
) []string {
	t.Helper()
	recs, err := collect(t, j, key, stream, after)
	require.NoError(t, err)
	texts := make([]string, len(recs))
	for i, rec := range recs {
		require.Equal(t, recs[0].Seq+uint64(i), rec.Seq)
		require.Equal(t, stream, rec.Stream)
		texts[i] = string(rec.Payload)
	}
	return texts
}

func info(t *testing.T, j persistence.Journal, key messages.Key) persistence.SessionInfo {
	t.Helper()
	row, err := j.Session(t.Context(), key)
	require.NoError(t, err)
	return row
}
