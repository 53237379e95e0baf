package session

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Decide says what a command does to a state at a time. It changes nothing. A time before the ledger's last one is read as
// that one: a clock that jumps back moves nothing.
func Decide(s State, cfg Config, cmd Command, now time.Time) Decision {
	return decide(newDraft(s, cfg, now), cmd)
}

func decide(d *draft, cmd Command) Decision { //nolint:funlen // one case for each command
	switch c := cmd.(type) {
	case Recover:
		d.recover(c)
	case Start:
		d.start(c)
	case Touch:
		d.touch()
	case Submit:
		d.submit(c)
	case Record:
		d.recordEvents(c)
	case Abort:
		d.abort(c)
	case Withdraw:
		d.withdraw(c)
	case SteerAnswered:
		d.steerAnswered(c)
	case SteerAsked:
		d.steerAsked(c)
	case OfferOver:
		d.offerOver(c)
	case SlotGranted:
		d.slotGranted(c)
	case SlotOver:
		d.slotOver(c)
	case LeaseWanted:
		d.leaseWanted(c)
	case SettleOver:
		d.settleOver(c)
	case StartFailed:
		d.startFailed(c)
	case StartAgain:
		d.startAgain(c)
	case KeepAlive:
		d.keepAlive(c)
	case Ack:
		d.ack(c)
	case RunPhased:
		d.runPhased(c)
	case RunRetried:
		d.runRetried(c)
	case ToolsAsked:
		d.toolsAsked(c)
	case ToolsMoved:
		d.toolsMoved(c)
	case RunStreamed:
		d.runStreamed(c)
	case RunFinished:
		d.runFinished(c)
	case GraceOver:
		d.graceOver(c)
	case Tick:
		d.tick()
	case Drain:
		d.s.Live.Draining = true
	case Suspend:
		d.suspend()
	}
	d.proceed(messages.PhaseQueued)
	return d.decision()
}

// DecideWith decides, and if that asks for a slot which take can give at once, decides again with the slot in hand: a turn that
// need not wait is admitted and started by one decision. Take is called at most once.
func DecideWith(s State, cfg Config, cmd Command, now time.Time, take func(AskSlot) bool) Decision {
	d := Decide(s, cfg, cmd, now)
	for _, effect := range d.Effects {
		if ask, ok := effect.(AskSlot); ok && take(ask) {
			again := newDraft(s, cfg, now)
			again.granted = ask.RunID
			return decide(again, cmd)
		}
	}
	return d
}

// draft is a decision in the making: the state moves along with each record, so that a later step sees the earlier ones.
type draft struct {
	s   State
	cfg Config
	now time.Time
	out Decision
	// granted is the run whose slot is in hand.
	granted RunID
	// placed is where the turn of this decision went.
	placed queue.Placement
}

func newDraft(s State, cfg Config, now time.Time) *draft {
	if now.Before(s.Ledger.LastTime) {
		now = s.Ledger.LastTime
	}
	return &draft{s: s, cfg: cfg, now: now.UTC().Round(0)}
}

func (d *draft) stamp() *timestamppb.Timestamp { return timestamppb.New(d.now) }

func (d *draft) reply(r messages.Reply) { d.out.Reply = r }

func (d *draft) effect(e Effect) { d.out.Effects = append(d.out.Effects, e) }

// record writes to the turn ledger.
func (d *draft) record(r messages.LedgerRecord) {
	d.out.Ledger = append(d.out.Ledger, r)
	d.s.Ledger = d.s.Ledger.reduce(r, d.s.Ledger.Head+1, d.s.settings(d.cfg).keepLast)
}

// host writes a host's event to the event log.
func (d *draft) host(e messages.Event) {
	d.out.Host = append(d.out.Host, e)
	d.s = d.s.reduceEvent(e, d.s.Router.EventSequence+1, d.now)
}

// emit writes the router's own event to the event log.
func (d *draft) emit(e messages.RouterEvent) {
	d.out.Emit = append(d.out.Emit, e)
	d.s = d.s.reduceEvent(e, d.s.Router.EventSequence+1, d.now)
}

// index tells the journal's index how a turn ended.
func (d *draft) index(turn *messages.TurnStatus) {
	d.out.Index = append(d.out.Index, IndexEntry{Turn: turn, Expires: d.now.Add(d.cfg.TurnRetention)})
}

// publish numbers an output item.
func (d *draft) publish(intents ...messages.Intent) {
	for _, intent := range intents {
		d.effect(Publish{Seq: d.s.Live.NextSeq, Intent: intent})
		d.s.Live.NextSeq++
	}
}

// Output numbers are reserved in blocks; the next block is taken when a quarter of the last is left (I11).
const (
	outputBlock   = 4096
	outputReserve = outputBlock / 4
)

// decision closes the draft: no output number leaves it that is not reserved in the same append or before.
func (d *draft) decision() Decision {
	last := d.s.Live.NextSeq - 1
	if d.publishes() && last+outputReserve > d.s.Ledger.OutputReserved {
		d.record(&messages.OutputReserved{UpTo: max(last, d.s.Ledger.OutputReserved) + outputBlock})
	}
	d.out.Next, d.out.At = d.s, d.now
	return d.out
}

func (d *draft) publishes() bool {
	for _, e := range d.out.Effects {
		if _, ok := e.(Publish); ok {
			return true
		}
	}
	return false
}

// checkpoint folds a long ledger into one record before anything else is recorded by this decision.
func (d *draft) checkpoint() {
	if d.s.Ledger.SinceCheckpoint < d.cfg.CheckpointEvery || d.out.Durable() {
		return
	}
	oldest := d.now.Add(-d.cfg.FinalTTL)
	kept := d.s.Ledger
	kept.Finals = kept.Finals.keep(0, oldest, d.cfg.MaxFinals)
	d.record(kept.checkpoint())
	d.out.Checkpoint = true
}

func (d *draft) start(c Start) {
	if f := validateConfig(c.Config); f != nil {
		d.reply(f)
		return
	}
	d.checkpoint()
	if !d.s.Exists() || !isEmpty(c.Config) {
		d.record(&messages.SessionConfigured{Config: mergeConfig(d.s.Ledger.Config, c.Config)})
	}
	d.reply(&messages.SessionStarted{State: d.s.View()})
}

// touch gives a session that did not exist its first record.
func (d *draft) touch() {
	if !d.s.Exists() {
		d.record(&messages.SessionConfigured{})
	}
}

func (d *draft) ack(c Ack) {
	if d.s.Ledger.Finals.acked(c.Seq) {
		d.record(&messages.FinalsAcked{UpTo: c.Seq})
	}
}

func (d *draft) tick() {
	if d.s.Ledger.Open() {
		d.record(&messages.SessionAlive{At: d.stamp()})
	}
}

func validateConfig(c *messages.SessionConfig) *messages.Failure {
	if c == nil {
		return nil
	}
	if f := checkShort("config.model", c.GetModel(), maxModelBytes); f != nil {
		return f
	}
	if c.QueueMode != nil {
		if f := checkQueueMode(messages.QueueMode(c.GetQueueMode())); f != nil {
			return f
		}
	}
	if n := c.GetConversationKeepLast(); c.ConversationKeepLast != nil && (n == 0 || n > maxKeepLast) {
		return messages.Fail(messages.CodeInvalidField, "config.conversation_keep_last must be 1 to 1000")
	}
	if c.TokenBudget != nil && c.GetTokenBudget() == 0 {
		return messages.Fail(messages.CodeInvalidField, "config.token_budget must be more than 0")
	}
	return nil
}

func isEmpty(c *messages.SessionConfig) bool {
	return c == nil || c.Model == nil && c.QueueMode == nil && c.ConversationKeepLast == nil && c.TokenBudget == nil
}

// mergeConfig lays what over names over what base named.
func mergeConfig(base, over *messages.SessionConfig) *messages.SessionConfig {
	out := &messages.SessionConfig{}
	for _, c := range []*messages.SessionConfig{base, over} {
		if c == nil {
			continue
		}
		if c.Model != nil {
			out.Model = c.Model
		}
		if c.QueueMode != nil {
			out.QueueMode = c.QueueMode
		}
		if c.ConversationKeepLast != nil {
			out.ConversationKeepLast = c.ConversationKeepLast
		}
		if c.TokenBudget != nil {
			out.TokenBudget = c.TokenBudget
		}
	}
	return out
}
