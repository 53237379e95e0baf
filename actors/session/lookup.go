package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// wanted is what a command needs of the journal's index before it can be decided.
type wanted struct {
	key  string // an idempotency key
	turn messages.TurnID
}

func (w wanted) wanted() bool { return w.key != "" || w.turn != "" }

// looked is what the index said for the first pending command.
type looked struct {
	life *life
	look uint64
	from *pending
	hit  *core.Prior
	err  error
}

// ControlMessage implements kernel.Control.
func (looked) ControlMessage() {}

// lookUpName says what a command needs. Open turns are in the state; only ended ones are in the index alone.
func (s *Session) lookUpName(state core.State, p *pending) wanted {
	if p.looked {
		return wanted{}
	}
	switch c := p.cmd.(type) { //nolint:gochecksumtype // only these need the index
	case core.Submit:
		key := c.Request.GetIdempotencyKey()
		if len(key) > persistence.MaxIndexName {
			return wanted{} // core refuses it
		}
		if _, open := state.TurnByKey(key); open {
			return wanted{}
		}
		return wanted{key: key}
	case core.Abort:
		turn := c.Request.GetTurnId()
		if turn == "" && c.Request.GetRunId() != "" {
			turn, _ = messages.TurnIDOf(c.Request.GetRunId())
		}
		if turn == "" || len(turn) > persistence.MaxIndexName {
			return wanted{}
		}
		if _, open := state.Turn(turn); open {
			return wanted{}
		}
		return wanted{turn: turn}
	case core.Withdraw:
		if _, open := state.Turn(c.TurnID); open || len(c.TurnID) > persistence.MaxIndexName {
			return wanted{}
		}
		return wanted{turn: c.TurnID}
	}
	return wanted{}
}

// lookUp asks the index; nothing is decided until the answer is here, so it cannot be stale.
func (s *Session) lookUp(p *pending, name wanted) {
	s.blocked = true
	s.looks++
	deps, key, life, look, self := s.deps, s.key, s.life, s.looks, s.self
	go func() {
		hit, err := find(context.Background(), deps.Journal, key, name)
		deps.Kernel.Tell(self, looked{life: life, look: look, from: p, hit: hit, err: err})
	}()
}

func (s *Session) looked(ctx actor.Context, m looked) {
	if m.life != s.life || m.look != s.looks || s.stage != stageReady || len(s.pending) == 0 || s.pending[0] != m.from {
		return
	}
	s.blocked = false
	p := m.from
	p.looked = true
	if m.err != nil {
		s.log().LogAttrs(context.Background(), slog.LevelWarn, "index look-up failed", slog.Any(messages.AttrError, m.err))
		s.pop()
		s.refuse(p, readFailure(m.err))
		s.drive(ctx)
		return
	}
	switch c := p.cmd.(type) { //nolint:gochecksumtype // lookUpName named no other
	case core.Submit:
		c.Prior = m.hit
		p.cmd = c
	case core.Abort:
		c.Ended = m.hit != nil
		p.cmd = c
	case core.Withdraw:
		if m.hit != nil {
			c.Ended = m.hit.Status
		}
		p.cmd = c
	}
	s.drive(ctx)
}

// find reads an index entry: of a turn, or of a key and then of its turn. Nil if there is none.
func find(ctx context.Context, j persistence.Journal, key messages.Key, name wanted) (*core.Prior, error) {
	prior := &core.Prior{Entry: &messages.IdempotencyEntry{TurnId: name.turn}, Status: &messages.TurnStatus{}}
	if name.key != "" {
		ok, err := lookUp(ctx, j, key, persistence.IndexIdempotency, name.key, prior.Entry)
		if err != nil || !ok {
			return nil, err
		}
	}
	ok, err := lookUp(ctx, j, key, persistence.IndexTurn, prior.Entry.GetTurnId(), prior.Status)
	if err != nil || !ok && name.key == "" {
		return nil, err
	}
	if ok {
		if err := leadsContent(ctx, j, key, prior.Status); err != nil {
			return nil, err
		}
	}
	if !ok { // the turn has not ended: it is in the state, or will be when the append under way is
		prior.Status = &messages.TurnStatus{
			TurnId: prior.Entry.GetTurnId(), RunId: messages.RunIDOf(prior.Entry.GetTurnId()),
			State: string(messages.TurnQueued), ContentHash: prior.Entry.GetContentHash(),
		}
	}
	return prior, nil
}

// leadsContent adds the answer to a turn that joined or steered a run: it is kept once, with the turn that led the run.
func leadsContent(ctx context.Context, j persistence.Journal, key messages.Key, status *messages.TurnStatus) error {
	if status.GetMergedInto() == "" && status.GetSteeredInto() == "" {
		return nil
	}
	lead, ok := messages.TurnIDOf(status.GetRunId())
	if !ok || lead == status.GetTurnId() {
		return nil
	}
	led := new(messages.TurnStatus)
	if _, err := lookUp(ctx, j, key, persistence.IndexTurn, lead, led); err != nil {
		return err
	}
	status.Content = led.GetContent()
	return nil
}

func lookUp(ctx context.Context, j persistence.Journal, key messages.Key, index persistence.Index, name string, into proto.Message) (bool, error) {
	value, ok, err := j.Lookup(ctx, key, index, name)
	if err != nil || !ok {
		return false, err
	}
	if err := proto.Unmarshal(value, into); err != nil {
		return false, fmt.Errorf("index entry %q: %w: %w", name, persistence.ErrCorrupt, err)
	}
	return true, nil
}

// readFailure tells a client why a read failed.
func readFailure(err error) *messages.Failure {
	switch {
	case errors.Is(err, persistence.ErrDeleted):
		return messages.Fail(messages.CodeSessionDeleted, "the session was deleted")
	case errors.Is(err, persistence.ErrCorrupt):
		return messages.Fail(messages.CodeQuarantined, "the session's journal has a record that cannot be read; an operator must look at it")
	}
	return messages.FailRetryable(messages.CodeUnavailable, "the journal cannot be read now; try again")
}

// await notes that the answer of p is being looked up; the session stays until it is found.
func (s *Session) await(p *pending) {
	if s.finding == nil {
		s.finding = make(map[*pending]struct{})
	}
	s.finding[p] = struct{}{}
}

// found says whether p still waits for its answer, and forgets it.
func (s *Session) found(p *pending) bool {
	_, waits := s.finding[p]
	if delete(s.finding, p); len(s.finding) == 0 {
		s.finding = nil // an idle session holds no room for it
	}
	return waits
}

// turnFound is what the index said for a GetTurn.
type turnFound struct {
	from  *pending
	asked *messages.GetTurn
	hit   *core.Prior
	err   error
	tries int
}

// ControlMessage implements kernel.Control.
func (turnFound) ControlMessage() {}

// maxTurnTries bounds the look-ups of one GetTurn that met a turn between its last record and the state.
const maxTurnTries = 10

// getTurn answers for an open turn from the state and for an ended one from the index.
func (s *Session) getTurn(p *pending, m *messages.GetTurn, tries int) {
	id, key := m.GetTurnId(), m.GetIdempotencyKey()
	switch {
	case (id == "") == (key == ""):
		s.answer(p, messages.Fail(messages.CodeInvalidField, "exactly one of turn_id and idempotency_key is needed"))
		return
	case len(id) > persistence.MaxIndexName || len(key) > persistence.MaxIndexName:
		s.answer(p, unknownTurn())
		return
	}
	status, open := s.state.Turn(id)
	if key != "" {
		status, open = s.state.TurnByKey(key)
	}
	if open {
		s.answer(p, &messages.TurnFound{Turn: status})
		return
	}
	s.await(p)
	deps, session, self := s.deps, s.key, s.self
	go func() {
		hit, err := find(context.Background(), deps.Journal, session, wanted{key: key, turn: id})
		deps.Kernel.Tell(self, turnFound{from: p, asked: m, hit: hit, err: err, tries: tries})
	}()
}

func (s *Session) turnFound(ctx actor.Context, m turnFound) {
	if !s.found(m.from) {
		return // an earlier incarnation has refused it
	}
	defer s.settle(ctx)
	switch {
	case m.err != nil:
		s.answer(m.from, readFailure(m.err))
	case m.hit == nil, s.forgotten(m.hit):
		s.answer(m.from, unknownTurn())
	case !messages.TurnState(m.hit.Status.GetState()).Ended() && m.tries < maxTurnTries:
		// Its admission or its end is stored and not yet in the state: look again.
		s.getTurn(m.from, m.asked, m.tries+1)
	default:
		s.answer(m.from, &messages.TurnFound{Turn: m.hit.Status})
	}
}

// forgotten says whether only an idempotency key is left of a turn: it expired, and outlived the turn's end because the index lags.
func (s *Session) forgotten(hit *core.Prior) bool {
	return !messages.TurnState(hit.Status.GetState()).Ended() && !s.now().Before(hit.Entry.GetExpiresAt().AsTime())
}

func unknownTurn() *messages.Failure {
	return messages.Fail(messages.CodeUnknownTurn, "this session has no such turn, or does not remember it any more")
}

// explained is what the index said for an Explain.
type explained struct {
	from *pending
	cmd  core.Submit
	err  error
}

// ControlMessage implements kernel.Control.
func (explained) ControlMessage() {}

// explain says what a submission would do now, from the state that is durable; nothing is done.
func (s *Session) explain(p *pending, m *messages.Explain) {
	cmd := core.Submit{Request: m.GetTurn(), TurnID: messages.NewTurnID()}
	if cmd.Request == nil {
		cmd.Request = &messages.SubmitTurn{}
	}
	name := s.lookUpName(s.state, &pending{cmd: cmd})
	if !name.wanted() {
		s.answer(p, core.Explain(s.state, s.deps.Core, cmd, s.now(), s.freeSlot))
		return
	}
	s.await(p)
	deps, key, self := s.deps, s.key, s.self
	go func() {
		hit, err := find(context.Background(), deps.Journal, key, name)
		cmd.Prior = hit
		deps.Kernel.Tell(self, explained{from: p, cmd: cmd, err: err})
	}()
}

func (s *Session) explained(ctx actor.Context, m explained) {
	if !s.found(m.from) {
		return // an earlier incarnation has refused it
	}
	defer s.settle(ctx)
	if m.err != nil {
		s.answer(m.from, readFailure(m.err))
		return
	}
	s.answer(m.from, core.Explain(s.state, s.deps.Core, m.cmd, s.now(), s.freeSlot))
}
