package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Every benchmark measures its baseline in the same run and reports the ratio: absolute numbers swing with the disk and its
// other users.

const (
	benchSessions = 256
	benchEach     = 100 // appends of each session in a round
)

// BenchmarkAppend has 256 sessions append one event of 200 bytes at a time and wait for each answer. The baseline is a bare
// group commit on bbolt: the same keys and values, the same batching, but made beforehand and without any check.
func BenchmarkAppend(b *testing.B) {
	j := openForBench(b)
	bare := newBareCommit(b)
	owners := make([]*owner, benchSessions)
	for i := range owners {
		owners[i] = newOwner(b, j, messages.SessionID(fmt.Sprintf("session-%d", i)))
	}
	payload := make([]byte, 200-eventSize(nil))
	var ours, baseline time.Duration
	seq := uint64(0)
	for b.Loop() {
		ours += timed(func() { appendRound(b, owners, payload) })
		baseline += timed(func() { bare.round(b, seq) })
		seq += benchEach
	}
	events := float64(b.N) * benchSessions * benchEach
	b.ReportMetric(events/ours.Seconds(), "events/s")
	b.ReportMetric(events/baseline.Seconds(), "bare-events/s")
	b.ReportMetric(baseline.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(float64(j.appends.Load())/float64(j.commits.Load()), "events/commit")
}

func openForBench(b *testing.B) *Journal {
	b.Helper()
	j, err := Open(Config{Path: filepath.Join(b.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, j.Close()) })
	return j
}

func eventSize(payload []byte) int {
	rec := eventOf(payload)
	return rec.StoredSize()
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func appendRound(b *testing.B, owners []*owner, payload []byte) {
	b.Helper()
	var wg sync.WaitGroup
	for _, o := range owners {
		wg.Go(func() {
			done := make(chan error, 1)
			answer := func(_ persistence.Appended, err error) { done <- err }
			for range benchEach {
				o.j.Append(o.key, o.expect, persistence.Batch{Records: []messages.Record{eventOf(payload)}}, answer)
				if err := <-done; err != nil {
					b.Error(err)
					return
				}
				o.expect.EventHead++
			}
		})
	}
	wg.Wait()
}

// bareCommit is the least that group commit on bbolt with this layout can be.
type bareCommit struct {
	db       *bbolt.DB
	mu       sync.Mutex
	queue    []bareOp
	wake     chan struct{}
	position uint64
	record   []byte
	row      []byte
}

type bareOp struct {
	n    number
	seq  uint64
	done chan struct{}
}

func newBareCommit(b *testing.B) *bareCommit {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare.db")
	require.NoError(b, create(path))
	opts := boltOptions()
	opts.InitialMmapSize = initialMap
	db, err := bbolt.Open(path, 0o600, opts)
	require.NoError(b, err)
	c := &bareCommit{db: db, wake: make(chan struct{}, 1), record: make([]byte, positionLen+200)}
	c.row = (&row{key: messages.NewKey("session-100")}).encode(nil, nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.run(b, stop) })
	b.Cleanup(func() { close(stop); wg.Wait(); require.NoError(b, db.Close()) })
	return c
}

func (c *bareCommit) round(b *testing.B, seq uint64) {
	b.Helper()
	var wg sync.WaitGroup
	for i := range benchSessions {
		wg.Go(func() {
			done := make(chan struct{}, 1)
			for s := range uint64(benchEach) {
				c.mu.Lock()
				c.queue = append(c.queue, bareOp{number(i + 1), seq + s + 1, done})
				c.mu.Unlock()
				select {
				case c.wake <- struct{}{}:
				default:
				}
				<-done
			}
		})
	}
	wg.Wait()
}

func (c *bareCommit) run(b *testing.B, stop <-chan struct{}) {
	b.Helper()
	for {
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		c.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-stop:
				return
			case <-c.wake:
			}
		} else {
			if err := c.db.Update(func(tx *bbolt.Tx) error { return c.write(tx, batch) }); err != nil {
				b.Error(err)
			}
			for _, op := range batch {
				op.done <- struct{}{}
			}
		}
		for range 4 {
			runtime.Gosched()
		}
	}
}

func (c *bareCommit) write(tx *bbolt.Tx, batch []bareOp) error {
	slices.SortFunc(batch, func(x, y bareOp) int { return int(x.n) - int(y.n) })
	records, sessions, feed := tx.Bucket(bucketRecords), tx.Bucket(bucketSessions), tx.Bucket(bucketFeed)
	feed.FillPercent = 1
	place := make([]byte, feedLen)
	var key [recordKey]byte
	for _, op := range batch {
		k := appendRecordKey(key[:0], op.n, messages.StreamEvents, op.seq)
		if err := records.Put(k, c.record); err != nil {
			return err
		}
	}
	for _, op := range batch {
		binary.BigEndian.PutUint64(key[:], uint64(op.n))
		if err := sessions.Put(key[:numberLen], c.row); err != nil {
			return err
		}
		c.position++
		binary.BigEndian.PutUint64(key[:], c.position)
		if err := feed.Put(key[:positionLen], place); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyCounters, counters{}.encode())
}

// BenchmarkReplay reads one session of a million events and decodes each. The baseline scans the same records with a bbolt
// cursor in one transaction, without checksums or sequences, and decodes the same protobuf messages.
func BenchmarkReplay(b *testing.B) {
	const events, perAppend = 1_000_000, 1000
	j := openForBench(b)
	o := newOwner(b, j, "session")
	payload, err := proto.Marshal(&messages.StageCompleted{StageId: "stage-1", Summary: string(bytes.Repeat([]byte("s"), 110))})
	require.NoError(b, err)
	done := make(chan error, 1)
	for range events / perAppend {
		batch := persistence.Batch{}
		for range perAppend {
			batch.Records = append(batch.Records, eventOf(payload))
		}
		j.Append(o.key, o.expect, batch, func(_ persistence.Appended, err error) { done <- err })
		require.NoError(b, <-done)
		o.expect.EventHead += perAppend
	}
	var ours, baseline time.Duration
	for b.Loop() {
		ours += timed(func() { require.Equal(b, events, replayDecoded(b, j, o.key)) })
		baseline += timed(func() { require.Equal(b, events, scanDecoded(b, j)) })
	}
	total := float64(b.N) * events
	b.ReportMetric(total/ours.Seconds(), "events/s")
	b.ReportMetric(total/baseline.Seconds(), "bare-events/s")
	b.ReportMetric(baseline.Seconds()/ours.Seconds(), "ratio")
}

func replayDecoded(b *testing.B, j *Journal, key messages.Key) int {
	b.Helper()
	n := 0
	for rec, err := range j.Replay(b.Context(), key, messages.StreamEvents, 0) {
		if err != nil {
			b.Fatal(err)
		}
		e, err := messages.DecodeEvent(rec.Type, rec.Version, rec.Payload)
		if err != nil || e.EventType() != "stage_completed" {
			b.Fatal(err)
		}
		n++
	}
	return n
}

func scanDecoded(b *testing.B, j *Journal) int {
	b.Helper()
	header := positionLen + eventSize(nil)
	n := 0
	require.NoError(b, j.db.View(func(tx *bbolt.Tx) error {
		for _, v := range all(tx.Bucket(bucketRecords)) {
			m := new(messages.StageCompleted)
			if err := proto.Unmarshal(v[header:], m); err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	return n
}
