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
	// importBytes bounds the events of one request, which may have 1 MiB with what is around them.
	importBytes   = 1<<20 - 4<<10
	importRetries = 60
	importPause   = 500 * time.Millisecond
	// importProgress is the number of events after which progress is told.
	importProgress = 50_000
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

	head     uint64 // last sequence of the session
	recorded int
	skipped  int
	told     int // of recorded, when progress was last told
	line     int // last line read
	doneLine int // last line that need not be read again

	batch     []json.RawMessage
	bytes     int
	batchLine int // last line in the batch
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
	state, err := im.client.Session(ctx, im.session)
	var refused *protocol.Error
	if errors.As(err, &refused) && refused.Code == protocol.CodeUnknownSession {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return state.EventSequence, nil
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
		return im.a.writeJSON(map[string]any{
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
		return fmt.Errorf("line %d (nothing after line %d is recorded): %w", im.line, im.doneLine, err)
	}
	if im.skipNotes && name == steeringNote {
		im.skipped++
		return nil
	}
	size := len(event) + 1
	if size > importBytes {
		return fmt.Errorf("line %d: the event has %d bytes, at most %d are allowed", im.line, size, importBytes)
	}
	if len(im.batch) == protocol.MaxEvents || im.bytes+size > importBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.batch = append(im.batch, bytes.Clone(event))
	im.bytes += size
	im.batchLine = im.line
	return nil
}

// eventOf gives the event of a line that is one, or that is a stored one.
func eventOf(line []byte) (event json.RawMessage, name string, err error) {
	var both struct {
		Type  string          `json:"type"`
		Event json.RawMessage `json:"event"`
	}
	var other *json.UnmarshalTypeError
	err = json.Unmarshal(line, &both)
	switch {
	case errors.As(err, &other) && other.Field != "":
		return nil, "", fmt.Errorf("%s is not a string but %s", other.Field, other.Value)
	case errors.As(err, &other):
		return nil, "", fmt.Errorf("no JSON object but %s", other.Value)
	case err != nil:
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
		return nil
	}
	for try := 1; ; try++ {
		_, err := im.client.Record(ctx, im.session, im.batch, im.head)
		if err == nil {
			im.flushed()
			return nil
		}
		var gone *client.UnreachableError
		var refused *protocol.Error
		again := errors.As(err, &gone) || errors.As(err, &refused) && refused.Retryable
		if !again || try == importRetries {
			return fmt.Errorf("lines %d to %d, none of which is recorded: %w", im.doneLine+1, im.batchLine, err)
		}
		if try == 1 {
			im.a.say("%v; trying again", err)
		}
		if err := pause(ctx, importPause); err != nil {
			return err
		}
		if head, err := im.readHead(ctx); err == nil && head == im.head+uint64(len(im.batch)) {
			im.flushed()
			return nil
		}
	}
}

func (im *importer) flushed() {
	im.head += uint64(len(im.batch))
	im.recorded += len(im.batch)
	im.doneLine = im.batchLine
	im.batch, im.bytes = nil, 0
	if im.recorded-im.told >= importProgress {
		im.told = im.recorded
		im.a.say("%d events recorded", im.recorded)
	}
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
