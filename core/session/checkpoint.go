package session

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// checkpoint writes the whole folded ledger down; restore is its reverse.
func (l Ledger) checkpoint() *messages.LedgerCheckpoint {
	c := &messages.LedgerCheckpoint{
		Config:         l.Config,
		History:        records(l.History),
		OutputReserved: l.OutputReserved,
		LastTime:       timestamppb.New(l.LastTime),
	}
	if run := l.Active; run != nil {
		c.Active = &messages.RunStarted{
			RunId: run.ID, TurnIds: run.TurnIDs(), Attempt: run.Attempt,
			StartedAt: timestamppb.New(run.StartedAt), Recoveries: run.Recoveries,
		}
		c.ActiveSuspended, c.ActiveAborted, c.ActiveAbortReason = run.Suspended, run.Aborted, run.AbortReason
		c.ActiveLaunched = run.Launched
		c.ActiveInterrupted, c.ActiveInjected = run.Interrupted, run.Injected
		c.OpenTurns = append(c.OpenTurns, run.Turns...)
	}
	c.OpenTurns = append(c.OpenTurns, l.Queue.Turns()...)
	for _, e := range l.Queue.Waiting {
		c.Waiting = append(c.Waiting, &messages.WaitingEntry{TurnIds: turnIDs(e.Turns), JoinedAt: stampOf(e.Joined)})
	}
	c.OfferedTurnIds = turnIDs(l.Queue.Offered)
	c.SpentDay, c.SpentTokens = l.Spent.Day, l.Spent.Tokens
	c.AwaitedRunIds = l.Awaited
	c.Resume, c.ResumeLineage, c.ResumeTurnId = l.Resume.Token, l.Resume.Lineage, l.Resume.TurnID
	for _, run := range l.Finals.After(0, time.Time{}) {
		c.Finals = append(c.Finals, &messages.Final{Seq: run.GetFinalSeq(), Run: run})
	}
	return c
}

func restore(c *messages.LedgerCheckpoint, seq uint64) Ledger {
	l := Ledger{
		Head:           seq,
		Config:         c.GetConfig(),
		History:        entries(c.GetHistory()),
		OutputReserved: c.GetOutputReserved(),
		LastTime:       c.GetLastTime().AsTime(),
		Awaited:        c.GetAwaitedRunIds(),
		Spent:          Spending{Day: c.GetSpentDay(), Tokens: c.GetSpentTokens()},
		Resume:         intake.Stored{Token: c.GetResume(), Lineage: c.GetResumeLineage(), TurnID: c.GetResumeTurnId()},
	}
	for _, f := range c.GetFinals() {
		l.Finals = l.Finals.add(f.GetRun())
	}
	turns := c.GetOpenTurns()
	if started := c.GetActive(); started != nil {
		taken := min(len(started.GetTurnIds()), len(turns))
		if taken > 0 {
			l.Active = &Run{
				ID: started.GetRunId(), Turns: turns[:taken:taken], Attempt: started.GetAttempt(),
				Recoveries: started.GetRecoveries(), StartedAt: started.GetStartedAt().AsTime(),
				Suspended: c.GetActiveSuspended(), Aborted: c.GetActiveAborted(), AbortReason: c.GetActiveAbortReason(),
				Interrupted: c.GetActiveInterrupted(), Injected: c.GetActiveInjected(),
				Launched: c.GetActiveLaunched(),
			}
		}
		turns = turns[taken:]
	}
	l.Queue = restoreQueue(c, turns)
	return l
}

// restoreQueue puts the turns that are left into their entries; one that no entry names waits by itself, so that none is lost.
func restoreQueue(c *messages.LedgerCheckpoint, turns []*messages.Turn) queue.Queue {
	var q queue.Queue
	for _, t := range turns {
		place := queue.PlaceBack
		if slices.Contains(c.GetOfferedTurnIds(), t.GetTurnId()) {
			place = queue.PlaceOffered
		}
		into, joined := "", timeOf(c.GetLastFollowup()) // of checkpoints before entries had a time of their own
		for _, e := range c.GetWaiting() {
			ids := e.GetTurnIds()
			if !slices.Contains(ids, t.GetTurnId()) {
				continue
			}
			if ids[0] != t.GetTurnId() {
				place, into = queue.PlaceMerged, ids[0]
			}
			if e.GetJoinedAt() != nil {
				joined = e.GetJoinedAt().AsTime()
			}
		}
		q = q.Put(t, place, into, joined)
	}
	return q
}

func turnIDs(turns []*messages.Turn) []string {
	var ids []string
	for _, t := range turns {
		ids = append(ids, t.GetTurnId())
	}
	return ids
}
