package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/x/term"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitRefused     = 4
)

// app is what commands work with.
type app struct {
	in       io.Reader
	out, err io.Writer
	environ  []string

	// Of the command line.
	server string
	token  string
	json   bool

	// fullScreen is the terminal's own chat; nil = lines are used everywhere.
	fullScreen func(ctx context.Context, c *client.Client, session string) error
}

// commands is the grammar of the command line.
type commands struct {
	Server string `env:"CORREX_SERVER" default:"http://127.0.0.1:7711" placeholder:"URL" help:"Server to talk to (${env})."`
	Token  string `env:"CORREX_TOKEN" placeholder:"TOKEN" help:"Token for the server (${env})."`
	JSON   bool   `name:"json" help:"Write JSON, one value a line, for machines."`

	Serve    serveCmd    `cmd:"" help:"Serve conversations. Needs no configuration."`
	Chat     chatCmd     `cmd:"" help:"Hold a conversation."`
	Send     sendCmd     `cmd:"" help:"Send one turn and print its answer."`
	Abort    abortCmd    `cmd:"" help:"Stop the answer that is being given."`
	Withdraw withdrawCmd `cmd:"" help:"Take back a turn that no answer was begun for."`
	Resume   resumeCmd   `cmd:"" help:"Let turns go on that wait for a word after a restart (recovery.policy ask)."`
	Turns    turnsCmd    `cmd:"" help:"Ask for turns."`
	Sessions sessionsCmd `cmd:"" help:"List and show sessions."`
	Events   eventsCmd   `cmd:"" help:"Read and write a session's workflow events, as JSON lines."`
	Doctor   doctorCmd   `cmd:"" help:"Check this machine or a provider, or serve a fake one."`
	Config   configCmd   `cmd:"" help:"Show the server's configuration."`
	Version  versionCmd  `cmd:"" help:"Show the version."`
}

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *usageError) Unwrap() error { return e.err }

// exited carries the exit code of --help out of the parser.
type exited struct{ code int }

// run carries out a command line.
func run(args []string, a *app) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = e.code
		}
	}()
	var grammar commands
	parser, err := kong.New(&grammar,
		kong.Name("correx-actors"),
		kong.Description("Persistent conversations beside a workflow."),
		kong.Writers(a.out, a.err),
		kong.Exit(func(code int) { panic(exited{code}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return a.report(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return a.report(&usageError{fmt.Errorf("%w (see correx-actors --help)", err)})
	}
	a.server, a.token, a.json = grammar.Server, grammar.Token, grammar.JSON
	return a.report(parsed.Run(a))
}

// report says what went wrong on standard error and gives the exit code.
func (a *app) report(err error) int {
	var usage *usageError
	var gone *client.UnreachableError
	var refused *protocol.Error
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUnwell):
		return exitFailed
	case errors.As(err, &usage):
		a.say("%v", err)
		return exitUsage
	case errors.As(err, &gone):
		a.say("%v", err)
		a.say("start one with: make run, or: correx-actors serve (another address: --server URL or CORREX_SERVER)")
		return exitUnreachable
	case errors.As(err, &refused):
		a.say("refused: %v", err)
		return exitRefused
	}
	a.say("%v", err)
	return exitFailed
}

// say writes a line for people to standard error.
func (a *app) say(format string, args ...any) {
	_ = put(a.err, fmt.Sprintf("correx-actors: "+format+"\n", args...)) // there is no one else to tell
}

// write writes to standard output.
func (a *app) write(format string, args ...any) error {
	if err := put(a.out, fmt.Sprintf(format, args...)); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// writeJSON writes one value on a line.
func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// writeFrame writes a frame as the server sent it.
func (a *app) writeFrame(f protocol.ServerFrame) error {
	b, err := protocol.Encode(f)
	if err != nil {
		return err
	}
	return a.write("%s\n", b)
}

// client gives a client of the chosen server.
func (a *app) client() (*client.Client, error) {
	c, err := client.New(a.server, a.token)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// put writes text to a stream; a file or a pipe gets every byte.
func put(w io.Writer, text string) error {
	if isTerminal(w) {
		text = visible(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// visible is text as it may reach a terminal: what models and other users write must not move the cursor, set a title or turn
// the direction of what follows.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

// isTerminal says whether a person sits at the other end.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}
