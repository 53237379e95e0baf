package testkit

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// sessionJournal holds what a journal holds of one session, in the stored form.
type sessionJournal struct {
	key         messages.Key
	events      [][]byte // of sequence i+1
	ledger      [][]byte // of sequence ledgerStart+i
	ledgerStart uint64
	ids         uint64
	turns       map[string]*messages.TurnStatus
	keys        map[string]*messages.IdempotencyEntry
}

func newSessionJournal(key messages.Key) *sessionJournal {
	return &sessionJournal{
		key: key, ledgerStart: 1,
		turns: make(map[string]*messages.TurnStatus), keys: make(map[string]*messages.IdempotencyEntry),
	}
}

// append stores a decision and gives its records as read back.
func (j *sessionJournal) append(d session.Decision, epoch uint64) ([]messages.Record, error) {
	var stored []messages.Record
	for _, event := range d.Host {
		if err := j.appendEvent(&stored, event, d, epoch); err != nil {
			return nil, err
		}
	}
	for _, event := range d.Emit {
		if err := j.appendEvent(&stored, event, d, epoch); err != nil {
			return nil, err
		}
	}
	if d.Checkpoint {
		_, whole := d.Ledger[0].(*messages.LedgerCheckpoint)
		if part, ok := d.Ledger[0].(*messages.CheckpointPart); !whole && (!ok || part.GetPart() != 1) {
			return nil, fmt.Errorf("a checkpoint decision begins with a %T", d.Ledger[0])
		}
		j.ledger, j.ledgerStart = nil, j.ledgerStart+uint64(len(j.ledger))
	}
	for _, record := range d.Ledger {
		if err := j.appendLedger(&stored, record, d, epoch); err != nil {
			return nil, err
		}
	}
	return stored, j.putIndex(d.Index)
}

func (j *sessionJournal) appendEvent(stored *[]messages.Record, event messages.Event, d session.Decision, epoch uint64) error {
	encoded, err := messages.EncodeEvent(event)
	if err != nil {
		return err
	}
	rec, err := j.write(&j.events, messages.Record{
		Stream: messages.StreamEvents, Seq: uint64(len(j.events)) + 1,
		Type: encoded.GetType(), Version: encoded.GetVersion(), Payload: encoded.GetPayload(),
	}, d, epoch)
	if err != nil {
		return err
	}
	*stored = append(*stored, rec)
	return sameEvent(event, rec)
}

func (j *sessionJournal) appendLedger(stored *[]messages.Record, record messages.LedgerRecord, d session.Decision, epoch uint64) error {
	name, version, payload, err := messages.EncodeLedger(record)
	if err != nil {
		return err
	}
	rec, err := j.write(&j.ledger, messages.Record{
		Stream: messages.StreamLedger, Seq: j.ledgerStart + uint64(len(j.ledger)), Type: name, Version: version, Payload: payload,
	}, d, epoch)
	if err != nil {
		return err
	}
	*stored = append(*stored, rec)
	decoded, err := messages.DecodeLedger(rec.Type, rec.Version, rec.Payload)
	if err != nil {
		return err
	}
	if !proto.Equal(decoded, record) {
		return fmt.Errorf("a %T does not survive the codec", record)
	}
	return nil
}

func (j *sessionJournal) write(stream *[][]byte, rec messages.Record, d session.Decision, epoch uint64) (messages.Record, error) {
	j.ids++
	binary.BigEndian.PutUint64(rec.ID[8:], j.ids)
	rec.Epoch, rec.Time = epoch, d.At
	b, err := messages.AppendRecord(nil, j.key, &rec)
	if err != nil {
		return rec, err
	}
	*stream = append(*stream, b)
	return messages.ParseRecord(j.key, rec.Stream, rec.Seq, b)
}

func sameEvent(event messages.Event, rec messages.Record) error {
	decoded, err := messages.DecodeEvent(rec.Type, rec.Version, rec.Payload)
	if err != nil {
		return err
	}
	if u, ok := event.(*messages.UnknownEvent); ok {
		back, ok := decoded.(*messages.UnknownEvent)
		if !ok || back.Type != u.Type || back.Version != u.Version || !bytes.Equal(back.Payload, u.Payload) {
			return fmt.Errorf("an unknown event %q does not survive the codec", u.Type)
		}
		return nil
	}
	a, okA := event.(proto.Message)
	b, okB := decoded.(proto.Message)
	if !okA || !okB || !proto.Equal(a, b) {
		return fmt.Errorf("a %T does not survive the codec", event)
	}
	return nil
}

func (j *sessionJournal) putIndex(entries []session.IndexEntry) error {
	for _, entry := range entries {
		if (entry.Turn == nil) == (entry.Idempotency == nil) {
			return fmt.Errorf("an index entry is of a turn or of a key, not %+v", entry)
		}
		if entry.Turn != nil {
			status := &messages.TurnStatus{}
			if err := copyThroughBytes(entry.Turn, status); err != nil {
				return err
			}
			if !messages.TurnState(status.GetState()).Ended() {
				return fmt.Errorf("turn %s is indexed as %s before its end", status.GetTurnId(), status.GetState())
			}
			j.turns[status.GetTurnId()] = status
			continue
		}
		idem := &messages.IdempotencyEntry{}
		if err := copyThroughBytes(entry.Idempotency, idem); err != nil {
			return err
		}
		j.keys[entry.Key] = idem
	}
	return nil
}

// copyThroughBytes is the way of a message through a journal or a mailbox of another node.
func copyThroughBytes(from, to proto.Message) error {
	b, err := proto.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode a %T: %w", from, err)
	}
	if err := proto.Unmarshal(b, to); err != nil {
		return fmt.Errorf("decode a %T: %w", from, err)
	}
	if !proto.Equal(from, to) {
		return fmt.Errorf("a %T does not survive the codec", from)
	}
	return nil
}

// prior is what the index says of an idempotency key.
func (j *sessionJournal) prior(key string) *session.Prior {
	entry, ok := j.keys[key]
	if !ok || key == "" {
		return nil
	}
	return &session.Prior{Entry: entry, Status: j.turns[entry.GetTurnId()]}
}

// ended says whether the turn or run that an abort names has ended.
func (j *sessionJournal) ended(req *messages.Abort) bool {
	id := req.GetTurnId()
	if messages.AbortScope(req.GetScope()) != messages.AbortTurn {
		id, _ = messages.TurnIDOf(req.GetRunId())
	}
	status, ok := j.turns[id]
	return ok && messages.TurnState(status.GetState()).Ended()
}

// fold replays both streams.
func (j *sessionJournal) fold(cfg session.Config) (session.State, error) {
	s := session.New(j.key)
	for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
		records, err := j.records(stream)
		if err != nil {
			return s, err
		}
		for _, rec := range records {
			if s, err = session.Reduce(s, cfg, rec); err != nil {
				return s, fmt.Errorf("reduce %s record %d: %w", stream, rec.Seq, err)
			}
		}
	}
	return s, nil
}

func (j *sessionJournal) records(stream messages.Stream) ([]messages.Record, error) {
	stored, start := j.events, uint64(1)
	if stream == messages.StreamLedger {
		stored, start = j.ledger, j.ledgerStart
	}
	records := make([]messages.Record, len(stored))
	for i, b := range stored {
		rec, err := messages.ParseRecord(j.key, stream, start+uint64(i), b)
		if err != nil {
			return nil, err
		}
		records[i] = rec
	}
	return records, nil
}
