package wiring

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference/offline"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/messages"
)

// Config is everything that can be set. Its koanf tags are the names that files, flags and the environment use; Settings
// lists them. Start from DefaultConfig: the zero value of most fields is refused.
type Config struct {
	Listen       string   `koanf:"listen" doc:"address of the HTTP server; port 0 picks a free one"`
	Origins      []string `koanf:"origins" doc:"web origins that may connect besides the server's own, such as https://app.example.com"`
	DataDir      string   `koanf:"data_dir" doc:"folder of the journal" default:"$XDG_DATA_HOME/correx-actors, else ~/.local/share/correx-actors"`
	Provider     string   `koanf:"provider" enum:"auto,openai,offline" doc:"who answers turns that name no model; auto is the first of providers, else openai if a key or a base URL for it is set, else the embedded offline engine"`
	SystemPrompt string   `koanf:"system_prompt" doc:"what the model is told first" default:"the embedded one"`

	Providers []Provider `koanf:"providers" doc:"further providers; only a file can list them"`
	Retry     Retry      `koanf:"retry"`
	Breaker   Breaker    `koanf:"breaker"`

	Limits       Limits       `koanf:"limits"`
	Queue        Queue        `koanf:"queue"`
	Steer        Steer        `koanf:"steer"`
	Interrupt    Interrupt    `koanf:"interrupt"`
	Idempotency  Idempotency  `koanf:"idempotency"`
	Turns        Turns        `koanf:"turns"`
	Conversation Conversation `koanf:"conversation"`
	Budget       Budget       `koanf:"budget"`
	Recovery     Recovery     `koanf:"recovery"`
	Session      Session      `koanf:"session"`
	Runs         Runs         `koanf:"runs"`
	Output       Output       `koanf:"output"`
	Drain        Drain        `koanf:"drain"`
	Journal      Journal      `koanf:"journal"`
	OpenAI       OpenAI       `koanf:"openai"`
	Offline      Offline      `koanf:"offline"`
	Tools        Tools        `koanf:"tools"`
	MCP          MCP          `koanf:"mcp"`
	Log          Log          `koanf:"log"`
	Metrics      Metrics      `koanf:"metrics"`
	Telemetry    Telemetry    `koanf:"telemetry"`

	// Version is what the server tells its clients that it is; no setting.
	Version string `koanf:"-"`
}

// Limits bound what clients send.
type Limits struct {
	MaxFrameBytes int64 `koanf:"max_frame_bytes" min:"1024" doc:"longest WebSocket frame of a client, in bytes"`
	MaxInputBytes int   `koanf:"max_input_bytes" min:"1" doc:"longest text of a turn, in bytes of UTF-8"`
}

// Queue is how turns wait while a session is busy.
type Queue struct {
	Mode        string        `koanf:"mode" enum:"collect,followup,steer,steer_backlog,interrupt" doc:"what a turn does when the session is busy, unless it or its session says otherwise"`
	Limit       int           `koanf:"limit" min:"1" doc:"turns that may wait in one session"`
	MergeWindow time.Duration `koanf:"merge_window" min:"0s" doc:"how long after the last followup another one joins it"`
	Settle      time.Duration `koanf:"settle" min:"0s" doc:"how long an idle session waits for more followups before it starts the first; 0s starts it at once"`
}

// Steer is how turns are offered to a running answer.
type Steer struct {
	Deadline time.Duration `koanf:"deadline" min:"1ms" doc:"how long a run may take to answer the offer of a turn before the turn falls back to the queue"`
}

// Interrupt is how runs are canceled.
type Interrupt struct {
	Grace time.Duration `koanf:"grace" min:"1ms" doc:"how long a canceled run may take to report before it is ended without it"`
}

// Idempotency is how repeated submissions are recognized.
type Idempotency struct {
	Window time.Duration `koanf:"window" min:"1s" doc:"how long an idempotency key is remembered"`
	Keys   int           `koanf:"keys" min:"1" doc:"idempotency keys that a session remembers; beyond that the oldest are forgotten before their window ends"`
}

// Turns is what is kept of turns that have ended.
type Turns struct {
	Retention time.Duration `koanf:"retention" min:"1s" doc:"how long after its end a turn can be asked for; at least idempotency.window"`
}

// Conversation is what of a conversation a prompt holds.
type Conversation struct {
	KeepLast    int `koanf:"keep_last" min:"1" max:"1000" doc:"history entries in a prompt; twice as many are remembered"`
	TokenBudget int `koanf:"token_budget" min:"1" doc:"tokens of a prompt"`
	// AnswerReserve: see runner.Deps.
	AnswerReserve int `koanf:"answer_reserve" min:"0" doc:"tokens that a prompt leaves free in the model's window for the answer, half of the window at most; a model's max_output goes before it"`
}

// Budget bounds what a session may use.
type Budget struct {
	TokensPerDay uint64 `koanf:"tokens_per_day" min:"0" doc:"tokens of prompts and answers that one session may use on a day (UTC); 0 is no limit"`
}

// Recovery is what happens to open work after a crash.
type Recovery struct {
	Policy      string        `koanf:"policy" enum:"resume,ask,drop" doc:"what a start does with open turns: go on, wait for a user's word, or end them"`
	MaxAge      time.Duration `koanf:"max_age" min:"1s" doc:"turns that waited through a longer downtime expire"`
	MaxAttempts int           `koanf:"max_attempts" min:"1" doc:"starts of one run over crashes, the first one counted"`
}

// Session is the life of a session's actor.
type Session struct {
	Idle time.Duration `koanf:"idle" min:"1ms" doc:"how long a session without work stays in memory"`
}

// Runs bound model calls.
type Runs struct {
	MaxConcurrent     int           `koanf:"max_concurrent" min:"1" doc:"answers that are worked on at once; sessions take turns"`
	SlotTimeout       time.Duration `koanf:"slot_timeout" min:"1ms" doc:"how long a turn may wait to be among them"`
	ConnectTimeout    time.Duration `koanf:"connect_timeout" min:"1ms" doc:"connecting to the provider"`
	FirstTokenTimeout time.Duration `koanf:"first_token_timeout" min:"1ms" doc:"waiting for the first activity of an answer"`
	TokenTimeout      time.Duration `koanf:"token_timeout" min:"1ms" doc:"silence within an answer"`
	MaxToolRounds     int           `koanf:"max_tool_rounds" min:"1" doc:"how often the model of one answer may call tools"`
	Timeout           time.Duration `koanf:"timeout" min:"1ms" doc:"a whole answer, with all its calls and the waits between them"`
	MaxAnswerBytes    int           `koanf:"max_answer_bytes" min:"1" max:"1073741824" doc:"longest answer; beyond it the run ends incomplete"`
}

// Output is what is kept for clients that come back.
type Output struct {
	Keep     int           `koanf:"keep" min:"1" doc:"output items of a session kept for clients that reconnect"`
	FinalTTL time.Duration `koanf:"final_ttl" min:"1s" doc:"how long an answer that nobody acknowledged is kept for redelivery"`
}

// Drain is the orderly stop.
type Drain struct {
	Timeout time.Duration `koanf:"timeout" min:"0s" doc:"how long running answers may finish at shutdown; the rest goes on after the next start"`
}

// Journal is where everything is stored.
type Journal struct {
	Driver string `koanf:"driver" enum:"bolt,memory" doc:"bolt is a file in data_dir; memory forgets everything at the end"`
}

// OpenAI is the OpenAI-compatible provider.
type OpenAI struct {
	BaseURL URL    `koanf:"base_url" doc:"endpoint up to and without /chat/completions or /responses; also OPENAI_BASE_URL" default:"https://api.openai.com/v1"`
	API     string `koanf:"api" enum:"chat,responses" doc:"chat sends the conversation with each call; with responses the provider keeps it"`
	Model   string `koanf:"model" doc:"model of turns and sessions that name none"`
	APIKey  Secret `koanf:"api_key" doc:"key; also OPENAI_API_KEY, or the path of a file with it as openai.api_key_file or OPENAI_API_KEY_FILE"`
}

// Offline is the embedded engine.
type Offline struct {
	Delay time.Duration `koanf:"delay" min:"0s" doc:"wait before each token, to try streaming without a model"`
}

// Tools are what models may call.
type Tools struct {
	Demo    bool          `koanf:"demo" doc:"offer the demo tools echo{text}, sleep{ms} and fail{message}"`
	Timeout time.Duration `koanf:"timeout" min:"1ms" doc:"how long one call of a tool may take"`
}

// Log is what the server writes to its standard error.
type Log struct {
	Level  string `koanf:"level" enum:"debug,info,warn,error" doc:"least level that is logged"`
	Format string `koanf:"format" enum:"text,json" doc:"lines for people, or one JSON object a line"`
}

// Metrics are the numbers at GET /metrics.
type Metrics struct {
	Enabled bool `koanf:"enabled" doc:"serve metrics for Prometheus at /metrics"`
}

// Telemetry is what spans of model calls hold.
type Telemetry struct {
	Content bool `koanf:"content" doc:"put prompts and answers, 16 KiB of each, into the spans that a host takes; whoever reads the spans reads conversations"`
}

// Providers of Config.Provider.
const (
	ProviderAuto    = "auto"
	ProviderOpenAI  = "openai"
	ProviderOffline = offline.Name
)

// Drivers of Config.Journal.
const (
	DriverBolt   = "bolt"
	DriverMemory = "memory"
)

// Formats of Config.Log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// fallbackModel answers when nothing names a model: one that every OpenAI-compatible service knows or maps.
const fallbackModel = "gpt-4o-mini"

// answerReserve is enough for what a talking partner says, and leaves most of the smallest windows to the prompt.
const answerReserve = 1024

// DefaultConfig gives the documented defaults. DataDir depends on the machine and is empty: Load chooses it, and a host that
// embeds a bolt journal names its own.
func DefaultConfig() Config {
	rules, limits := core.DefaultConfig(), runner.DefaultLimits()
	retry, breaker := standardRouting()
	return Config{
		Listen:      "127.0.0.1:7711",
		Origins:     []string{},
		Provider:    ProviderAuto,
		Providers:   []Provider{},
		Retry:       retry,
		Breaker:     breaker,
		Limits:      Limits{MaxFrameBytes: 64 << 10, MaxInputBytes: rules.MaxInputBytes},
		Queue:       Queue{Mode: string(rules.QueueMode), Limit: rules.QueueLimit, MergeWindow: rules.MergeWindow, Settle: rules.Settle},
		Steer:       Steer{Deadline: rules.SteerDeadline},
		Interrupt:   Interrupt{Grace: rules.AbortGrace},
		Idempotency: Idempotency{Window: rules.IdempotencyWindow, Keys: rules.IdempotencyKeys},
		Turns:       Turns{Retention: rules.TurnRetention},
		Conversation: Conversation{
			KeepLast: rules.KeepLast, TokenBudget: rules.TokenBudget, AnswerReserve: answerReserve,
		},
		Recovery: Recovery{Policy: string(rules.RecoveryPolicy), MaxAge: rules.RecoveryMaxAge, MaxAttempts: rules.RecoveryMaxAttempts},
		Session:  Session{Idle: session.DefaultIdle},
		Runs: Runs{
			MaxConcurrent:     slots.DefaultMax,
			SlotTimeout:       rules.SlotTimeout,
			MaxToolRounds:     runner.DefaultMaxRounds,
			ConnectTimeout:    10 * time.Second,
			FirstTokenTimeout: limits.FirstToken,
			TokenTimeout:      limits.Token,
			Timeout:           limits.Whole,
			MaxAnswerBytes:    limits.MaxAnswerBytes,
		},
		Output:  Output{Keep: session.DefaultKeep, FinalTTL: rules.FinalTTL},
		Drain:   Drain{Timeout: 30 * time.Second},
		Journal: Journal{Driver: DriverBolt},
		OpenAI:  OpenAI{API: string(openai.APIChat), Model: fallbackModel},
		Tools:   Tools{Timeout: 2 * time.Minute},
		MCP:     MCP{Servers: []MCPServer{}, Wait: serversWait},
		Log:     Log{Level: "info", Format: FormatText},
		Metrics: Metrics{Enabled: true},
		Version: "unknown",
	}
}

// Validate reports every setting that cannot be, as joined *SettingError values.
func (c Config) Validate() error {
	var errs []error
	for _, f := range fields {
		if problem := f.check(f.value(c)); problem != "" {
			errs = append(errs, f.fault(c, problem))
		}
	}
	refuse := func(key, format string, args ...any) {
		errs = append(errs, fieldByKey[key].fault(c, fmt.Sprintf(format, args...)))
	}
	// One part at a time, so that each fault is told of its own setting.
	served, origins := gateway.DefaultConfig(), gateway.DefaultConfig()
	served.Listen, origins.Origins = c.Listen, c.Origins
	if err := served.Validate(); err != nil {
		refuse("listen", "%v", err)
	}
	if err := origins.Validate(); err != nil {
		refuse("origins", "%v", err)
	}
	if err := (openai.Config{BaseURL: string(c.OpenAI.BaseURL)}).Validate(); err != nil {
		refuse("openai.base_url", "%v", err)
	}
	if err := (openai.Config{APIKey: string(c.OpenAI.APIKey)}).Validate(); err != nil {
		refuse("openai.api_key", "%v", err)
	}
	if c.Turns.Retention < c.Idempotency.Window {
		refuse("turns.retention", "want at least idempotency.window, which is %s: a key that is remembered must find its turn",
			text(c.Idempotency.Window))
	}
	if err := c.checkProviders(); err != nil {
		refuse("providers", "%v", err)
	}
	if err := c.MCP.check(); err != nil {
		refuse("mcp.servers", "%v", err)
	}
	if c.Journal.Driver == DriverBolt && c.DataDir == "" {
		refuse("data_dir", "the bolt journal needs a folder")
	}
	if c.Provider == ProviderOpenAI && !c.openAIConfigured() {
		refuse("provider", "neither openai.api_key nor openai.base_url is set")
	}
	return errors.Join(errs...)
}

// Answering is the provider that auto comes down to.
func (c Config) Answering() string {
	switch {
	case c.Provider != ProviderAuto:
		return c.Provider
	case len(c.Providers) > 0:
		return c.Providers[0].Name
	}
	if c.openAIConfigured() {
		return ProviderOpenAI
	}
	return ProviderOffline
}

func (c Config) openAIConfigured() bool { return c.OpenAI.APIKey != "" || c.OpenAI.BaseURL != "" }

func (c Config) openAI(log *slog.Logger) openai.Config {
	return openai.Config{
		BaseURL:        string(c.OpenAI.BaseURL),
		API:            openai.API(c.OpenAI.API),
		APIKey:         string(c.OpenAI.APIKey),
		Model:          c.OpenAI.Model,
		ConnectTimeout: c.Runs.ConnectTimeout,
		Logger:         log,
	}
}

// rules is what the sessions decide by.
func (c Config) rules() core.Config {
	rules := core.DefaultConfig()
	rules.KeepLast = c.Conversation.KeepLast
	rules.TokenBudget = c.Conversation.TokenBudget
	rules.MaxInputBytes = c.Limits.MaxInputBytes
	rules.QueueMode = messages.QueueMode(c.Queue.Mode)
	rules.QueueLimit = c.Queue.Limit
	rules.MergeWindow = c.Queue.MergeWindow
	rules.Settle = c.Queue.Settle
	rules.SlotTimeout = c.Runs.SlotTimeout
	rules.RecoveryPolicy = core.RecoveryPolicy(c.Recovery.Policy)
	rules.CheckpointMaxBytes = c.Runs.MaxAnswerBytes + recordMargin
	rules.TokensPerDay = c.Budget.TokensPerDay
	rules.SteerDeadline = c.Steer.Deadline
	rules.IdempotencyWindow = c.Idempotency.Window
	rules.IdempotencyKeys = c.Idempotency.Keys
	rules.TurnRetention = c.Turns.Retention
	rules.AbortGrace = c.Interrupt.Grace
	rules.RecoveryMaxAge = c.Recovery.MaxAge
	rules.RecoveryMaxAttempts = c.Recovery.MaxAttempts
	rules.FinalTTL = c.Output.FinalTTL
	return rules
}

func (c Config) runLimits() runner.Limits {
	return runner.Limits{
		FirstToken:     c.Runs.FirstTokenTimeout,
		Token:          c.Runs.TokenTimeout,
		Whole:          c.Runs.Timeout,
		MaxAnswerBytes: c.Runs.MaxAnswerBytes,
	}
}
