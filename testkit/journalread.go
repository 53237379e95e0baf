package testkit

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Claim implements persistence.Journal.
func (j *FaultyJournal) Claim(ctx context.Context, key messages.Key, owner persistence.Owner) (persistence.Claim, error) {
	if err := j.take(&j.claims); err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: injected: %w", key, err)
	}
	return j.inner.Claim(ctx, key, owner)
}

// Replay implements persistence.Journal.
func (j *FaultyJournal) Replay(
	ctx context.Context, key messages.Key, stream messages.Stream, after uint64,
) iter.Seq2[messages.Record, error] {
	return func(yield func(messages.Record, error) bool) {
		j.countReplay()
		if err := j.take(&j.reads); err != nil {
			yield(messages.Record{}, fmt.Errorf("replay %s: injected: %w", key, err))
			return
		}
		for rec, err := range j.inner.Replay(ctx, key, stream, after) {
			if injected := j.cutReplay(); injected != nil {
				yield(messages.Record{}, fmt.Errorf("replay %s: injected: %w", key, injected))
				return
			}
			if bad := j.corrupt(key, stream, rec.Seq); err == nil && bad != nil {
				rec, err = messages.Record{}, bad
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// FailReplaysAfter makes replays fail with err once they have given n more records, of all streams together. The failure is
// used up by the replay that it hits.
func (j *FaultyJournal) FailReplaysAfter(n int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cut = &replayCut{left: n, err: err}
}

// Replays is the number of replays that were begun.
func (j *FaultyJournal) Replays() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.replays
}

// replayCut is what FailReplaysAfter asks for.
type replayCut struct {
	left int
	err  error
}

func (j *FaultyJournal) countReplay() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.replays++
}

// cutReplay counts a record down, or gives the error in its place.
func (j *FaultyJournal) cutReplay() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.cut == nil:
		return nil
	case j.cut.left > 0:
		j.cut.left--
		return nil
	}
	err := j.cut.err
	j.cut = nil
	return err
}

// Lookup implements persistence.Journal.
func (j *FaultyJournal) Lookup(
	ctx context.Context, key messages.Key, index persistence.Index, name string,
) ([]byte, bool, error) {
	if err := j.take(&j.reads); err != nil {
		return nil, false, fmt.Errorf("look up an index entry of %s: injected: %w", key, err)
	}
	return j.inner.Lookup(ctx, key, index, name)
}

// Session implements persistence.Journal.
func (j *FaultyJournal) Session(ctx context.Context, key messages.Key) (persistence.SessionInfo, error) {
	if err := j.take(&j.reads); err != nil {
		return persistence.SessionInfo{}, fmt.Errorf("session %s: injected: %w", key, err)
	}
	return j.inner.Session(ctx, key)
}

func (j *FaultyJournal) corrupt(key messages.Key, stream messages.Stream, seq uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.damaged[place{key, stream, seq}] {
		return nil
	}
	return &persistence.CorruptError{Key: key, Stream: stream, Seq: seq, Reason: "injected damage"}
}

func (j *FaultyJournal) take(errs *[]error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// Feed implements persistence.Journal.
func (j *FaultyJournal) Feed(
	ctx context.Context, after persistence.Position, follow bool,
) iter.Seq2[persistence.FeedRecord, error] {
	return func(yield func(persistence.FeedRecord, error) bool) {
		for rec, err := range j.inner.Feed(ctx, after, follow) {
			if bad := j.corrupt(rec.Key, messages.StreamEvents, rec.Record.Seq); err == nil && bad != nil {
				rec, err = persistence.FeedRecord{Key: rec.Key, After: rec.After}, bad
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Sessions implements persistence.Journal.
func (j *FaultyJournal) Sessions(
	ctx context.Context, tenant messages.TenantID, after messages.SessionID,
) iter.Seq2[persistence.SessionInfo, error] {
	return j.inner.Sessions(ctx, tenant, after)
}

// OpenSessions implements persistence.Journal.
func (j *FaultyJournal) OpenSessions(ctx context.Context) iter.Seq2[persistence.SessionInfo, error] {
	return j.inner.OpenSessions(ctx)
}

// Delete implements persistence.Journal.
func (j *FaultyJournal) Delete(ctx context.Context, key messages.Key, expect persistence.Expect) error {
	return j.inner.Delete(ctx, key, expect)
}

// Stats implements persistence.Journal.
func (j *FaultyJournal) Stats(ctx context.Context) (persistence.Stats, error) {
	return j.inner.Stats(ctx)
}

// Healthy implements persistence.Journal.
func (j *FaultyJournal) Healthy() error { return j.inner.Healthy() }

// ReadAll gives the records of one stream of a session, as stored; the payloads are the caller's.
func ReadAll(
	ctx context.Context, j persistence.Journal, key messages.Key, stream messages.Stream,
) ([]messages.Record, error) {
	var all []messages.Record
	for rec, err := range j.Replay(ctx, key, stream, 0) {
		if err != nil {
			return all, err
		}
		rec.Payload = bytes.Clone(rec.Payload)
		all = append(all, rec)
	}
	return all, nil
}
