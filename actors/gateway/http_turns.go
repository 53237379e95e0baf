package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

const (
	// maxWait bounds ?wait=.
	maxWait = 5 * time.Minute
	// askAgain is the pause between questions about a turn whose session was restarted.
	askAgain = 250 * time.Millisecond
)

// submitTurn serves POST /v1/sessions/{id}/turns.
func (g *Gateway) submitTurn(w http.ResponseWriter, r *http.Request) {
	wait, failure := waitOf(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	var cursor *uint64
	if wantsStream(r) {
		if cursor, failure = lastEventID(r); failure != nil {
			respondError(w, failure)
			return
		}
	}
	body, ok := g.readBody(w, r)
	if !ok {
		return
	}
	f, refusal := protocol.DecodeTurnBody(r.PathValue("id"), body)
	if refusal == nil {
		refusal = f.SetIdempotencyKey(r.Header.Get("Idempotency-Key"))
	}
	if refusal != nil {
		respondRefusal(w, protocol.HTTPStatus(refusal.Code), refusal)
		return
	}
	if wantsStream(r) {
		g.streamTurn(w, r, f, cursor, wait)
		return
	}
	key := sessionKey(f.SessionID)
	if wait > 0 {
		g.submitAndWait(w, r, key, f, wait)
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	accepted, err := g.client.Submit(ctx, key, turnOf(f))
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusAccepted, answerFrame(f.ID, key, accepted))
}

func waitOf(r *http.Request) (time.Duration, *messages.Failure) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > maxWait {
		return 0, messages.Fail(messages.CodeInvalidField, fmt.Sprintf("wait is not a duration from 0s to %s", maxWait))
	}
	return wait, nil
}

func wantsStream(r *http.Request) bool {
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), typeSSE)
}

// submitAndWait submits a turn and answers with what becomes of it, or with its acceptance when time is up: the turn goes on.
func (g *Gateway) submitAndWait(w http.ResponseWriter, r *http.Request, key messages.Key, f *protocol.ChatInput, wait time.Duration) {
	follower, stop, err := g.follow(key, turnOf(f))
	if err != nil {
		respondFailed(w, err)
		return
	}
	defer stop()
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	accepted, err := follower.accepted(ctx)
	if err != nil {
		respondFailed(w, err)
		return
	}
	waiting, done := g.bounded(r, wait)
	defer done()
	result, err := g.awaitTurn(waiting, key, follower, accepted)
	var failure *messages.Failure
	switch {
	case err == nil:
		g.respondFrame(w, http.StatusOK, result)
	case errors.As(err, &failure):
		respondError(w, failure)
	default: // time is up, or the server stops
		g.respondFrame(w, http.StatusAccepted, answerFrame(f.ID, key, accepted))
	}
}

// awaitTurn waits for the end of a turn and gives its router_response, or the turn if no run took it. Errors: a Failure, or
// the cause of ctx.
func (g *Gateway) awaitTurn(
	ctx context.Context, key messages.Key, f *follower, accepted *messages.TurnAccepted,
) (protocol.ServerFrame, error) {
	select {
	case end := <-f.end:
		if end.final != nil {
			return itemFrame(end.final), nil
		}
		if end.status != nil {
			return endedFrame(key, accepted, end.status), nil
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// The session was restarted: the turn's end is in the journal, or will be.
	for {
		status, err := g.client.Turn(ctx, key, accepted.GetTurnId())
		switch {
		case err == nil && settled(status):
			return endedFrame(key, accepted, status), nil
		case err != nil && !passing(err):
			return nil, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// endedFrame is the answer about a turn whose final item is not at hand: the router_response without its number, or the turn
// if no run took it.
func endedFrame(key messages.Key, accepted *messages.TurnAccepted, status *messages.TurnStatus) protocol.ServerFrame {
	if !messages.Outcome(status.GetOutcome()).Valid() {
		return turnFrame(status)
	}
	return responseFrame(protocol.Item{SessionID: string(key.Session)}, &messages.RouterResponse{
		RunId: status.GetRunId(), TurnId: status.GetTurnId(), TurnIds: []string{accepted.GetTurnId()},
		Content: status.GetContent(), SteeringEmitted: status.GetSteeringEmitted(), Outcome: status.GetOutcome(),
	})
}

// showTurn serves GET /v1/sessions/{id}/turns/{turn}.
func (g *Gateway) showTurn(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	status, err := g.client.Turn(ctx, key, r.PathValue("turn"))
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, turnFrame(status))
}

// withdraw serves DELETE /v1/sessions/{id}/turns/{turn}.
func (g *Gateway) withdraw(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	turn := r.PathValue("turn")
	done, state, err := g.client.Withdraw(ctx, key, turn)
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, &protocol.Withdrawn{TurnID: turn, Withdrawn: done, State: string(state)})
}

// explain serves POST /v1/sessions/{id}/explain.
func (g *Gateway) explain(w http.ResponseWriter, r *http.Request) {
	body, ok := g.readBody(w, r)
	if !ok {
		return
	}
	f, refusal := protocol.DecodeExplainBody(r.PathValue("id"), body)
	if refusal == nil {
		refusal = f.SetIdempotencyKey(r.Header.Get("Idempotency-Key"))
	}
	if refusal != nil {
		respondRefusal(w, protocol.HTTPStatus(refusal.Code), refusal)
		return
	}
	key := sessionKey(f.SessionID)
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	explanation, err := g.client.Explain(ctx, key, turnOf(&f.ChatInput))
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, answerFrame(f.ID, key, explanation))
}
