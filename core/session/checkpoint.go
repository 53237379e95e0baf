package session

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/messages"
)

// checkpoint writes the whole folded ledger down; restore is its reverse.
func (l Ledger) checkpoint() *messages.LedgerCheckpoint {
	c := &messages.LedgerCheckpoint{
		Config:         l.Config,
		History:        slices.Clone(l.History),
		OutputReserved: l.OutputReserved,
		LastTime:       timestamppb.New(l.LastTime),
	}
	if run := l.Active; run != nil {
		c.Active = &messages.RunStarted{
			RunId: run.ID, TurnIds: run.TurnIDs(), Attempt: run.Attempt,
			StartedAt: timestamppb.New(run.StartedAt), Recoveries: run.Recoveries,
		}
		c.ActiveSuspended, c.ActiveAborted, c.ActiveAbortReason = run.Suspended, run.Aborted, run.AbortReason
		c.OpenTurns = append(c.OpenTurns, run.Turns...)
	}
	c.OpenTurns = append(c.OpenTurns, l.Queue...)
	for _, run := range l.Finals.After(0, time.Time{}) {
		c.Finals = append(c.Finals, &messages.Final{Seq: run.GetFinalSeq(), Run: run})
	}
	return c
}

func restore(c *messages.LedgerCheckpoint, seq uint64) Ledger {
	l := Ledger{
		Head:           seq,
		Config:         c.GetConfig(),
		Queue:          slices.Clone(c.GetOpenTurns()),
		History:        slices.Clone(c.GetHistory()),
		OutputReserved: c.GetOutputReserved(),
		LastTime:       c.GetLastTime().AsTime(),
	}
	for _, f := range c.GetFinals() {
		l.Finals = l.Finals.add(f.GetRun())
	}
	started := c.GetActive()
	if started == nil {
		return l
	}
	run := &Run{
		ID: started.GetRunId(), Attempt: started.GetAttempt(), Recoveries: started.GetRecoveries(),
		StartedAt: started.GetStartedAt().AsTime(), Suspended: c.GetActiveSuspended(),
		Aborted: c.GetActiveAborted(), AbortReason: c.GetActiveAbortReason(),
	}
	taken := min(len(started.GetTurnIds()), len(l.Queue))
	if taken == 0 {
		return l
	}
	run.Turns, l.Queue = l.Queue[:taken:taken], l.Queue[taken:]
	l.Active = run
	return l
}
