package session

import "github.com/correx/correx-actors/messages"

// toolsAsked records that the run starts tool calls, and only then lets it: a run whose tools may have done something is never
// started again. One that is being stopped gets no leave.
func (d *draft) toolsAsked(c ToolsAsked) {
	if !d.running(c.RunID, c.Attempt) || d.s.Ledger.Active.Aborted || len(c.CallIDs) == 0 {
		return
	}
	d.record(&messages.ToolsLaunched{RunId: c.RunID, Attempt: c.Attempt, CallIds: c.CallIDs, LaunchedAt: d.stamp()})
	d.effect(LaunchTools(c))
}

// toolsMoved publishes the newest state of the tool calls.
func (d *draft) toolsMoved(c ToolsMoved) {
	if !d.running(c.RunID, c.Attempt) || len(c.Actions) == 0 {
		return
	}
	d.s.Live.Actions = c.Actions
	d.publish(&messages.ToolStatus{RunId: c.RunID, Actions: c.Actions})
}

// toolsClosed is the last word on the run's tool calls; nil if it made none. What has not completed is shown as it was left.
func (d *draft) toolsClosed(run *Run) messages.Intent {
	if len(d.s.Live.Actions) == 0 {
		return nil
	}
	return &messages.ToolStatus{RunId: run.ID, Actions: d.s.Live.Actions, Final: true}
}

// ReasonTools is why a run ended that had started tools when the server stopped.
const ReasonTools = "the server stopped while its tools were at work"
