package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// rows is a journal of nothing but rows, sorted.
type rows struct {
	persistence.Journal
	all []row
}

type row struct {
	info    persistence.SessionInfo
	damaged bool
}

func (r row) read() (persistence.SessionInfo, error) {
	if r.damaged {
		return persistence.SessionInfo{}, fmt.Errorf("read: %w", &persistence.CorruptError{Key: r.info.Key, Reason: "row"})
	}
	return r.info, nil
}

func (j *rows) Sessions(
	ctx context.Context, tenant messages.TenantID, after messages.SessionID,
) iter.Seq2[persistence.SessionInfo, error] {
	return func(yield func(persistence.SessionInfo, error) bool) {
		at, found := j.find(messages.Key{Tenant: tenant, Session: after})
		if found && after != "" {
			at++
		}
		for _, r := range j.all[at:] {
			if r.info.Key.Tenant != tenant {
				return
			}
			if err := context.Cause(ctx); err != nil {
				yield(persistence.SessionInfo{}, err)
				return
			}
			if !yield(r.read()) {
				return
			}
		}
	}
}

func (j *rows) Session(_ context.Context, key messages.Key) (persistence.SessionInfo, error) {
	at, found := j.find(key)
	if !found {
		return persistence.SessionInfo{}, persistence.ErrUnknownSession
	}
	return j.all[at].read()
}

func (j *rows) find(key messages.Key) (int, bool) {
	return slices.BinarySearchFunc(j.all, key, func(r row, key messages.Key) int { return compareKeys(r.info.Key, key) })
}

func keyOf(n int) messages.Key { return messages.NewKey(messages.SessionID(fmt.Sprintf("s%06d", n))) }

// listed is a directory without its actor: the list needs none.
func listed(journal persistence.Journal) *Directory {
	return &Directory{journal: journal, roster: new(roster)}
}

// walk follows Next to the end.
func walk(t require.TestingT, d *Directory, q Query) (pages []Page) {
	for {
		page, err := d.List(context.Background(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Sessions), q.Limit)
		pages = append(pages, page)
		if page.Next == "" {
			return pages
		}
		require.Greater(t, page.Next, q.After, "it goes on")
		q.After = page.Next
	}
}

// The pages of a list are the sessions in its state, in order; all pages but the last are full, and that one is not empty.
func TestPagesAreWhatAFilterOfAllGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		journal := new(rows)
		d := listed(journal)
		want := map[State][]messages.Key{}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // repeatable on purpose
		// Many or few of them in memory, so that both scans have runs without a match.
		many, active, open := r.IntN(700), r.Float64(), r.Float64()
		for n := range many {
			key := keyOf(n)
			one, state := row{info: persistence.SessionInfo{Key: key, Open: r.Float64() < open}}, Passivated
			if r.Float64() < active {
				d.roster.entered(key)
				if state = Idle; one.info.Open {
					state = Busy
				}
			}
			switch r.IntN(10) {
			case 0:
				one.damaged, state = true, Quarantined
			case 1:
				d.roster.refuses(key)
				state = Quarantined
			}
			journal.all = append(journal.all, one)
			want[state], want[""] = append(want[state], key), append(want[""], key)
		}
		other := messages.Key{Tenant: "other", Session: "s000500"}
		d.roster.entered(other)
		journal.all = append(journal.all, row{info: persistence.SessionInfo{Key: other, Open: true}})
		d.roster.entered(messages.NewKey("s000500x")) // a name that somebody asked for: it has no row
		for _, state := range []State{"", Busy, Idle, Passivated, Quarantined} {
			limit := 1 + r.IntN(300)
			pages := walk(t, d, Query{Tenant: messages.DefaultTenant, State: state, Limit: limit})
			var got []messages.Key
			for i, page := range pages {
				if i < len(pages)-1 {
					require.Len(t, page.Sessions, limit)
				}
				require.True(t, len(page.Sessions) > 0 || len(pages) == 1)
				for _, s := range page.Sessions {
					got = append(got, s.Key)
					if state != "" && s.State != state {
						t.Fatalf("%s is %s in a list of %s", s.Key, s.State, state)
					}
				}
			}
			require.Equal(t, want[state], got, "state %q", state)
		}
	})
}

func TestOnePageLooksAtABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	journal := new(rows)
	const many = scanNone + 2*scanSome + 5
	for n := range many {
		journal.all = append(journal.all, row{info: persistence.SessionInfo{Key: keyOf(n)}})
	}
	d := listed(journal)
	quarantined := []int{7, scanSome + 7, many - 1}
	for _, n := range quarantined {
		d.roster.refuses(keyOf(n))
	}
	pages := walk(t, d, Query{Tenant: messages.DefaultTenant, State: Quarantined, Limit: 10})
	var sizes []int
	for _, page := range pages {
		sizes = append(sizes, len(page.Sessions))
	}
	require.Equal(t, []int{1, 1, 0, 1}, sizes)
	require.Equal(t, keyOf(scanSome-1).Session, pages[0].Next)

	d.roster.entered(keyOf(many - 2))
	pages = walk(t, d, Query{Tenant: messages.DefaultTenant, State: Idle, Limit: 10})
	require.Len(t, pages, 1, "those in memory are found among any number of others")
	require.Equal(t, keyOf(many-2), pages[0].Sessions[0].Key)
}

func TestAQueryIsChecked(t *testing.T) {
	t.Parallel()
	d := listed(new(rows))
	for name, q := range map[string]Query{
		"state": {State: "sleepy", Limit: 1}, "no limit": {}, "limit": {Limit: MaxPage + 1}, "after": {After: "no id", Limit: 1},
	} {
		_, err := d.List(t.Context(), q)
		var f *messages.Failure
		require.ErrorAs(t, err, &f, name)
		require.Equal(t, string(messages.CodeInvalidField), f.GetCode(), name)
	}
	_, err := d.List(t.Context(), Query{Limit: MaxPage, After: "anything"})
	require.NoError(t, err, "an id that no session has")
}

// What ends a scan is an error of the list; a damage without a name is not.
func TestAListFailsAsItsJournalDoes(t *testing.T) {
	t.Parallel()
	d := listed(&rows{all: []row{{info: persistence.SessionInfo{Key: messages.Key{Tenant: messages.DefaultTenant}}, damaged: true}}})
	page, err := d.List(t.Context(), Query{Tenant: messages.DefaultTenant, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, page)

	d = listed(&rows{all: []row{{info: persistence.SessionInfo{Key: keyOf(1)}}}})
	gone := errors.New("the reader has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err = d.List(ctx, Query{Tenant: messages.DefaultTenant, Limit: 1})
	require.ErrorIs(t, err, gone)
}

func TestTheRosterRemembersABoundedNumberOfQuarantines(t *testing.T) {
	t.Parallel()
	r := new(roster)
	for n := range maxQuarantined + 5 {
		r.refuses(keyOf(n))
	}
	require.Len(t, r.quarantined, maxQuarantined)
	r.left(keyOf(1), true)
	_, quarantined := r.look(keyOf(1))
	require.True(t, quarantined)
	r.left(keyOf(1), false) // its next activation succeeded
	_, quarantined = r.look(keyOf(1))
	require.False(t, quarantined)
}

// A directory that restarts has no session: they ended with it.
func TestANewTableHasNoSession(t *testing.T) {
	t.Parallel()
	r := new(roster)
	r.entered(keyOf(1))
	r.refuses(keyOf(2))
	newTable(nil, new(session.Deps), r)
	active, quarantined := r.look(keyOf(1))
	require.False(t, active || quarantined)
	_, quarantined = r.look(keyOf(2))
	require.False(t, quarantined)
}
