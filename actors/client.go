// Package actors is the host's API: a client that talks to the sessions of this process by actor messages. The gateway and
// the command line use the same messages, so a host sees neither more nor less than they do.
package actors

import (
	"context"
	"fmt"
	"iter"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Client talks to the sessions of one process. All methods may be called from any goroutine, but not from an actor's
// Receive: they wait. A refused command is returned as a *messages.Failure; use errors.As. When ctx ends its cause is returned, and the
// command may still have been carried out: ask again with the same idempotency key.
type Client struct {
	sys     *kernel.System
	dir     *directory.Directory
	journal persistence.Journal
	repo    *persistence.Repository
}

// NewClient makes a client over running parts.
func NewClient(sys *kernel.System, dir *directory.Directory, journal persistence.Journal) *Client {
	return &Client{sys: sys, dir: dir, journal: journal, repo: persistence.NewRepository(journal)}
}

// Start makes a session, or changes the settings of an existing one for its later turns.
func (c *Client) Start(ctx context.Context, key messages.Key, config *messages.SessionConfig) (*messages.SessionView, error) {
	reply, err := ask[*messages.SessionStarted](ctx, c, key, &messages.StartSession{Config: config})
	return reply.GetState(), err
}

// Submit asks for one turn and returns once it is durable (I6). It makes a session that does not exist.
func (c *Client) Submit(ctx context.Context, key messages.Key, turn *messages.SubmitTurn) (*messages.TurnAccepted, error) {
	return ask[*messages.TurnAccepted](ctx, c, key, turn)
}

// Record appends workflow events, all or none; expected, if not nil, is the event log's head that the caller believes. It
// makes a session that does not exist.
func (c *Client) Record(
	ctx context.Context, key messages.Key, expected *uint64, events ...messages.Event,
) (*messages.EventsRecorded, error) {
	cmd := &messages.RecordEvents{ExpectedSequence: expected}
	for i, e := range events {
		encoded, err := messages.EncodeEvent(e)
		if err != nil {
			return nil, messages.Fail(messages.CodeInvalidEvent, fmt.Sprintf("events[%d]: %v", i, err))
		}
		cmd.Events = append(cmd.Events, encoded)
	}
	return ask[*messages.EventsRecorded](ctx, c, key, cmd)
}

// State gives the session's state. Failure unknown_session if nothing was ever recorded.
func (c *Client) State(ctx context.Context, key messages.Key) (*messages.SessionView, error) {
	reply, err := ask[*messages.SessionState](ctx, c, key, &messages.GetSession{})
	return reply.GetState(), err
}

// Turn tells where a turn is, by id.
func (c *Client) Turn(ctx context.Context, key messages.Key, id messages.TurnID) (*messages.TurnStatus, error) {
	reply, err := ask[*messages.TurnFound](ctx, c, key, &messages.GetTurn{TurnId: id})
	return reply.GetTurn(), err
}

// TurnByKey tells where a turn is, by its idempotency key.
func (c *Client) TurnByKey(ctx context.Context, key messages.Key, idempotencyKey string) (*messages.TurnStatus, error) {
	reply, err := ask[*messages.TurnFound](ctx, c, key, &messages.GetTurn{IdempotencyKey: idempotencyKey})
	return reply.GetTurn(), err
}

// Abort stops what is in scope and says what that was.
func (c *Client) Abort(ctx context.Context, key messages.Key, abort *messages.Abort) (*messages.Aborted, error) {
	return ask[*messages.Aborted](ctx, c, key, abort)
}

// KeepRunAlive says what becomes of a run that waits for a user's word: it goes on, or its turn ends.
func (c *Client) KeepRunAlive(ctx context.Context, key messages.Key, run messages.RunID, decision messages.KeepDecision) error {
	_, err := ask[*messages.Done](ctx, c, key, &messages.KeepRunAlive{RunId: run, Decision: string(decision)})
	return err
}

// Withdraw takes back a turn that has not started; done is false if it had started or ended otherwise, and state says where it is.
func (c *Client) Withdraw(ctx context.Context, key messages.Key, id messages.TurnID) (done bool, state messages.TurnState, err error) {
	reply, err := ask[*messages.Withdrawn](ctx, c, key, &messages.Withdraw{TurnId: id})
	return reply.GetWithdrawn(), messages.TurnState(reply.GetState()), err
}

// Explain says what Submit would do with a turn now; nothing is done.
func (c *Client) Explain(ctx context.Context, key messages.Key, turn *messages.SubmitTurn) (*messages.Explanation, error) {
	return ask[*messages.Explanation](ctx, c, key, &messages.Explain{Turn: turn})
}

// Ack acknowledges all answers up to an output number. It does not wait.
func (c *Client) Ack(key messages.Key, seq uint64) {
	c.dir.Send(key, 0, &messages.AckFinals{Seq: seq}, nil)
}

// Context explains the context pack that a turn would get now, entry by entry.
func (c *Client) Context(ctx context.Context, key messages.Key, model string) (*messages.PackView, error) {
	reply, err := ask[*messages.ContextExplained](ctx, c, key, &messages.GetContext{Model: model})
	return reply.GetPack(), err
}

// RouterState rebuilds what the router knows from the event log alone, without the session's actor (I1, I14).
func (c *Client) RouterState(ctx context.Context, key messages.Key) (router.State, error) {
	return c.repo.RouterState(ctx, key)
}

// SteeringNotes gives the steering notes that apply to a stage, in the order in which they were written; none is ever dropped.
func (c *Client) SteeringNotes(ctx context.Context, key messages.Key, stageID string) ([]router.SteeringNote, error) {
	state, err := c.repo.RouterState(ctx, key)
	if err != nil {
		return nil, err
	}
	return state.NotesFor(stageID), nil
}

// Events yields the event log after a sequence up to its present head.
func (c *Client) Events(ctx context.Context, key messages.Key, after uint64) iter.Seq2[*messages.StoredEvent, error] {
	return persistence.Tail(ctx, c.journal, key, after, nil)
}

// SessionSummary is one session in a list.
type SessionSummary = directory.Summary

// Session states of a list; what they mean stands at directory.State.
const (
	SessionBusy        = directory.Busy
	SessionIdle        = directory.Idle
	SessionPassivated  = directory.Passivated
	SessionQuarantined = directory.Quarantined
)

// SessionsPage lists sessions, page by page, without asking any of them; see directory.Directory.List. Errors: a Failure
// invalid_field; those of persistence.Journal.Sessions.
func (c *Client) SessionsPage(ctx context.Context, q directory.Query) (directory.Page, error) {
	return c.dir.List(ctx, q)
}

// Sessions lists a tenant's sessions after an id, at most limit, in the order of their ids; state "" = all. More says whether
// there are more. It is as many pages as that takes: SessionsPage bounds the work.
func (c *Client) Sessions(
	ctx context.Context, tenant messages.TenantID, state directory.State, after messages.SessionID, limit int,
) (rows []SessionSummary, more bool, err error) {
	q := directory.Query{Tenant: tenant, State: state, After: after}
	for {
		// One more than are wanted, once they fit: so more is certain.
		q.Limit = min(limit-len(rows)+1, directory.MaxPage)
		page, err := c.dir.List(ctx, q)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, page.Sessions...)
		if len(rows) > limit {
			return rows[:limit], true, nil
		}
		if page.Next == "" {
			return rows, false, nil
		}
		q.After = page.Next
	}
}

func ask[R messages.Reply](ctx context.Context, c *Client, key messages.Key, cmd messages.Command) (R, error) {
	var none R
	if err := key.Validate(); err != nil {
		return none, messages.Fail(messages.CodeInvalidSessionID, err.Error())
	}
	reply, err := c.dir.Ask(ctx, key, cmd)
	if err != nil {
		return none, err
	}
	r, ok := reply.(R)
	if !ok {
		return none, messages.Fail(messages.CodeInternal, fmt.Sprintf("unexpected reply %T", reply))
	}
	return r, nil
}
