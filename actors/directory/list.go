package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// State is where a session is, as a list tells it.
type State string

// States of a session. Each has exactly one.
const (
	// Busy: in memory, with a turn that has not ended.
	Busy State = "busy"
	// Idle: in memory, and all its turns have ended.
	Idle State = "idle"
	// Passivated: not in memory. It may have work (Summary.Work): that is left by a process that ended, and goes on when the
	// session is activated.
	Passivated State = "passivated"
	// Quarantined: it serves nothing, since its row is damaged, or its records, which its last activation in this process found.
	Quarantined State = "quarantined"
)

// Valid says whether s is one of the states.
func (s State) Valid() bool {
	switch s {
	case Busy, Idle, Passivated, Quarantined:
		return true
	}
	return false
}

// Summary is one session in a list.
type Summary struct {
	// SessionInfo is the journal's row; of a damaged row only the key is known.
	persistence.SessionInfo
	State State
	// Damaged: the row cannot be read. The session is quarantined.
	Damaged bool
}

// MaxPage bounds Query.Limit.
const MaxPage = 1000

// Query asks for a page of the list.
type Query struct {
	Tenant messages.TenantID
	// State, "" = all.
	State State
	// After is the Next of the page before, or any other session id; "" = from the first.
	After messages.SessionID
	// Limit is the most sessions of the page, 1 to MaxPage.
	Limit int
}

// Page is a part of the list.
type Page struct {
	// Sessions in the byte order of their ids.
	Sessions []Summary
	// Next goes on behind this page; "" = there are no more. The session of this id need not be in the page.
	Next messages.SessionID
}

// The work of one page: after so many sessions that were looked at it ends, with what it has, and Next goes on.
const (
	scanSome = 10 * MaxPage
	// scanNone is for a page that has found none.
	scanNone = 10 * scanSome
)

// List gives a page of a tenant's sessions. It asks no session: it reads the journal's rows and knows which sessions are in
// memory, so it works the same after a restart, and costs those that it lists nothing.
//
// Whoever follows Next to the end gets every session that existed, and was in the state, all the while, and none twice. A page
// is full, or the last one, unless 10,000 sessions were looked at: then it may be shorter, and after 100,000 without a match
// even empty. A row is as of the last append; together with the state it is a picture of that moment, not a lock.
//
// Errors: a Failure invalid_field; those of persistence.Journal.Sessions.
func (d *Directory) List(ctx context.Context, q Query) (Page, error) {
	if err := q.validate(); err != nil {
		return Page{}, err
	}
	scan := d.rows
	if q.State == Busy || q.State == Idle {
		scan = d.active
	}
	var page Page
	last, looked := q.After, 0
	for s, err := range scan(ctx, q.Tenant, q.After) {
		if err != nil {
			return Page{}, fmt.Errorf("list sessions: %w", err)
		}
		if looked == scanNone || looked >= scanSome && len(page.Sessions) > 0 {
			page.Next = last
			return page, nil
		}
		looked++
		if q.State == "" || q.State == s.State {
			if len(page.Sessions) == q.Limit {
				page.Next = page.Sessions[q.Limit-1].Key.Session
				return page, nil
			}
			page.Sessions = append(page.Sessions, s)
		}
		last = s.Key.Session
	}
	return page, nil
}

func (q Query) validate() error {
	if q.State != "" && !q.State.Valid() {
		return messages.Fail(messages.CodeInvalidField,
			fmt.Sprintf("state is not %s, %s, %s or %s", Busy, Idle, Passivated, Quarantined))
	}
	if q.Limit < 1 || q.Limit > MaxPage {
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("limit is %d, want 1 to %d", q.Limit, MaxPage))
	}
	if q.After != "" {
		if _, err := messages.ParseSessionID(string(q.After)); err != nil {
			return messages.Fail(messages.CodeInvalidField, "after is no cursor: it is the next of a page, or a session id")
		}
	}
	return nil
}

// rows goes through the journal's rows.
func (d *Directory) rows(ctx context.Context, tenant messages.TenantID, after messages.SessionID) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		for info, err := range d.journal.Sessions(ctx, tenant, after) {
			s, err := d.summary(info, err)
			if err == nil && s.Key.Session == "" {
				continue // a damage that hides the session's name: there is nothing to list
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// active goes through the sessions in memory, so that a few of them are found among any number of rows.
func (d *Directory) active(ctx context.Context, tenant messages.TenantID, after messages.SessionID) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		for key := range d.roster.sessions(tenant, after) {
			info, err := d.journal.Session(ctx, key)
			if errors.Is(err, persistence.ErrUnknownSession) || errors.Is(err, persistence.ErrDeleted) {
				continue // a name that somebody asked for
			}
			s, err := d.summary(info, err)
			if err == nil && s.State == Passivated {
				continue // it has left meanwhile
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// summary puts a row, or the damage found in its place, together with what the roster knows now. The row was read first: were
// it the other way round, one that is activated in between would be shown with new work as if it were not in memory.
func (d *Directory) summary(info persistence.SessionInfo, err error) (Summary, error) {
	var damage *persistence.CorruptError
	switch {
	case errors.As(err, &damage):
		return Summary{SessionInfo: persistence.SessionInfo{Key: damage.Key}, State: Quarantined, Damaged: true}, nil
	case err != nil:
		return Summary{}, err
	}
	s := Summary{SessionInfo: info, State: Passivated}
	active, quarantined := d.roster.look(info.Key)
	switch {
	case quarantined:
		s.State = Quarantined
	case active && info.Open:
		s.State = Busy
	case active:
		s.State = Idle
	}
	return s, nil
}
