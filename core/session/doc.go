// Package session holds the whole decision of one session: Decide says what a command does to a state, Reduce folds what was
// recorded. Pure: time and ids are inputs, effects are values, nothing here reads a clock, starts a goroutine or logs.
//
// The contract with the shell (actors/session), in this order:
//
//  1. d := Decide(state, config, command, now)
//  2. append d's records to the journal, all or none; on failure nothing of d happens
//  3. state = d.Next
//  4. send d.Reply, then carry out d.Effects in their order
//
// Replay folds Reduce only: no effect is ever repeated by it.
package session
