package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/messages"
)

// Toolbox gives runs the tools that their models may call.
type Toolbox struct {
	// Registry of what is offered.
	Registry *tools.Registry
	// Executor carries calls out.
	Executor *tools.Executor
	// MaxRounds bounds how often the model of one run may call tools. Default 16.
	MaxRounds int
}

// DefaultMaxRounds is how often the model of one run may call tools unless configured.
const DefaultMaxRounds = 16

// offered are the tools of a run; nil if there are none, or the provider that it tries first cannot call any.
func (d *Deps) offered(ctx context.Context, order core.RunOrder) *tools.Set {
	if d.Tools == nil {
		return nil
	}
	route, err := d.First(ctx, order.Model, order.Engine)
	if err != nil || !inference.CallsTools(route.Provider) {
		return nil
	}
	if set := d.Tools.Registry.Set(); set.Len() > 0 {
		return set
	}
	return nil
}

// toolRun is the part of a run that calls tools.
type toolRun struct {
	deps   *Deps
	report *reporter
	// offered to the model; nil = none.
	offered *tools.Set
	steer   *steering
	// rounds so far, and how many bytes the model is told of them.
	rounds []inference.Round
	bytes  int
	// earlier are the actions of the batches before; batch those of the present one by their calls, nil = not begun.
	earlier, batch []*messages.ToolAction
	told           time.Time
	// exited are closed when no call of a batch is at work any more, also of one that was left behind.
	exited []<-chan struct{}
}

func (t *toolRun) specs(provider inference.Provider) []inference.ToolSpec {
	if t.offered == nil || !inference.CallsTools(provider) {
		return nil
	}
	var specs []inference.ToolSpec
	for _, spec := range t.offered.Specs() {
		specs = append(specs, inference.ToolSpec{Name: spec.Name, Description: spec.Description, Input: spec.Input})
	}
	return specs
}

// carryOut does what the model asked for and notes the round. The error is why it did not come to its end.
func (t *toolRun) carryOut(ctx context.Context, text string, asked []inference.ToolCall) error {
	calls := make([]tools.Call, len(asked))
	for i, call := range asked {
		calls[i] = tools.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments}
	}
	round := inference.Round{Text: text, Calls: asked}
	t.batch = make([]*messages.ToolAction, len(calls))
	out := t.deps.Tools.Executor.Run(ctx, t.offered, calls, tools.Hooks{
		Launch: t.launch,
		Boundary: func(ctx context.Context) bool {
			round.Said = append(round.Said, t.steer.boundary(ctx, len(t.rounds)+2)...)
			return len(round.Said) > 0
		},
		Observe: t.observe,
	})
	t.exited = append(t.exited, out.Exited)
	t.earlier, t.batch = t.actions(), nil
	if out.Err != nil {
		return out.Err
	}
	for _, answer := range out.Answers {
		round.Answers = append(round.Answers, answer.Text)
		t.bytes += len(answer.Text)
	}
	for _, said := range round.Said {
		t.bytes += len(said)
	}
	t.rounds = append(t.rounds, round)
	return nil
}

// launch asks the session for leave: it records that the calls start before they do.
func (t *toolRun) launch(ctx context.Context, ids []string) error {
	at := t.report.place()
	t.report.tell(core.ToolsAsked{RunID: at.RunID, Attempt: at.Attempt, CallIDs: ids})
	select {
	case <-t.steer.launched:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// updateEvery is how often progress within calls is shown; their beginnings and ends always are.
const updateEvery = 400 * time.Millisecond

// observe tells the session what the calls do.
func (t *toolRun) observe(u tools.Update) {
	action := actionOf(u)
	action.Id = fmt.Sprintf("%d.%d", len(t.rounds)+1, u.Index+1)
	t.batch[u.Index] = action
	if u.Phase == tools.PhaseUpdated && time.Since(t.told) < updateEvery {
		return
	}
	t.told = time.Now()
	place := t.report.place()
	t.report.tell(core.ToolsMoved{RunID: place.RunID, Attempt: place.Attempt, Actions: t.actions()})
}

// actions are all calls of the run that have begun, in their order. The session keeps what it is told: the list is a new one.
func (t *toolRun) actions() []*messages.ToolAction {
	return slices.DeleteFunc(slices.Concat(t.earlier, t.batch), func(a *messages.ToolAction) bool { return a == nil })
}

// actionOf is what is shown of a call: never its arguments, and never what it gave.
func actionOf(u tools.Update) *messages.ToolAction {
	action := &messages.ToolAction{Kind: "tool", Title: u.Call.Name, Phase: string(u.Phase)}
	if f := u.Answer.Failure; f != nil && f.Type == tools.ErrorUnknownTool { // any text of the model
		action.Title = f.Tool
	}
	if u.Phase != tools.PhaseCompleted {
		return action
	}
	ok := u.Answer.OK()
	action.Ok = &ok
	if f := u.Answer.Failure; f != nil {
		action.Error = &messages.ToolError{
			ErrorType: string(f.Type), Tool: f.Tool, TimeoutMs: uint64(f.Timeout.Milliseconds()), //nolint:gosec // not negative
			Exception: f.Exception, Reason: f.Reason, Message: f.Message, ValidationErrors: f.ValidationErrors,
		}
		if f.ExitCode != nil {
			code := int32(*f.ExitCode) //nolint:gosec // exit codes are small
			action.Error.ExitCode = &code
		}
		if f.Status != 0 {
			action.Error.Status = strconv.Itoa(f.Status)
		}
	}
	return action
}
