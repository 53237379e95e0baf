package session

import "github.com/correx/correx-actors/messages"

// settles says whether a turn that an idle session was given waits for more of its kind before it starts.
func (d *draft) settles(turn *messages.Turn) bool {
	return d.cfg.Settle > 0 && messages.QueueMode(turn.GetQueueMode()) == messages.QueueFollowup && !turn.GetTaskResult()
}

// settle begins the wait.
func (d *draft) settle() {
	d.s.Live.Settles++
	d.s.Live.Settling = true
	d.effect(ArmSettle{Settle: d.s.Live.Settles, After: d.cfg.Settle})
}

// settling says whether the wait goes on: it ends early when something came that cannot join, or nothing is left.
func (d *draft) settling() bool {
	if len(d.s.Ledger.Queue.Waiting) != 1 || d.s.Ledger.Active != nil {
		d.s.Live.Settling = false
	}
	return d.s.Live.Settling
}

func (d *draft) settleOver(c SettleOver) {
	if c.Settle == d.s.Live.Settles {
		d.s.Live.Settling = false
	}
}
