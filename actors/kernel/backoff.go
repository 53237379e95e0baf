package kernel

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// What the zero values of Backoff stand for.
const (
	backoffMin    = 100 * time.Millisecond
	backoffMax    = 30 * time.Second
	backoffFactor = 2
	backoffJitter = 0.2
	backoffLimit  = 5
	backoffWindow = time.Minute
)

// maxStatistics bounds the failure times that protoactor keeps per child. Reaching it forgets the recent ones too, once.
const maxStatistics = 256

// Backoff is a supervisor strategy: a child that fails is restarted after a delay that grows with its recent failures, and
// is stopped when there are too many. While it waits it handles nothing but system messages. It never escalates.
type Backoff struct {
	// Min is the delay before the first restart; 0 = 100 ms.
	Min time.Duration
	// Max bounds the delay; 0 = 30 s, or Min if that is longer.
	Max time.Duration
	// Factor multiplies the delay with every further failure inside Window; 0 = 2.
	Factor float64
	// Jitter spreads the delay by this part of it to both sides; 0 = 0.2, negative = none.
	Jitter float64
	// Limit is the number of restarts inside Window after which the next failure stops the child; 0 = 5, negative = none.
	Limit int
	// Window is the time after which a failure is forgotten; 0 = twice the sum of the delays up to Limit, at least 1 min.
	// A shorter window than that sum is never full, so the child is never stopped.
	Window time.Duration
	// Rand gives numbers in [0, 1) for the jitter; nil = math/rand.
	Rand func() float64
	// OnFailure is told of every failure; restarts is the number of restarts inside Window so far. It runs in the
	// supervisor's Receive, so it must not block. A panic in it is contained.
	OnFailure func(child *actor.PID, reason any, restarts int)
}

var _ actor.SupervisorStrategy = Backoff{}

// HandleFailure implements actor.SupervisorStrategy.
func (b Backoff) HandleFailure(
	as *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any,
) {
	b = b.withDefaults()
	restarts := b.count(stats)
	b.tell(as, child, reason, restarts)
	if b.Limit >= 0 && restarts >= b.Limit {
		publishDecision(as, child, reason, actor.StopDirective)
		supervisor.StopChildren(child)
		return
	}
	publishDecision(as, child, reason, actor.RestartDirective)
	failed, _ := as.ProcessRegistry.GetLocal(child.Id)
	time.AfterFunc(b.delay(restarts), func() {
		// It may have been stopped meanwhile, and its name given to another actor.
		if now, ok := as.ProcessRegistry.GetLocal(child.Id); ok && now == failed {
			supervisor.RestartChildren(child)
		}
	})
}

func (b Backoff) withDefaults() Backoff {
	setDefault(&b.Min, backoffMin)
	setDefault(&b.Max, max(backoffMax, b.Min))
	setDefault(&b.Factor, backoffFactor)
	setDefault(&b.Jitter, backoffJitter)
	setDefault(&b.Limit, backoffLimit)
	if b.Window == 0 {
		b.Window = max(backoffWindow, 2*b.totalDelay())
	}
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return b
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// count records the failure and gives the number of earlier ones inside the window.
func (b Backoff) count(stats *actor.RestartStatistics) int {
	recent := stats.NumberOfFailures(b.Window)
	if recent == 0 || stats.FailureCount() >= max(maxStatistics, 4*b.Limit) {
		stats.Reset()
	}
	stats.Fail()
	return recent
}

// totalDelay is the time that restarts up to the limit take, without jitter.
func (b Backoff) totalDelay() time.Duration {
	var total float64
	for restarts := range b.Limit {
		total += b.plainDelay(restarts)
	}
	return time.Duration(total)
}

func (b Backoff) plainDelay(restarts int) float64 {
	return math.Min(float64(b.Min)*math.Pow(b.Factor, float64(restarts)), float64(b.Max))
}

func (b Backoff) delay(restarts int) time.Duration {
	d := b.plainDelay(restarts)
	if b.Jitter > 0 {
		d *= 1 + b.Jitter*(2*b.Rand()-1)
	}
	return time.Duration(math.Min(d, float64(b.Max)))
}

func (b Backoff) tell(as *actor.ActorSystem, child *actor.PID, reason any, restarts int) {
	if b.OnFailure == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			as.Logger().Error("failure callback panicked", slog.String(keyActor, child.Id), slog.Any(keyReason, r))
		}
	}()
	b.OnFailure(child, reason, restarts)
}

func publishDecision(as *actor.ActorSystem, child *actor.PID, reason any, directive actor.Directive) {
	as.EventStream.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// contained stops the child when its strategy panics, instead of failing the supervisor.
type contained struct {
	inner actor.SupervisorStrategy
	log   *slog.Logger
}

// HandleFailure implements actor.SupervisorStrategy.
func (c contained) HandleFailure(
	as *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, msg any,
) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("supervisor strategy panicked", slog.String(keyActor, child.Id), slog.Any(keyReason, r))
			supervisor.StopChildren(child)
		}
	}()
	c.inner.HandleFailure(as, supervisor, child, stats, reason, msg)
}

// topmost turns an escalation at the root into a stop of the child: above the root there is only the end of the process.
type topmost struct{ contained }

// HandleFailure implements actor.SupervisorStrategy.
func (t topmost) HandleFailure(
	as *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, msg any,
) {
	t.contained.HandleFailure(as, noEscalation{Supervisor: supervisor, child: child}, child, stats, reason, msg)
}

type noEscalation struct {
	actor.Supervisor

	child *actor.PID
}

// EscalateFailure implements actor.Supervisor.
func (n noEscalation) EscalateFailure(any, any) { n.StopChildren(n.child) }
