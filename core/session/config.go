package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Config bounds and tunes every session of a process. A session's own SessionConfig overrides what it names.
type Config struct {
	// KeepLast is how many history entries a context pack takes; the session remembers twice as many. Default 6.
	KeepLast int
	// TokenBudget of a context pack, in tokens. Default 4096.
	TokenBudget int
	// Model that answers when neither turn nor session names one; "" = the provider's default.
	Model string
	// MaxInputBytes bounds a turn's text, in UTF-8 bytes. Default 32768.
	MaxInputBytes int
	// QueueMode of turns whose session names none. Default collect.
	QueueMode messages.QueueMode
	// QueueLimit bounds the turns that wait. Default 20.
	QueueLimit int
	// MergeWindow is how long after the last followup another one joins it. Default 500 ms.
	MergeWindow time.Duration
	// Settle is how long an idle session waits for more followups before it starts the first; 0 = it starts at once. Default 0.
	Settle time.Duration
	// SlotTimeout is how long a run may wait for its slot. Default 5 min.
	SlotTimeout time.Duration
	// ResumeEngines are the engines that keep conversations under resume tokens.
	ResumeEngines []string
	// ServesModel says whether an engine has a model, always the same; nil = each has all.
	ServesModel func(engine, model string) bool
	// TokensPerDay bounds what the runs of one session use on a day, in tokens; 0 = no limit. Default 0.
	TokensPerDay uint64
	// SteerDeadline is how long a run may take to answer an offer. Default 2 s.
	SteerDeadline time.Duration
	// IdempotencyWindow is how long an idempotency key is remembered. Default 24 h.
	IdempotencyWindow time.Duration
	// IdempotencyKeys bounds the keys that a session remembers; the oldest are forgotten first. Default 10000.
	IdempotencyKeys int
	// TurnRetention is how long after its end a turn can be asked for; at least IdempotencyWindow. Default 720 h.
	TurnRetention time.Duration
	// AbortGrace is how long a canceled run may take to report before the session ends it itself. Default 2 s.
	AbortGrace time.Duration
	// RecoveryPolicy says what a start does with open turns. Default resume.
	RecoveryPolicy RecoveryPolicy
	// RecoveryMaxAge: turns that waited through a longer downtime expire. Default 15 min.
	RecoveryMaxAge time.Duration
	// RecoveryMaxAttempts bounds the starts of a run over crashes, the first start counted. Default 3.
	RecoveryMaxAttempts int
	// FinalTTL is how long an unacknowledged answer is kept for redelivery. Default 24 h.
	FinalTTL time.Duration
	// MaxFinals bounds the unacknowledged answers of a session; the oldest go first. Default 1000.
	MaxFinals int
	// CheckpointEvery is the number of ledger records after which the ledger is folded into a checkpoint. Default 512.
	CheckpointEvery int
	// CheckpointMaxBytes bounds a checkpoint; of a session that holds more none is written until it holds less. It must fit into an
	// append beside the end of a run. Default 4 MiB.
	CheckpointMaxBytes int
}

// DefaultConfig gives the documented defaults.
func DefaultConfig() Config {
	return Config{
		KeepLast:            6,
		TokenBudget:         4096,
		MaxInputBytes:       32768,
		QueueMode:           messages.QueueCollect,
		QueueLimit:          20,
		MergeWindow:         500 * time.Millisecond,
		SlotTimeout:         5 * time.Minute,
		SteerDeadline:       2 * time.Second,
		IdempotencyWindow:   24 * time.Hour,
		IdempotencyKeys:     10000,
		TurnRetention:       720 * time.Hour,
		AbortGrace:          2 * time.Second,
		RecoveryPolicy:      RecoveryResume,
		RecoveryMaxAge:      15 * time.Minute,
		RecoveryMaxAttempts: 3,
		FinalTTL:            24 * time.Hour,
		MaxFinals:           1000,
		CheckpointEvery:     512,
		CheckpointMaxBytes:  4 << 20,
	}
}

// AliveEvery is how often a session with open work notes that it lives: often enough to tell a downtime from a long run.
func (c Config) AliveEvery() time.Duration { return c.RecoveryMaxAge / 4 }

func (c Config) queue() queue.Config {
	return queue.Config{MergeWindow: c.MergeWindow, Limit: c.QueueLimit}
}

// maxKeepLast bounds what a session may ask for: its history is held in memory.
const maxKeepLast = 1000

// Validate reports every setting that cannot be.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, value int64) {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want more than 0", name, value))
		}
	}
	positive("conversation.keep_last", int64(c.KeepLast))
	positive("conversation.token_budget", int64(c.TokenBudget))
	positive("limits.max_input_bytes", int64(c.MaxInputBytes))
	positive("queue.limit", int64(c.QueueLimit))
	positive("runs.slot_timeout", int64(c.SlotTimeout))
	positive("steer.deadline", int64(c.SteerDeadline))
	positive("idempotency.window", int64(c.IdempotencyWindow))
	positive("idempotency.keys", int64(c.IdempotencyKeys))
	positive("interrupt.grace", int64(c.AbortGrace))
	positive("recovery.max_age", int64(c.RecoveryMaxAge))
	positive("recovery.max_attempts", int64(c.RecoveryMaxAttempts))
	positive("output.final_ttl", int64(c.FinalTTL))
	positive("max_finals", int64(c.MaxFinals))
	positive("checkpoint_every", int64(c.CheckpointEvery))
	positive("checkpoint_max_bytes", int64(c.CheckpointMaxBytes))
	if !c.QueueMode.Valid() {
		errs = append(errs, fmt.Errorf("queue.mode is %q, want collect, followup, steer, steer_backlog or interrupt", c.QueueMode))
	}
	if !c.RecoveryPolicy.Valid() {
		errs = append(errs, fmt.Errorf("recovery.policy is %q, want resume, ask or drop", c.RecoveryPolicy))
	}
	if c.Settle < 0 {
		errs = append(errs, fmt.Errorf("queue.settle is %s, want 0 or more", c.Settle))
	}
	if c.TurnRetention < c.IdempotencyWindow {
		errs = append(errs, fmt.Errorf("turns.retention is %s, want at least idempotency.window, which is %s: "+
			"a key that is remembered must find its turn", c.TurnRetention, c.IdempotencyWindow))
	}
	if c.MergeWindow < 0 {
		errs = append(errs, fmt.Errorf("queue.merge_window is %s, want 0 or more", c.MergeWindow))
	}
	if c.KeepLast > maxKeepLast {
		errs = append(errs, fmt.Errorf("conversation.keep_last is %d, at most %d", c.KeepLast, maxKeepLast))
	}
	return errors.Join(errs...)
}

// Effective settings of one session.
type settings struct {
	keepLast    int
	tokenBudget int
	model       string
	queueMode   messages.QueueMode
}

func (s State) settings(cfg Config) settings {
	own := s.Ledger.Config
	out := settings{
		keepLast:    cfg.KeepLast,
		tokenBudget: cfg.TokenBudget,
		model:       cfg.Model,
		queueMode:   cfg.QueueMode,
	}
	if own == nil {
		return out
	}
	if own.ConversationKeepLast != nil {
		out.keepLast = int(own.GetConversationKeepLast())
	}
	if own.TokenBudget != nil {
		out.tokenBudget = int(own.GetTokenBudget())
	}
	if own.Model != nil {
		out.model = own.GetModel()
	}
	if own.QueueMode != nil {
		out.queueMode = messages.QueueMode(strings.ToLower(own.GetQueueMode()))
	}
	return out
}
