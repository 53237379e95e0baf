// Package kernel is the thin layer over protoactor-go that every actor of this runtime is started through. It cures, through
// protoactor's public hooks only, the defects that would break the promise that no accepted message is lost silently.
//
// # What it gives
//
//   - A mailbox with three lanes (system, control, user) and a bound on the user lane. What will not be handled is refused
//     with a [Refusal] to its sender, or published as a dead letter if it has none. It never blocks and never spins.
//     Messages that race with the spawn or the stop of an actor are safe.
//   - [System.Ask] with a context, which never waits for an actor that has stopped and leaves nothing behind.
//   - [System.Stop], [System.Poison] and [System.Shutdown] that wait, within a context.
//   - [Backoff], a supervisor strategy with real exponential delays that gives up.
//   - A guard: an actor that panics while it ends still ends, and its parent and watchers are told.
//   - A pool of goroutines per system, so that a system in a synctest bubble ends without stragglers.
//
// # What it does not do
//
// No persistence, no cluster, no message types of the runtime, no metrics. It does not hide protoactor: actors take an
// actor.Context, and stock Props still work in the same system, with stock behavior. A message is delivered at most once, and the
// message that made an actor panic is not delivered again.
//
// # Rules for its users
//
//   - Receive, producers and Started never block and do no I/O; so no Ask, Stop, Spawn or Shutdown in Receive. Work that
//     waits runs in a goroutine that reports with [System.Tell]; the report carries a generation, and old ones are dropped.
//   - Make a context in Started, cancel it with a cause in Stopping and in Restarting: a restart sends no Stopping, and
//     Stopped comes only after all children have ended.
//   - Do not use ReenterAfter, Stash, SetReceiveTimeout, RequestFuture, the Bounded mailboxes, MessageBatch or the stock
//     strategies. Timers are [System.After]; questions between actors are messages with a sender.
//   - Capture ctx.Sender() before it is needed later: it belongs to the message being handled.
//   - Do not spawn with the root context, and do not let others address an actor by a name that they can guess: hand out
//     the PID that Spawn returned.
//   - Expected errors are answers, not panics.
//   - Every actor that sends with itself as the sender handles [*Refusal]. *actor.Terminated may come twice.
//   - After *actor.Stopping an actor gets no more user or control messages; whoever sends them gets [ErrStopped].
//   - An actor that keeps a question open answers it later with its sender's PID. If the actor ends or restarts first, a
//     waiting Ask gets [ErrStopped] or [ErrFailed]; other senders learn of it by watching the actor.
//   - Test with testing/synctest: make the System inside the bubble and call Shutdown before the bubble ends. Do not call
//     t.FailNow (require) in an actor.
package kernel
