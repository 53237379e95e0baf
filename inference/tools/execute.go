package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Config of an Executor.
type Config struct {
	// Timeout of a call, unless its tool has one. 0 = two minutes.
	Timeout time.Duration
	// Grace is how long a call may go on after it was told to end; then it is left behind. 0 = two seconds.
	Grace time.Duration
	// Parallel bounds the calls that run at once; 1 makes every batch sequential. 0 = eight.
	Parallel int
}

const (
	standardTimeout  = 2 * time.Minute
	standardGrace    = 2 * time.Second
	standardParallel = 8
)

// Validate says what is wrong with c.
func (c Config) Validate() error {
	var problems []error
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout %s of tools is negative", c.Timeout))
	}
	if c.Grace < 0 {
		problems = append(problems, fmt.Errorf("grace %s of tools is negative", c.Grace))
	}
	if c.Parallel < 0 {
		problems = append(problems, fmt.Errorf("%d parallel calls of tools are negative", c.Parallel))
	}
	return errors.Join(problems...)
}

// Phase is where a call is that an Update tells of.
type Phase string

// Phases, as clients see them.
const (
	PhaseStarted   Phase = "started"
	PhaseUpdated   Phase = "updated"
	PhaseCompleted Phase = "completed"
)

// Valid says whether p is one of the phases.
func (p Phase) Valid() bool {
	switch p {
	case PhaseStarted, PhaseUpdated, PhaseCompleted:
		return true
	}
	return false
}

// Update tells that a call moved on. Of each call there is exactly one PhaseCompleted, the last; none other if it never ran.
type Update struct {
	// Index of the call in the batch: ids need not be unique.
	Index int
	Call  Call
	Phase Phase
	// Progress, of PhaseUpdated.
	Progress Progress
	// Answer, of PhaseCompleted.
	Answer Answer
}

// Hooks are what the one who has a batch carried out is asked and told. They are called on his own goroutine, one at a time.
type Hooks struct {
	// Launch records that the calls of these ids start. It returns before the first one does; after an error none does.
	Launch func(ctx context.Context, ids []string) error
	// Boundary says whether the user spoke: then no further call starts, and the answers are to be followed by his words. It is
	// asked after each call of a sequential batch and at the end of a parallel one. nil = nobody can speak.
	Boundary func(ctx context.Context) bool
	// Observe is told what calls do; it must not wait. nil = nobody looks.
	Observe func(Update)
}

// Outcome of a batch.
type Outcome struct {
	// Answers are complete: one for each call, in the order of the calls, whatever happened.
	Answers []Answer
	// Steered: the user spoke at a boundary.
	Steered bool
	// Err is nil, the error of Launch, or why the context has ended (context.Cause).
	Err error
	// Exited is closed when the goroutine of every call has ended: that of a tool which ignores its context outlives the batch. What
	// counts the run against a limit is given back then, not before.
	Exited <-chan struct{}
}

// Executor carries out the calls of models. It is safe for concurrent use.
type Executor struct {
	config Config
	log    *slog.Logger
}

// NewExecutor makes an Executor; config must be valid.
func NewExecutor(config Config, log *slog.Logger) *Executor {
	if config.Timeout == 0 {
		config.Timeout = standardTimeout
	}
	if config.Grace == 0 {
		config.Grace = standardGrace
	}
	if config.Parallel == 0 {
		config.Parallel = standardParallel
	}
	return &Executor{config: config, log: log}
}

// Run carries out the calls of one answer of a model: side by side, or one after the other if one of their tools is sequential.
// A call of what is not offered, or with arguments that do not satisfy the schema, is answered without being run. When ctx ends,
// running calls are cancelled and get Grace to say what they did, and no other starts.
func (e *Executor) Run(ctx context.Context, offered *Set, calls []Call, hooks Hooks) Outcome {
	x := &execution{
		executor: e, hooks: hooks,
		tools: make([]*Tool, len(calls)),
		ended: make(chan reply, len(calls)), progress: make(chan Update, progressBuffer),
	}
	parallel := e.config.Parallel
	var refused []*Failure
	for i, call := range calls {
		tool, failure := check(offered, call)
		x.tools[i] = tool
		refused = append(refused, failure)
		if failure == nil && tool.spec.Sequential {
			parallel = 1
		}
	}
	x.batch = newBatch(calls, parallel)
	for i, failure := range refused {
		if failure != nil {
			x.batch.refuse(i, failed(calls[i], failure))
		}
	}
	err := x.run(ctx)
	exited := make(chan struct{})
	go func() {
		x.work.Wait()
		close(exited)
	}()
	return Outcome{Answers: x.batch.answers, Steered: x.batch.steered, Err: err, Exited: exited}
}

// check finds the tool of a call, or says why it is not run.
func check(offered *Set, call Call) (*Tool, *Failure) {
	tool, known := offered.Lookup(call.Name)
	if !known {
		return nil, &Failure{Type: ErrorUnknownTool, Tool: clean(call.Name)}
	}
	return tool, tool.check(call.Arguments)
}

// progressBuffer holds what tools report faster than it is looked at; what does not fit is left out.
const progressBuffer = 32

// reply is that the call ended.
type reply struct {
	call   int
	answer Answer
}

// execution is one batch being carried out: it does what the batch wants and tells it what happened.
type execution struct {
	executor *Executor
	hooks    Hooks
	batch    *batch
	// tools by call; nil: there is none.
	tools    []*Tool
	ended    chan reply
	progress chan Update
	work     sync.WaitGroup
	// told: the completion of the call was observed.
	told []bool
}

// run returns why the batch was not carried out to its end.
func (x *execution) run(ctx context.Context) error {
	x.told = make([]bool, len(x.tools))
	// A call must not go on when its batch is over, however it ended.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	for {
		if ctx.Err() != nil && !x.batch.cancelled {
			failure = context.Cause(ctx)
			x.batch.cancel()
		}
		x.tellEnded()
		switch m := x.batch.next().(type) {
		case launch:
			if err := x.launch(ctx, m.calls); err != nil {
				failure = err
			}
		case start:
			x.start(ctx, m.call)
		case boundary:
			x.batch.passed(x.hooks.Boundary != nil && x.hooks.Boundary(ctx))
		case wait:
			x.wait(ctx)
		case done:
			x.tellEnded()
			return failure
		}
	}
}

func (x *execution) launch(ctx context.Context, calls []int) error {
	var ids []string
	for _, i := range calls {
		ids = append(ids, x.batch.calls[i].ID)
	}
	var err error
	if x.hooks.Launch != nil {
		err = x.hooks.Launch(ctx, ids)
	}
	x.batch.recorded(err == nil)
	return err
}

// wait until a call ends or the context does, if it has not.
func (x *execution) wait(ctx context.Context) {
	over := ctx.Done()
	if x.batch.cancelled {
		over = nil
	}
	select {
	case r := <-x.ended:
		x.batch.finished(r.call, r.answer)
	case update := <-x.progress:
		if x.batch.stages[update.Index] == stageRunning {
			x.observe(update)
		}
	case <-over:
	}
}

// tellEnded observes the calls that ended since it was called last, whether they ran or not.
func (x *execution) tellEnded() {
	for _, i := range x.batch.in(stageEnded) {
		if !x.told[i] {
			x.told[i] = true
			x.observe(Update{Index: i, Call: x.batch.calls[i], Phase: PhaseCompleted, Answer: x.batch.answers[i]})
		}
	}
}

func (x *execution) observe(update Update) {
	if x.hooks.Observe != nil {
		x.hooks.Observe(update)
	}
}

func (x *execution) start(ctx context.Context, i int) {
	call, tool := x.batch.calls[i], x.tools[i]
	x.observe(Update{Index: i, Call: call, Phase: PhaseStarted})
	one := &invocation{
		call: call, tool: tool, log: x.executor.log, grace: x.executor.config.Grace,
		timeout: tool.spec.Timeout,
		report: func(p Progress) {
			p.Message = clean(p.Message)
			select {
			case x.progress <- Update{Index: i, Call: call, Phase: PhaseUpdated, Progress: p}:
			default: // Nobody may be made to wait by progress, least of all the tool.
			}
		},
	}
	if one.timeout == 0 {
		one.timeout = x.executor.config.Timeout
	}
	x.work.Add(1)
	go func() { x.ended <- reply{call: i, answer: one.run(ctx, x.work.Done)} }()
}

// logLeft tells that a call did not end in its grace time.
func logLeft(ctx context.Context, log *slog.Logger, tool string) {
	log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "tool left behind, it does not end when it is told to",
		slog.String(messages.AttrTool, tool))
}
