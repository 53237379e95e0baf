package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Limits of the short fields of a turn, in bytes.
const (
	maxKeyBytes    = 256
	maxSenderBytes = 256
	maxModelBytes  = 256
)

// submit admits a turn, or says why not. A refused one leaves no trace (turns have states only once admitted).
func (d *draft) submit(c Submit) {
	req := c.Request
	if f := d.refuse(req); f != nil {
		d.reply(f)
		return
	}
	hash := contentHash(req)
	if prior := d.earlier(c); prior != nil {
		d.replyDuplicate(prior, hash)
		return
	}
	if d.s.Live.Draining {
		d.reply(messages.FailRetryable(messages.CodeDraining, "the server is shutting down and takes no new turns; try again"))
		return
	}
	if f := d.overBudget(); f != nil {
		d.reply(f)
		return
	}
	turn := d.newTurn(c, hash)
	place := queue.Decide(d.s.Ledger.Queue, turn, d.queueMode(req), d.now, d.activity(), d.queueConfig())
	if f := d.full(place); f != nil {
		d.reply(f)
		return
	}
	d.admit(turn, place)
}

// full refuses what exceeds the queue's limit.
func (d *draft) full(place queue.Placement) *messages.Failure {
	if !queue.Full(d.s.Ledger.Queue, place.Place, d.cfg.queue()) {
		return nil
	}
	what, n := "wait", d.s.Ledger.Queue.Len()
	if n < d.cfg.QueueLimit {
		what, n = "are offered to the run", len(d.s.Ledger.Queue.Offered)
	}
	return messages.FailRetryable(messages.CodeQueueFull, fmt.Sprintf("%d turns %s already, which is the limit; try again later", n, what))
}

// queueConfig: while followups gather, all that come join.
func (d *draft) queueConfig() queue.Config {
	cfg := d.cfg.queue()
	if d.settling() {
		cfg.MergeWindow = max(cfg.MergeWindow, d.cfg.Settle)
	}
	return cfg
}

func (d *draft) busy() bool { return d.s.Ledger.Open() }

// activity tells the queue's rules of the active run.
func (d *draft) activity() queue.Activity {
	run := d.s.Ledger.Active
	going := run != nil && !run.Aborted && !d.s.Live.Draining
	return queue.Activity{Busy: run != nil, Stoppable: going, Steerable: going && run.ID == d.s.Live.Working}
}

func (d *draft) newTurn(c Submit, hash []byte) *messages.Turn {
	req := c.Request
	return &messages.Turn{
		TurnId:         c.TurnID,
		RunId:          messages.RunIDOf(c.TurnID),
		Text:           req.GetText(),
		Mode:           string(chatMode(req)),
		IdempotencyKey: req.GetIdempotencyKey(),
		ContentHash:    hash,
		Sender:         req.GetSender(),
		Model:          req.GetModel(),
		AcceptedAt:     d.stamp(),
		TaskResult:     req.GetTaskResult(),
		Resume:         req.GetResume(),
	}
}

// admit records the turn where the rule put it. An idle session starts it at once; an interrupt stops the active run first.
func (d *draft) admit(turn *messages.Turn, place queue.Placement) {
	d.placed = place
	turn.QueueMode = string(place.Mode)
	idle, settles := !d.busy(), d.settles(turn)
	d.record(&messages.TurnAdmitted{Turn: turn, Placement: string(place.Place), MergedInto: place.Into})
	d.rememberKey(turn)
	accepted := &messages.TurnAccepted{TurnId: turn.GetTurnId(), RunId: turn.GetRunId(), State: string(messages.TurnQueued)}
	d.reply(accepted)
	switch place.Place {
	case queue.PlaceMerged: // it has no run of its own, so no phases either
		accepted.Disposition, accepted.MergedInto = string(messages.DispositionMerged), place.Into
		accepted.RunId = messages.RunIDOf(place.Into)
		accepted.Position = d.position(turn)
		return
	case queue.PlaceOffered:
		accepted.Disposition, accepted.State = string(messages.DispositionSteering), string(messages.TurnOffered)
		d.offer(turn)
		return
	case queue.PlaceBack, queue.PlaceFront:
	}
	ids := []string{turn.GetTurnId()}
	d.publish(phase(turn.GetRunId(), ids, "", messages.PhaseAccepted, 1))
	if idle && d.granted == turn.GetRunId() {
		d.proceed(messages.PhaseAccepted)
		accepted.Disposition, accepted.State = string(messages.DispositionStarted), string(messages.TurnRunning)
		return
	}
	accepted.Disposition, accepted.Position = string(messages.DispositionQueued), d.position(turn)
	d.publish(phase(turn.GetRunId(), ids, messages.PhaseAccepted, messages.PhaseQueued, 1))
	if idle && settles {
		d.settle()
	}
	if place.Interrupts {
		d.interrupt()
	}
	d.proceed(messages.PhaseQueued)
}

// position counts the turns before one that waits.
func (d *draft) position(turn *messages.Turn) uint32 {
	_, entry, _ := d.s.Ledger.Queue.Find(func(t *messages.Turn) bool { return t == turn })
	return uint32(d.s.Ledger.Queue.Before(entry)) //nolint:gosec // bounded by the queue limit
}

// rememberKey indexes the idempotency key. The turn itself is indexed at its end: until then the state has it.
func (d *draft) rememberKey(turn *messages.Turn) {
	if turn.GetIdempotencyKey() == "" {
		return
	}
	expires := d.now.Add(d.cfg.IdempotencyWindow)
	d.out.Index = append(d.out.Index, IndexEntry{
		Key: turn.GetIdempotencyKey(),
		Idempotency: &messages.IdempotencyEntry{
			TurnId:      turn.GetTurnId(),
			ContentHash: turn.GetContentHash(),
			ExpiresAt:   timestamppb.New(expires),
		},
		Expires: expires,
		Keep:    d.cfg.IdempotencyKeys,
	})
}

// refuse checks what a turn must have whatever the session does.
func (d *draft) refuse(req *messages.SubmitTurn) *messages.Failure {
	switch text := req.GetText(); {
	case strings.TrimSpace(text) == "":
		return messages.Fail(messages.CodeEmptyInput, "text is empty")
	case len(text) > d.cfg.MaxInputBytes:
		return messages.Fail(messages.CodeInputTooLarge,
			fmt.Sprintf("text has %d bytes, at most %d are allowed", len(text), d.cfg.MaxInputBytes))
	case !utf8.ValidString(text):
		return messages.Fail(messages.CodeInvalidField, "text is not valid UTF-8")
	}
	if !chatMode(req).Valid() {
		return messages.Fail(messages.CodeInvalidMode, "mode must be CHAT or STEERING")
	}
	if f := checkQueueMode(d.queueMode(req)); f != nil {
		return f
	}
	if f := intake.CheckResume(req.GetResume(), d.cfg.ResumeEngines); f != nil {
		return f
	}
	if engine, model := req.GetResume().GetEngine(), req.GetModel(); engine != "" && model != "" &&
		d.cfg.ServesModel != nil && !d.cfg.ServesModel(engine, model) {
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("engine %q, which resume names, does not serve model %q", engine, cut(model)))
	}
	if len(req.GetAttachments()) > 0 {
		return messages.Fail(messages.CodeInvalidField, "attachments are not accepted by the configured engines")
	}
	for _, field := range []struct {
		name, value string
		limit       int
	}{
		{"idempotency_key", req.GetIdempotencyKey(), maxKeyBytes},
		{"sender", req.GetSender(), maxSenderBytes},
		{"model", req.GetModel(), maxModelBytes},
	} {
		if f := checkShort(field.name, field.value, field.limit); f != nil {
			return f
		}
	}
	return nil
}

// checkShort bounds a field of few bytes. Callers in Go may hand in what is not UTF-8, which no record can hold.
func checkShort(name, value string, limit int) *messages.Failure {
	if len(value) > limit {
		return messages.Fail(messages.CodeInvalidField, fmt.Sprintf("%s has %d bytes, at most %d are allowed", name, len(value), limit))
	}
	if !utf8.ValidString(value) {
		return messages.Fail(messages.CodeInvalidField, name+" is not valid UTF-8")
	}
	return nil
}

// earlier finds a turn with the same idempotency key: an open one in the state, an ended one as the index told.
func (d *draft) earlier(c Submit) *messages.TurnStatus {
	// The same submission, decided again after an append whose outcome was lost: it had been stored.
	if status, ok := d.s.Turn(c.TurnID); ok {
		return status
	}
	key := c.Request.GetIdempotencyKey()
	if key == "" {
		return nil
	}
	if status, ok := d.s.TurnByKey(key); ok {
		return status
	}
	if c.Prior == nil || !d.now.Before(c.Prior.Entry.GetExpiresAt().AsTime()) {
		return nil
	}
	return c.Prior.Status
}

func (d *draft) replyDuplicate(prior *messages.TurnStatus, hash []byte) {
	if !bytes.Equal(prior.GetContentHash(), hash) {
		d.reply(messages.Fail(messages.CodeIdempotencyConflict, "the idempotency key was used for another turn: "+prior.GetTurnId()))
		return
	}
	d.reply(&messages.TurnAccepted{
		TurnId:      prior.GetTurnId(),
		RunId:       prior.GetRunId(),
		Disposition: string(messages.DispositionDuplicate),
		Position:    prior.GetPosition(),
		MergedInto:  prior.GetMergedInto(),
		State:       prior.GetState(),
	})
}

func (d *draft) queueMode(req *messages.SubmitTurn) messages.QueueMode {
	if req.GetQueueMode() == "" {
		return d.s.settings(d.cfg).queueMode
	}
	return messages.QueueMode(strings.ToLower(req.GetQueueMode()))
}

func chatMode(req *messages.SubmitTurn) messages.ChatMode {
	if req.GetMode() == "" {
		return messages.ChatModeChat
	}
	return messages.ChatMode(req.GetMode())
}

// checkQueueMode refuses a mode that does not exist; it is never taken for another one.
func checkQueueMode(mode messages.QueueMode) *messages.Failure {
	if messages.QueueMode(strings.ToLower(string(mode))).Valid() {
		return nil
	}
	return messages.Fail(messages.CodeInvalidQueueMode,
		fmt.Sprintf("no queue mode %q; use collect, followup, steer, steer_backlog or interrupt", cut(string(mode))))
}

// contentHash covers what makes two submissions under one key the same (I8). Each field goes in with its length, so that no two
// lists of fields run into the same bytes.
func contentHash(req *messages.SubmitTurn) []byte {
	h := sha256.New()
	field := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, s := range []string{
		req.GetText(), string(chatMode(req)), strings.ToLower(req.GetQueueMode()), req.GetSender(), req.GetModel(),
		req.GetResume().GetEngine(), req.GetResume().GetToken(),
	} {
		field([]byte(s))
	}
	if req.GetTaskResult() { // none of an attachment's three: no list of fields runs into another one
		field([]byte("task_result"))
	}
	for _, a := range req.GetAttachments() {
		field([]byte(a.GetName()))
		field([]byte(a.GetMediaType()))
		field(a.GetData())
	}
	return h.Sum(nil)
}

// cut makes what a caller gave fit for an error message: bounded, on a rune border, and valid UTF-8.
func cut(s string) string { return cutAt(strings.ToValidUTF8(s, "\uFFFD"), maxKeyBytes) }

func cutAt(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
