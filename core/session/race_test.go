//go:build race

package session_test

// walkSessions: the race detector finds nothing in pure code, but costs ten times the time.
const walkSessions = 5
