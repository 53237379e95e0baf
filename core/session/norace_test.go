//go:build !race

package session_test

// walkSessions is the number of sessions of a thousand steps each that the long walk takes.
const walkSessions = 50
