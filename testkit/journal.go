package testkit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
)

// FaultyJournal is a persistence.Journal that fails on demand and else does what the one inside does. Its appends are carried
// out one after the other in the order of the calls, so that "the next append" means something; they never block the caller.
//
// A fault is used up by the append that it hits. Faults hit appends in the order in which they were set.
type FaultyJournal struct {
	inner persistence.Journal

	mu       sync.Mutex
	queue    []heldAppend
	running  bool
	held     bool
	delay    time.Duration
	faults   []fault
	claims   []error
	reads    []error
	damaged  map[place]bool
	limit    int // of the queue; 0 = none
	appended int
	refused  int
	idle     chan struct{} // closed when the queue is empty; set while Close waits
	death    *death        // set by DieAt
	pace     func()        // set by Pace
	replays  int
	cut      *replayCut // set by FailReplaysAfter
}

var _ persistence.Journal = (*FaultyJournal)(nil)

type heldAppend struct {
	key    messages.Key
	expect persistence.Expect
	batch  persistence.Batch
	done   func(persistence.Appended, error)
	full   bool // it found the queue full, and is told so when it is its turn
}

// place names a record.
type place struct {
	key    messages.Key
	stream messages.Stream
	seq    uint64
}

// fault is what happens to one append.
type fault struct {
	err error
	// store: the append is carried out, and the error hides how it went.
	store bool
	// conflict: the error is a ConflictError with the journal's heads.
	conflict bool
}

// NewFaultyJournal wraps inner; nil is a new memory journal.
func NewFaultyJournal(inner persistence.Journal) *FaultyJournal {
	if inner == nil {
		inner = memory.New(memory.Config{})
	}
	return &FaultyJournal{inner: inner, damaged: make(map[place]bool)}
}

// FailNext makes the next n appends fail with err; nothing is stored.
func (j *FaultyJournal) FailNext(n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for range n {
		j.faults = append(j.faults, fault{err: err})
	}
}

// ConflictNext makes the next append fail with persistence.ErrConflict; nothing is stored.
func (j *FaultyJournal) ConflictNext() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, fault{err: persistence.ErrConflict, conflict: true})
}

// UnknownNext makes the next append fail with persistence.ErrUnknown, as a lost answer does; stored says whether it is carried out.
func (j *FaultyJournal) UnknownNext(stored bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, fault{err: persistence.ErrUnknown, store: stored})
}

// Pass lets the next n appends go well, before the faults that are set later.
func (j *FaultyJournal) Pass(n int) { j.FailNext(n, nil) }

// FailClaims makes the next n claims fail with err.
func (j *FaultyJournal) FailClaims(n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.claims = append(j.claims, slices.Repeat([]error{err}, n)...)
}

// FailReads makes the next n calls of Replay, Lookup and Session fail with err.
func (j *FaultyJournal) FailReads(n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads = append(j.reads, slices.Repeat([]error{err}, n)...)
}

// StealEpoch claims the session, as another node would: the writer before gets persistence.ErrFenced from its next append on.
func (j *FaultyJournal) StealEpoch(ctx context.Context, key messages.Key) (persistence.Claim, error) {
	return j.inner.Claim(ctx, key, persistence.Owner{Node: "thief"})
}

// Damage makes a record unreadable, as a flipped bit on a disk does: replays and feeds find it and say persistence.ErrCorrupt.
func (j *FaultyJournal) Damage(key messages.Key, stream messages.Stream, seq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.damaged[place{key, stream, seq}] = true
}

// Repair ends Damage of a record; it says whether there was any.
func (j *FaultyJournal) Repair(key messages.Key, stream messages.Stream, seq uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := place{key, stream, seq}
	was := j.damaged[at]
	delete(j.damaged, at)
	return was
}

// LimitQueue lets at most n appends wait; more get persistence.ErrFull. 0 is no limit.
func (j *FaultyJournal) LimitQueue(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.limit = n
}

// Delay makes every append from now on take this long; 0 ends it.
func (j *FaultyJournal) Delay(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.delay = d
}

// Pace calls wait after each append and before its answer; nil ends it. With the yield of a Schedule an answer takes its turn
// with all else, so that anything may come while an append is under way.
func (j *FaultyJournal) Pace(wait func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pace = wait
}

// Hold keeps appends waiting until Release.
func (j *FaultyJournal) Hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = true
}

// Release carries out what waits, and ends Hold.
func (j *FaultyJournal) Release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = false
	j.run()
}

// Waiting is the number of appends that were taken and not answered.
func (j *FaultyJournal) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue)
}

// Appends is the number of appends that were stored, and of those that were not.
func (j *FaultyJournal) Appends() (stored, failed int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended, j.refused
}

// Append implements persistence.Journal.
func (j *FaultyJournal) Append(
	key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error),
) {
	op := heldAppend{key: key, expect: expect, batch: cloneBatch(batch), done: done}
	j.mu.Lock()
	defer j.mu.Unlock()
	op.full = j.limit > 0 && len(j.queue) >= j.limit
	j.queue = append(j.queue, op)
	j.run()
}

// cloneBatch copies what the caller may use again.
func cloneBatch(b persistence.Batch) persistence.Batch {
	b.Records = slices.Clone(b.Records)
	for i := range b.Records {
		b.Records[i].Payload = bytes.Clone(b.Records[i].Payload)
	}
	b.Index = slices.Clone(b.Index)
	for i := range b.Index {
		b.Index[i].Value = bytes.Clone(b.Index[i].Value)
	}
	return b
}

// run starts the goroutine that empties the queue, which ends with it: a bubble must not be kept alive. The caller holds mu.
func (j *FaultyJournal) run() {
	if j.running || j.held || len(j.queue) == 0 {
		return
	}
	j.running = true
	go j.drain()
}

func (j *FaultyJournal) drain() {
	for {
		j.mu.Lock()
		if j.held || len(j.queue) == 0 {
			j.running = false
			if j.idle != nil && len(j.queue) == 0 {
				close(j.idle)
				j.idle = nil
			}
			j.mu.Unlock()
			return
		}
		op, delay := j.queue[0], j.delay
		j.mu.Unlock()
		if delay > 0 {
			<-time.NewTimer(delay).C
		}
		store, tell := j.alive(op)
		var res persistence.Appended
		var err error
		if store {
			res, err = j.carryOut(op)
		}
		j.mu.Lock()
		pace := j.pace
		j.mu.Unlock()
		if pace != nil {
			pace()
		}
		j.mu.Lock()
		j.queue = j.queue[1:]
		j.mu.Unlock()
		if tell {
			op.done(res, err)
		}
	}
}

func (j *FaultyJournal) carryOut(op heldAppend) (res persistence.Appended, err error) {
	j.mu.Lock()
	f := fault{store: true}
	switch {
	case op.full:
		f = fault{err: persistence.ErrFull}
	case len(j.faults) > 0:
		f, j.faults = j.faults[0], j.faults[1:]
		f.store = f.store || f.err == nil
	}
	j.mu.Unlock()
	stored := false
	if f.store {
		res, err = j.store(op)
		stored = err == nil
	}
	if f.conflict {
		f.err = j.conflict(op)
	}
	if f.err != nil && (err == nil || !f.store) {
		res, err = persistence.Appended{}, fmt.Errorf("append to %s: injected: %w", op.key, f.err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if stored {
		j.appended++
	} else {
		j.refused++
	}
	return res, err
}

func (j *FaultyJournal) store(op heldAppend) (persistence.Appended, error) {
	type answer struct {
		res persistence.Appended
		err error
	}
	answered := make(chan answer, 1)
	j.inner.Append(op.key, op.expect, op.batch, func(res persistence.Appended, err error) { answered <- answer{res, err} })
	a := <-answered
	return a.res, a.err
}

func (j *FaultyJournal) conflict(op heldAppend) error {
	c := &persistence.ConflictError{Key: op.key, Expect: op.expect}
	if info, err := j.inner.Session(context.Background(), op.key); err == nil {
		c.EventHead, c.LedgerHead = info.EventHead, info.LedgerHead
	}
	return c
}

// Close implements persistence.Journal: it releases what is held and waits for it.
func (j *FaultyJournal) Close() error {
	j.mu.Lock()
	j.held = false
	j.run()
	var idle chan struct{}
	if j.running {
		if j.idle == nil {
			j.idle = make(chan struct{})
		}
		idle = j.idle
	}
	j.mu.Unlock()
	if idle != nil {
		<-idle
	}
	return j.inner.Close()
}
