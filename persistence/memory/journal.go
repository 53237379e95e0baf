// Package memory is the journal driver for tests: it keeps what a disk would keep (the encoded bytes of every record), hands
// out copies only, and answers appends from a goroutine of its own, so that code which leans on shared memory or on an
// immediate answer fails here as it would with a file. Nothing survives the process.
//
// It works inside testing/synctest bubbles: there is no goroutine while no append waits.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Config of a Journal. The zero value has no limits.
type Config struct {
	// MaxRecordBytes bounds one record, MaxBatchBytes one append; more is ErrTooLarge. 0 is no limit.
	MaxRecordBytes int
	MaxBatchBytes  int
	// QueueLimit bounds the appends that wait; more get ErrFull. 0 is no limit.
	QueueLimit int
}

// Journal is a persistence.Journal in memory.
type Journal struct {
	cfg         Config
	incarnation string

	mu       sync.Mutex
	sessions map[messages.Key]*session
	feed     []feedEntry
	claims   uint64
	events   uint64
	appends  uint64
	queue    []appendOp
	running  bool          // a goroutine carries out the queue
	idle     chan struct{} // closed when that goroutine ends; made by Close
	closed   bool
	grown    chan struct{} // closed and replaced when the feed grows or the journal closes
}

var _ persistence.Journal = (*Journal)(nil)

// session is what a row and its records are on disk.
type session struct {
	info     persistence.SessionInfo // Epoch: of the last append
	claim    uint64
	events   [][]byte // stored form of sequence i+1
	ledger   [][]byte // stored form of sequence LedgerStart+i
	index    map[persistence.Index]*index
	lastIDs  []messages.RecordID
	lastEnds persistence.Appended
	deleted  bool
}

// feedEntry is the place of one event; seq 0 is the hole that a deleted session leaves.
type feedEntry struct {
	key messages.Key
	seq uint64
}

// New makes an empty journal.
func New(cfg Config) *Journal {
	return &Journal{
		cfg:         cfg,
		incarnation: uuid.NewString(),
		sessions:    make(map[messages.Key]*session),
		grown:       make(chan struct{}),
	}
}

// Claim implements persistence.Journal.
func (j *Journal) Claim(ctx context.Context, key messages.Key, _ persistence.Owner) (persistence.Claim, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.Claim{}, err
	}
	if err := key.Validate(); err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: %w: %w", key, persistence.ErrInvalid, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.find(key)
	if err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: %w", key, err)
	}
	if s == nil {
		s = &session{info: persistence.SessionInfo{Key: key}, index: make(map[persistence.Index]*index)}
		j.sessions[key] = s
	}
	j.claims++
	s.claim = j.claims
	return persistence.Claim{Epoch: s.claim, EventHead: s.info.EventHead, LedgerHead: s.info.LedgerHead}, nil
}

// Session implements persistence.Journal.
func (j *Journal) Session(ctx context.Context, key messages.Key) (persistence.SessionInfo, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.SessionInfo{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.find(key)
	if err == nil && (s == nil || !s.stored()) {
		err = persistence.ErrUnknownSession
	}
	if err != nil {
		return persistence.SessionInfo{}, fmt.Errorf("session %s: %w", key, err)
	}
	return s.info, nil
}

// Lookup implements persistence.Journal.
func (j *Journal) Lookup(
	ctx context.Context, key messages.Key, index persistence.Index, name string,
) ([]byte, bool, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.find(key)
	if err != nil {
		return nil, false, fmt.Errorf("look up an index entry of %s: %w", key, err)
	}
	if s == nil {
		return nil, false, nil
	}
	value, ok := s.lookUp(index, name)
	return slices.Clone(value), ok, nil
}

// Delete implements persistence.Journal.
func (j *Journal) Delete(ctx context.Context, key messages.Key, expect persistence.Expect) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return fmt.Errorf("delete %s: %w", key, persistence.ErrClosed)
	}
	s := j.sessions[key]
	if s == nil || !s.stored() {
		return fmt.Errorf("delete %s: %w", key, persistence.ErrUnknownSession)
	}
	if s.deleted {
		return nil
	}
	if err := s.expected(expect); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	for i := range j.feed {
		if j.feed[i].key == key {
			j.feed[i] = feedEntry{}
		}
	}
	j.events -= uint64(len(s.events))
	s.deleted, s.info.Open = true, false
	s.events, s.ledger, s.index = nil, nil, nil
	return nil
}

// Stats implements persistence.Journal.
func (j *Journal) Stats(ctx context.Context) (persistence.Stats, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.Stats{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return persistence.Stats{}, fmt.Errorf("journal stats: %w", persistence.ErrClosed)
	}
	st := persistence.Stats{
		Driver: "memory", Incarnation: j.incarnation, Events: j.events, Appends: j.appends, Commits: j.appends,
	}
	for _, s := range j.sessions {
		if s.stored() && !s.deleted {
			st.Sessions++
		}
		if s.info.Open {
			st.Open++
		}
	}
	return st, nil
}

// Healthy implements persistence.Journal.
func (j *Journal) Healthy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return persistence.ErrClosed
	}
	return nil
}

// Close implements persistence.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	close(j.grown)
	if !j.running {
		j.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	j.idle = idle
	j.mu.Unlock()
	<-idle
	return nil
}

// list gives the rows that keep says, in the order of their keys.
func (j *Journal) list(keep func(*session) bool) ([]persistence.SessionInfo, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, persistence.ErrClosed
	}
	var infos []persistence.SessionInfo
	for _, s := range j.sessions {
		if s.stored() && !s.deleted && keep(s) {
			infos = append(infos, s.info)
		}
	}
	slices.SortFunc(infos, func(a, b persistence.SessionInfo) int {
		return cmp.Or(cmp.Compare(a.Key.Tenant, b.Key.Tenant), cmp.Compare(a.Key.Session, b.Key.Session))
	})
	return infos, nil
}

// find gives the session of a key, nil if there is none. The caller holds mu.
func (j *Journal) find(key messages.Key) (*session, error) {
	if j.closed {
		return nil, persistence.ErrClosed
	}
	s := j.sessions[key]
	if s != nil && s.deleted {
		return nil, persistence.ErrDeleted
	}
	return s, nil
}

// stored says whether the session has, or had, a record: a claim alone makes none.
func (s *session) stored() bool { return s.info.EventHead+s.info.LedgerHead > 0 }

// expected compares what a writer believes with what is.
func (s *session) expected(e persistence.Expect) error {
	if s.claim == 0 || e.Epoch != s.claim {
		return fmt.Errorf("%w: epoch %d, the claim has %d", persistence.ErrFenced, e.Epoch, s.claim)
	}
	if e.EventHead != s.info.EventHead || e.LedgerHead != s.info.LedgerHead {
		return &persistence.ConflictError{
			Key: s.info.Key, Expect: e, EventHead: s.info.EventHead, LedgerHead: s.info.LedgerHead,
		}
	}
	return nil
}

func unixNano(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }
