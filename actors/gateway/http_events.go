package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/persistence"
)

// pageBytes bounds a page of events; one event may exceed it.
const pageBytes = 1 << 20

// readEvents serves GET /v1/sessions/{id}/events.
func (g *Gateway) readEvents(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	after, failure := queryCount(r, "after", 0, math.MaxUint64)
	if failure != nil {
		respondError(w, failure)
		return
	}
	if _, err := g.deps.Journal.Session(r.Context(), key); err != nil {
		respondFailed(w, err)
		return
	}
	if wantsStream(r) {
		g.streamEvents(w, r, key, after)
		return
	}
	limit, failure := pageSize(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	page, err := g.eventsPage(r.Context(), key, after, limit)
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondBody(w, page)
}

func (g *Gateway) eventsPage(ctx context.Context, key messages.Key, after uint64, limit int) (*protocol.EventsPage, error) {
	page := &protocol.EventsPage{Next: after}
	size := 0
	for stored, err := range g.client.Events(ctx, key, after) {
		if err != nil {
			return nil, err
		}
		e, err := storedEvent(stored)
		if err != nil {
			return nil, err
		}
		if size += len(e.Event); size > pageBytes && len(page.Events) > 0 {
			break
		}
		page.Events = append(page.Events, *e)
		page.Next = e.Sequence
		if len(page.Events) == limit {
			break
		}
	}
	return page, nil
}

// recordEvents serves POST /v1/sessions/{id}/events.
func (g *Gateway) recordEvents(w http.ResponseWriter, r *http.Request) {
	body, ok := g.readBody(w, r)
	if !ok {
		return
	}
	f, refusal := protocol.DecodeEventsBody(r.PathValue("id"), body)
	if refusal != nil {
		respondRefusal(w, protocol.HTTPStatus(refusal.Code), refusal)
		return
	}
	expected, failure := ifMatch(r, f.ExpectedSequence)
	if failure != nil {
		respondError(w, failure)
		return
	}
	events, failure := eventsOf(f.Events)
	if failure != nil {
		respondError(w, failure)
		return
	}
	key := sessionKey(f.SessionID)
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	recorded, err := g.client.Record(ctx, key, expected, events...)
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, answerFrame(f.ID, key, recorded))
}

// ifMatch joins the header with the body's expected_sequence.
func ifMatch(r *http.Request, body *uint64) (*uint64, *messages.Failure) {
	header := r.Header.Get("If-Match")
	if header == "" {
		return body, nil
	}
	text := header
	if unquoted, ok := strings.CutPrefix(header, `"`); ok {
		if text, ok = strings.CutSuffix(unquoted, `"`); !ok {
			text = ""
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, messages.Fail(messages.CodeInvalidField, fmt.Sprintf("If-Match %.100q is no sequence", header))
	}
	if body != nil && *body != n {
		return nil, messages.Fail(messages.CodeInvalidField, "expected_sequence differs from the If-Match header")
	}
	return &n, nil
}

// streamEvents sends the event log as server-sent events and stays open: id is the sequence, so that a client's
// Last-Event-ID resumes.
func (g *Gateway) streamEvents(w http.ResponseWriter, r *http.Request, key messages.Key, after uint64) {
	last, failure := lastEventID(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	if last != nil {
		after = *last
	}
	if r.Method == http.MethodHead {
		newEventStream(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.base, cancel)()
	wake := make(chan struct{}, 1)
	if err := g.followEvents(ctx, key, wake); err != nil {
		respondFailed(w, err)
		return
	}
	s := newEventStream(w)
	beat := time.NewTicker(g.config.Heartbeat)
	defer beat.Stop()
	for s.err == nil {
		for stored, err := range persistence.Tail(ctx, g.deps.Journal, key, after, nil) {
			if s.stored(ctx, stored, err); s.err != nil {
				return
			}
			after = stored.GetSequence()
		}
		s.flush()
		select {
		case <-wake:
		case <-beat.C:
			s.comment("")
			s.flush()
		case <-ctx.Done():
			return
		}
	}
}

// followEvents signals wake whenever the event log has grown, until ctx ends.
func (g *Gateway) followEvents(ctx context.Context, key messages.Key, wake chan<- struct{}) error {
	sub, err := g.client.Subscribe(ctx, key, actors.SubscribeOptions{Events: true})
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			if sub != nil {
				relayEvents(ctx, sub, wake)
				sub.Close()
			}
			// The session was restarted or this reader was too slow: what came meanwhile is in the journal.
			select {
			case <-time.After(renewMin):
			case <-ctx.Done():
				return
			}
			if sub, err = g.client.Subscribe(ctx, key, actors.SubscribeOptions{Events: true}); err != nil {
				sub = nil
			}
			signal(wake)
		}
	}()
	return nil
}

func relayEvents(ctx context.Context, sub *actors.Subscription, wake chan<- struct{}) {
	for item, err := range sub.Items(ctx) {
		if err != nil {
			return
		}
		if _, ok := item.(*messages.EventsAdvanced); ok {
			signal(wake)
		}
	}
}

func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
