package directory

import (
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/bolt"
)

// benchSessions are in the journal; of every tenth one in memory every tenth has work.
const benchSessions = 10_000

// BenchmarkList lists 10,000 sessions of a journal on disk: the first page, all pages, and the hundred that are busy.
func BenchmarkList(b *testing.B) {
	journal, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer func() { require.NoError(b, journal.Close()) }()
	d := listed(journal)
	fill(b, d, journal)
	all := func(state State, limit, want int) func(*testing.B) {
		return func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			for b.Loop() {
				got := 0
				for _, page := range walk(b, d, Query{Tenant: messages.DefaultTenant, State: state, Limit: limit}) {
					got += len(page.Sessions)
				}
				require.Equal(b, want, got)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*want), "ns/session")
		}
	}
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := d.List(b.Context(), Query{Tenant: messages.DefaultTenant, After: keyOf(benchSessions / 2).Session, Limit: 100})
			require.NoError(b, err)
			require.Len(b, page.Sessions, 100)
		}
	})
	b.Run("all/pages of 100", all("", 100, benchSessions))
	b.Run("all/pages of 1000", all("", MaxPage, benchSessions))
	b.Run("busy", all(Busy, 100, benchSessions/100))
	b.Run("passivated", all(Passivated, MaxPage, benchSessions*9/10))
}

func fill(b *testing.B, d *Directory, journal *bolt.Journal) {
	b.Helper()
	stored := make(chan error, benchSessions)
	for n := range benchSessions {
		claim, err := journal.Claim(b.Context(), keyOf(n), persistence.Owner{})
		require.NoError(b, err)
		batch := persistence.Batch{Records: []messages.Record{{
			Stream: messages.StreamLedger, ID: messages.RecordID{1, byte(n >> 8), byte(n)}, Time: time.Unix(int64(n), 0),
			Type: "bench", Payload: []byte(strconv.Itoa(n)),
		}}}
		if n%10 == 0 {
			d.roster.entered(keyOf(n))
		}
		if n%100 == 0 {
			batch.Open, batch.Work = persistence.OpenSet, persistence.Work{Running: true, Waiting: 3}
		}
		journal.Append(keyOf(n), persistence.Expect{Epoch: claim.Epoch}, batch, func(_ persistence.Appended, err error) { stored <- err })
	}
	for range benchSessions {
		require.NoError(b, <-stored)
	}
}
