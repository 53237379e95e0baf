package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

const (
	// frameOverhead is what a record_events frame has around its events.
	frameOverhead = 1024
	importRetries = 20
	importPause   = 500 * time.Millisecond
)

// steeringNote is the one event that only the router writes.
const steeringNote = "steering_note_added"

type eventsImportCmd struct {
	Session  string  `arg:"" help:"The session's id; it is made if it does not exist."`
	Expected *uint64 `name:"expected-sequence" placeholder:"SEQUENCE" help:"Refuse unless the session's last event has this sequence (0 = it has none)."`
	SkipNote bool    `name:"skip-steering-notes" help:"Leave out steering_note_added events, which only the router writes."`
}

// Run implements the command.
func (e *eventsImportCmd) Run(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	im := &importer{a: a, client: c, session: e.Session, skipNotes: e.SkipNote}
	defer im.close()
	if err := im.begin(ctx, e.Expected); err != nil {
		return err
	}
	err = im.all(ctx)
	if err != nil && im.recorded > 0 {
		a.say("stopped after line %d: %d events are recorded, the last one has sequence %d", im.doneLine, im.recorded, im.head)
		a.say("to go on: skip the first %d lines and give --expected-sequence %d", im.doneLine, im.head)
	}
	return err
}

// importer records events in batches. Each batch names the sequence that it must follow, so no batch is recorded twice and
// another writer is noticed.
type importer struct {
	a         *app
	client    *client.Client
	session   string
	skipNotes bool
	conn      *client.Conn

	head     uint64 // last sequence of the session
	recorded int
	skipped  int
	line     int // last line read
	doneLine int // last line whose event is recorded

	batch []json.RawMessage
	bytes int64
}

func (im *importer) close() {
	if im.conn != nil {
		im.conn.Close()
	}
}

// begin learns where the session's log ends.
func (im *importer) begin(ctx context.Context, expected *uint64) error {
	head, err := im.readHead(ctx)
	if err != nil {
		return err
	}
	im.head = head
	if expected != nil && *expected != head {
		return &protocol.Error{
			SessionID: im.session, Code: protocol.CodeSequenceConflict,
			Message: fmt.Sprintf("the session's last event has sequence %d, expected was %d", head, *expected),
		}
	}
	return nil
}

func (im *importer) readHead(ctx context.Context) (uint64, error) {
	answer, err := im.ask(ctx, &protocol.GetSession{SessionID: im.session})
	var refused *protocol.Error
	if errors.As(err, &refused) && refused.Code == protocol.CodeUnknownSession {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	session, ok := answer.(*protocol.Session)
	if !ok || session.State == nil {
		return 0, fmt.Errorf("ask for session %s: unexpected answer %s", im.session, answer.FrameType())
	}
	return session.State.EventSequence, nil
}

// ask uses one connection for all questions.
func (im *importer) ask(ctx context.Context, frame protocol.ClientFrame) (protocol.ServerFrame, error) {
	if im.conn == nil {
		conn, err := im.client.Dial(ctx)
		if err != nil {
			return nil, err
		}
		im.conn = conn
	}
	answer, err := im.conn.Ask(ctx, frame)
	var refused *protocol.Error
	if err != nil && !errors.As(err, &refused) {
		im.close()
		im.conn = nil
	}
	return answer, err
}

func (im *importer) all(ctx context.Context) error {
	scanner := bufio.NewScanner(im.a.in)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		im.line++
		if err := im.add(ctx, bytes.TrimSpace(scanner.Bytes())); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read line %d: %w", im.line+1, err)
	}
	if err := im.flush(ctx); err != nil {
		return err
	}
	if im.a.json {
		return im.a.printJSON(map[string]any{
			"session_id": im.session, "recorded": im.recorded, "skipped": im.skipped, "last_sequence": im.head,
		})
	}
	im.a.say("%d events recorded, %d skipped, the last one has sequence %d", im.recorded, im.skipped, im.head)
	return nil
}

// add takes one line into the batch.
func (im *importer) add(ctx context.Context, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	event, name, err := eventOf(line)
	if err != nil {
		return fmt.Errorf("line %d: %w", im.line, err)
	}
	if im.skipNotes && name == steeringNote {
		im.skipped++
		return nil
	}
	limit := im.limit()
	size := int64(len(event)) + 1
	if size > limit {
		return fmt.Errorf("line %d: the event has %d bytes, the server takes %d", im.line, size, limit)
	}
	if len(im.batch) == protocol.MaxEvents || im.bytes+size > limit {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.batch = append(im.batch, bytes.Clone(event))
	im.bytes += size
	return nil
}

func (im *importer) limit() int64 {
	if im.conn == nil {
		return 64<<10 - frameOverhead
	}
	return im.conn.Hello.MaxFrameBytes - frameOverhead
}

// eventOf gives the event of a line that is one, or that is a stored one.
func eventOf(line []byte) (event json.RawMessage, name string, err error) {
	var both struct {
		Type  string          `json:"type"`
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(line, &both); err != nil {
		return nil, "", fmt.Errorf("no JSON object: %w", err)
	}
	if both.Type != "" {
		return line, both.Type, nil
	}
	if both.Event == nil {
		return nil, "", errors.New("neither an event (no type) nor a stored one (no event)")
	}
	stored := both.Event
	if err := json.Unmarshal(stored, &both); err != nil || both.Type == "" {
		return nil, "", errors.New("the stored event has no type")
	}
	return stored, both.Type, nil
}

// flush records the batch. When the connection is lost the log's end tells whether it was recorded.
func (im *importer) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		im.doneLine = im.line
		return nil
	}
	expected := im.head
	frame := &protocol.RecordEvents{SessionID: im.session, Events: im.batch, ExpectedSequence: &expected}
	for try := 1; ; try++ {
		_, err := im.ask(ctx, frame)
		var gone *client.UnreachableError
		var refused *protocol.Error
		switch {
		case err == nil:
			return im.flushed()
		case errors.As(err, &refused) && (!refused.Retryable || try > 1 && refused.Code == protocol.CodeSequenceConflict):
			return im.refused(err)
		case !errors.As(err, &gone) && refused == nil, try == importRetries:
			return err
		case try == 1:
			im.a.say("%v; trying again", err)
		}
		if err := pause(ctx, importPause); err != nil {
			return err
		}
		if head, err := im.readHead(ctx); err == nil && head == expected+uint64(len(im.batch)) {
			return im.flushed()
		}
	}
}

func (im *importer) refused(err error) error {
	return fmt.Errorf("lines %d to %d, none of which is recorded: %w", im.doneLine+1, im.line, err)
}

func (im *importer) flushed() error {
	im.head += uint64(len(im.batch))
	im.recorded += len(im.batch)
	im.doneLine = im.line
	im.batch, im.bytes = nil, 0
	if im.recorded%(10*protocol.MaxEvents) == 0 {
		im.a.say("%d events recorded", im.recorded)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
