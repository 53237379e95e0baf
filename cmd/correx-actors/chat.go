package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/correx/correx-actors/messages/protocol"
)

type chatCmd struct {
	Session string `arg:"" optional:"" help:"The session's id; without it a new session begins."`
	Plain   bool   `help:"Use lines on standard input and output, for scripts and screen readers."`
}

// Run implements the command.
func (c *chatCmd) Run(a *app) error {
	server, err := a.client()
	if err != nil {
		return err
	}
	session := c.Session
	if session == "" {
		answer, err := question[*protocol.SessionStarted](a, &protocol.StartSession{})
		if err != nil {
			return err
		}
		session = answer.SessionID
	}
	ctx := context.Background()
	if a.fullScreen != nil && !c.Plain && !a.json && isTerminal(a.in) && isTerminal(a.out) {
		return a.fullScreen(ctx, server, session)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return newLineChat(a, server, session, signals).run(ctx)
}
