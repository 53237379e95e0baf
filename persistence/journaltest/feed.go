package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

func testFeed(t *testing.T, d Driver) {
	fill := func(t *testing.T, j persistence.Journal, n int) {
		t.Helper()
		a, b := claim(t, j, messages.NewKey("a")), claim(t, j, messages.NewKey("b"))
		for i := range n {
			a.append(t, batchOf(event(fmt.Sprintf("a%d", i)), ledger("l")))
			b.append(t, batchOf(ledger("l"), event(fmt.Sprintf("b%d", i))))
		}
	}
	rule(t, d, "YieldsTheEventsOfAllSessionsInOneOrder", func(t *testing.T, j persistence.Journal) {
		fill(t, j, 300)
		var texts []string
		var places []persistence.Position
		for rec, err := range j.Feed(t.Context(), persistence.Position{}, false) {
			require.NoError(t, err)
			require.Equal(t, messages.StreamEvents, rec.Record.Stream)
			require.Equal(t, rec.After.N, rec.Record.Position)
			if len(places) > 0 {
				require.Greater(t, rec.After.N, places[len(places)-1].N)
			}
			texts = append(texts, string(rec.Record.Payload))
			places = append(places, rec.After)
		}
		require.Len(t, texts, 600)
		for i, text := range texts {
			require.Equal(t, fmt.Sprintf("%c%d", 'a'+i%2, i/2), text)
		}
		i := 400
		for rec, err := range j.Feed(t.Context(), places[i-1], false) {
			require.NoError(t, err)
			require.Equal(t, texts[i], string(rec.Record.Payload))
			require.Equal(t, places[i], rec.After)
			i++
		}
		require.Equal(t, 600, i)
		require.NoError(t, firstError(j.Feed(t.Context(), places[599], false)))
	})
	rule(t, d, "AnAppendTellsItsPlaceInTheFeed", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1"), event("e2")))
		res := w.append(t, batchOf(event("e3"), ledger("l"), event("e4")))
		var last persistence.FeedRecord
		for rec, err := range j.Feed(t.Context(), persistence.Position{}, false) {
			require.NoError(t, err)
			last = rec
		}
		require.Equal(t, res.Position, last.After.N)
	})
	rule(t, d, "FollowsUntilTheContextEnds", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("0")))
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		texts := make(chan string)
		ended := make(chan error, 1)
		go func() {
			for rec, err := range j.Feed(ctx, persistence.Position{}, true) {
				if err != nil {
					ended <- err
					return
				}
				texts <- string(rec.Record.Payload)
			}
		}()
		require.Equal(t, "0", <-texts)
		for i := 1; i < 50; i++ {
			w.append(t, batchOf(event(strconv.Itoa(i)), ledger("l")))
			require.Equal(t, strconv.Itoa(i), <-texts)
		}
		cancel(cause)
		require.ErrorIs(t, <-ended, cause)
	})
	rule(t, d, "RefusesAForeignPosition", func(t *testing.T, j persistence.Journal) {
		fill(t, j, 2)
		st, err := j.Stats(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, st.Incarnation)
		for _, p := range []persistence.Position{
			{Incarnation: "another", N: 1}, {N: 1}, {Incarnation: st.Incarnation, N: 1000}, {Incarnation: "another"},
		} {
			require.ErrorIs(t, firstError(j.Feed(t.Context(), p, false)), persistence.ErrStaleCursor, "%+v", p)
			require.ErrorIs(t, firstError(j.Feed(t.Context(), p, true)), persistence.ErrStaleCursor, "%+v", p)
		}
		require.NoError(t, firstError(j.Feed(t.Context(), persistence.Position{Incarnation: st.Incarnation}, false)))
	})
	rule(t, d, "GoesOnOverTheHolesOfDeletedSessions", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(events("gone", 600)...))
		claim(t, j, messages.NewKey("stays")).append(t, batchOf(event("stays")))
		require.NoError(t, j.Delete(t.Context(), session, w.expect))
		n := 0
		var after persistence.Position
		for rec, err := range j.Feed(t.Context(), persistence.Position{}, false) {
			require.NoError(t, err)
			require.Equal(t, "stays", string(rec.Record.Payload))
			after = rec.After
			n++
		}
		require.Equal(t, 1, n)
		claim(t, j, messages.NewKey("new")).append(t, batchOf(event("new")))
		for rec, err := range j.Feed(t.Context(), after, false) {
			require.NoError(t, err)
			require.Equal(t, "new", string(rec.Record.Payload))
			n++
		}
		require.Equal(t, 2, n)
	})
}
