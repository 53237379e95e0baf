package session

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// interpret carries out what was decided, in order.
func (s *Session) interpret(ctx actor.Context, effects []core.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case core.Publish:
			s.publish(e)
		case core.AskSlot:
			s.askSlot(e)
		case core.DropSlot:
			s.dropSlot()
		case core.ArmSlot:
			s.armSlot(e)
		case core.ArmSettle:
			s.arm(due{life: s.life, what: dueCommand, cmd: core.SettleOver{Settle: e.Settle}}, e.After)
		case core.ArmStart:
			s.arm(due{life: s.life, what: dueCommand, cmd: core.StartAgain{RunID: e.RunID, Attempt: e.Attempt}}, e.After)
		case core.StartRun:
			s.startRun(ctx, e)
		case core.CancelRun:
			if s.runner != nil {
				s.deps.Kernel.Tell(s.runner, runner.Cancel{Cause: e.Cause})
			}
		case core.ArmGrace:
			s.arm(due{life: s.life, what: dueCommand, cmd: core.GraceOver{RunID: e.RunID, Attempt: e.Attempt}}, e.After)
		case core.OfferSteer:
			s.offerSteer(e)
		case core.ArmOffer:
			s.arm(due{life: s.life, what: dueCommand, cmd: core.OfferOver{TurnID: e.TurnID}}, e.After)
		case core.LaunchTools:
			if s.runner != nil {
				s.deps.Kernel.Tell(s.runner, runner.LaunchTools{CallIDs: e.CallIDs})
			}
		case core.RefuseSteer:
			if s.runner != nil {
				s.deps.Kernel.Tell(s.runner, runner.RefuseSteer{TurnID: e.TurnID})
			}
		case core.Inject:
			if s.runner != nil {
				s.deps.Kernel.Tell(s.runner, runner.Inject{TurnID: e.TurnID})
			}
		case core.AckRunner:
			if s.runner != nil {
				s.deps.Kernel.Tell(s.runner, runner.Ack{})
			}
		case core.AnnounceEvents:
			s.announce(e.Head)
		}
	}
}

// offerSteer hands the turn to the runner; without one the deadline would have to pass for nothing.
func (s *Session) offerSteer(e core.OfferSteer) {
	if s.runner == nil {
		s.deps.Kernel.Tell(s.self, core.SteerAnswered{
			RunID: e.RunID, Attempt: e.Attempt, TurnID: e.TurnID, Reason: "the run is ending",
		})
		return
	}
	s.deps.Kernel.Tell(s.runner, runner.Offer{TurnID: e.TurnID, Text: e.Text})
}

// explainContext builds the pack that a turn would get now, outside the actor: counting tokens takes time.
func (s *Session) explainContext(p *pending, m *messages.GetContext) {
	keepLast, budget, model := s.state.PackSettings(s.deps.Core)
	if m.GetModel() != "" {
		model = m.GetModel()
	}
	order := core.RunOrder{
		Key: s.key, Router: s.state.Router, Turns: s.state.Conversation(), KeepLast: keepLast, TokenBudget: budget, Model: model,
	}
	deps, key, self := s.deps, s.key, s.self
	go func() {
		reply := &messages.ContextExplained{Pack: explain(runner.Pack(&deps.Runner, order))}
		deps.Kernel.TellAs(p.sender, &Answer{Key: key, ID: p.id, Reply: reply}, self)
	}()
}

func explain(pack contextpack.Pack) *messages.PackView {
	view := &messages.PackView{
		Budget:     uint32(pack.Budget), //nolint:gosec // token counts
		Tokens:     uint32(pack.Tokens), //nolint:gosec // token counts
		OverBudget: pack.OverBudget,
		Tokenizer:  pack.Tokenizer,
	}
	for _, e := range pack.Entries {
		view.Entries = append(view.Entries, &messages.PackEntry{
			Layer: string(e.Layer), Role: string(e.Role), Content: e.Content, Tokens: uint32(e.Tokens), //nolint:gosec // token counts
			Kept: e.Kept, Reason: e.Reason,
		})
	}
	return view
}
