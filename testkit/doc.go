// Package testkit tests what is built on this runtime, at several heights:
//
//   - [SessionKit] runs the rules of one session synchronously: a command goes in; records, effects, reply and state come out.
//     No actor, no journal, no provider, time by hand. After every command it checks the invariants, so a scenario tests more
//     than what it asserts.
//   - [ScriptedProvider], [FaultyJournal] and [Probe] surround real actors: a model that does what its script says, a journal
//     that fails when it is told to, and an actor that is asked what it got.
//   - [Explore] plays a scenario of real actors under many schedules, and [CrashEvery] with a crash at each of its appends: for
//     what one run of a test does not show. Both say how to play a failure again.
//   - persistence/journaltest, a package of its own, is the contract of journal drivers.
//
// All of it works inside testing/synctest bubbles, where a test of a five-minute timeout takes a millisecond, and outside.
// Inside a bubble make the parts in the bubble.
//
// It does not mock: what is not a fault by script behaves as the product's own driver does.
package testkit
