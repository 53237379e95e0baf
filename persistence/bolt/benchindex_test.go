package bolt

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/persistence"
)

// BenchmarkAppendIndexed has one session append an event with an idempotency key, one after the other, while its index is full
// and each key drives another one out. The baseline, in the same rounds, is a session whose index keeps 16 keys. Without
// syncs the file's own work shows; with them it is what a lone session waits for.
func BenchmarkAppendIndexed(b *testing.B) {
	for _, nosync := range []bool{true, false} {
		for _, keep := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("nosync=%v/keep=%d", nosync, keep), func(b *testing.B) { benchIndexed(b, keep, nosync) })
		}
	}
}

func benchIndexed(b *testing.B, keep int, nosync bool) {
	b.Helper()
	const few, each = 16, 200
	fill := func(keep int) *indexed {
		cfg := Config{Path: filepath.Join(b.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler)}
		j, err := open(cfg, nosync)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, j.Close()) })
		x := &indexed{owner: newOwner(b, j, "session"), keep: keep}
		for x.n < keep {
			x.append(b, min(1000, keep-x.n))
		}
		return x
	}
	full, small := fill(keep), fill(few)
	var ours, baseline time.Duration
	for b.Loop() {
		ours += timed(func() { full.round(b, each) })
		baseline += timed(func() { small.round(b, each) })
	}
	appends := float64(b.N) * each
	b.ReportMetric(ours.Seconds()*1e6/appends, "µs/append")
	b.ReportMetric(baseline.Seconds()*1e6/appends, "small-µs/append")
	b.ReportMetric(ours.Seconds()/baseline.Seconds(), "ratio")
}

// indexed is a session that puts keys.
type indexed struct {
	*owner
	keep int
	n    int
}

func (x *indexed) round(b *testing.B, appends int) {
	b.Helper()
	for range appends {
		x.append(b, 1)
	}
}

// append puts so many keys in one append. Their names are as far apart as those of clients are.
func (x *indexed) append(b *testing.B, keys int) {
	b.Helper()
	puts := make([]persistence.IndexPut, keys)
	for i := range puts {
		x.n++
		puts[i] = keyed(fmt.Sprintf("%016x", uint64(x.n)*0x9E3779B97F4A7C15), x.keep)
		puts[i].Value = make([]byte, 90) // a turn's id, a hash and a time
	}
	if err := x.put(puts...); err != nil {
		b.Fatal(err)
	}
}
