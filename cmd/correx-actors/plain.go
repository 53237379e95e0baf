package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// maxLine bounds a line of input, far over what a server takes.
const maxLine = 4 << 20

// lineChat is a conversation in lines: answers on standard output, all else on standard error. At a terminal every line is
// sent at once and waits in the server's queue. From a pipe a line waits for the answer to the one before it, so a script of
// any length meets no limit and reads its answers in order; only commands about the running answer and the queue do not wait.
type lineChat struct {
	a       *app
	client  *client.Client
	session string
	signals <-chan os.Signal
	prompts bool

	talk  *client.Talk
	lines <-chan string
	// unread is why reading ended; set before lines is closed.
	unread error
	// held is a line from a pipe that waits for what was sent before it; nil = none.
	held *string
	eof  bool
	// reached: there was a connection.
	reached bool
	// open counts inputs and questions without an end.
	open int
	// undecided counts inputs that are neither accepted nor refused.
	undecided int
	// waiting are this chat's turns that no run has taken, in the order of their acceptance.
	waiting []string
	// tools of the active run, as shown.
	tools client.Tools
	// running is the active run; "" = none.
	running string
	// shown is the run that answer belongs to.
	shown  string
	answer client.Answer
	// warned: one Ctrl-C was pressed since the last input.
	warned bool
	// failure of an input, for the exit code of a script.
	failure error
}

func newLineChat(a *app, c *client.Client, session string, signals <-chan os.Signal) *lineChat {
	return &lineChat{
		a: a, client: c, session: session, signals: signals,
		prompts: isTerminal(a.in) && isTerminal(a.out) && !a.json,
	}
}

// errQuit ends the loop in good order.
var errQuit = errors.New("quit")

func (l *lineChat) run(ctx context.Context) error {
	opts := client.TalkOptions{GiveUp: waitForServer}
	if l.prompts {
		opts.GiveUp = 0 // a person decides
	}
	l.talk = l.client.Talk(ctx, l.session, opts)
	defer l.talk.Close()
	l.lines = l.readLines()
	for !l.finished() {
		err := l.step()
		if errors.Is(err, errQuit) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if l.prompts {
		return nil
	}
	return l.failure
}

// finished says whether the input has ended and everything was answered. No input at all still asks whether there is a server.
func (l *lineChat) finished() bool { return l.eof && l.held == nil && l.open == 0 && l.reached }

func (l *lineChat) step() error {
	lines := l.lines
	if l.held != nil {
		lines = nil
	}
	select {
	case line, ok := <-lines:
		if !ok {
			l.ended()
			return nil
		}
		return l.line(line)
	case notice, ok := <-l.talk.Notices():
		if !ok {
			return l.talk.Err()
		}
		if err := l.notice(notice); err != nil {
			return err
		}
		if l.held != nil {
			line := *l.held
			l.held = nil
			return l.line(line)
		}
		return nil
	case sig := <-l.signals:
		return l.signal(sig)
	}
}

// readLines reads lines in the background; the reader of a terminal cannot be interrupted.
func (l *lineChat) readLines() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(l.a.in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		l.unread = scanner.Err()
	}()
	return lines
}

// line carries out a command or sends a text.
func (l *lineChat) line(line string) error {
	l.warned = false
	text := strings.TrimSpace(line)
	command, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case text == "":
		l.prompt()
	case !l.prompts && l.waits(command):
		l.held = &line
	case strings.HasPrefix(text, "//"):
		l.submit(&protocol.ChatInput{Text: text[1:]})
	case !strings.HasPrefix(text, "/"):
		l.submit(&protocol.ChatInput{Text: text})
	case command == "/quit":
		return errQuit
	case command == "/help":
		return l.help()
	case command == "/status":
		l.open++
		l.talk.Ask(&protocol.GetSession{SessionID: l.session})
	case command == "/abort":
		l.open++
		l.talk.Abort(l.running)
	case command == "/withdraw":
		l.withdraw(rest)
	default:
		l.special(command, rest)
	}
	return nil
}

// waits says whether a line from a pipe has to wait for what was sent before it.
func (l *lineChat) waits(command string) bool {
	switch command {
	case "/abort", "/steer", "/followup", "/interrupt":
		return false
	case "/withdraw":
		return l.undecided > 0
	}
	return l.open > 0
}

// special sends a text that is not a plain turn.
func (l *lineChat) special(command, text string) {
	input := &protocol.ChatInput{Text: text}
	switch command {
	case "/steer":
		input.Mode = protocol.ModeSteering
	case "/followup", "/interrupt":
		input.QueueMode = command[1:]
	default:
		l.a.say("unknown command %s; /help lists them (// begins a text with a slash)", command)
		return
	}
	if text == "" {
		l.a.say("%s needs a text", command)
		return
	}
	l.submit(input)
}

// withdraw takes back a turn, or the last one of this chat that waits.
func (l *lineChat) withdraw(turn string) {
	if turn == "" && len(l.waiting) == 0 {
		l.a.say("nothing to withdraw")
		return
	}
	if turn == "" {
		turn = l.waiting[len(l.waiting)-1]
	}
	l.open++
	l.talk.Ask(&protocol.Withdraw{SessionID: l.session, TurnID: turn})
}

// ended notes the end of the input, which may have come too early.
func (l *lineChat) ended() {
	l.eof, l.lines = true, nil
	if l.unread != nil {
		l.failure = fmt.Errorf("read input: %w", l.unread)
		l.a.say("%v", l.failure)
	}
}

func (l *lineChat) help() error {
	return l.a.write("%s", `/status       the session's state
/steer TEXT   a turn that also leaves TEXT as a steering note for the workflow
/followup TEXT
              a turn that joins the last /followup, if that waits and is recent: both get one answer
/interrupt TEXT
              stop the answer that is being given, and go first
/withdraw     take back the last turn that no answer was begun for (or /withdraw TURN)
/abort        stop the answer that is being given (also Ctrl-C)
/quit         leave; the session stays (also Ctrl-C twice, or the end of input)
//TEXT        a text that begins with a slash
`)
}

func (l *lineChat) submit(input *protocol.ChatInput) {
	l.open++
	l.undecided++
	if input.Mode == "" {
		input.Mode = protocol.ModeChat
	}
	l.talk.Submit(input)
}

// signal: the first Ctrl-C stops the answer, the second one the chat.
func (l *lineChat) signal(sig os.Signal) error {
	switch {
	case sig == syscall.SIGTERM, l.warned:
		if l.open > 0 {
			return fmt.Errorf("left with %d turns open; their answers are kept: correx-actors chat %s", l.open, l.session)
		}
		return errQuit
	case l.running != "" || l.open > 0:
		l.open++
		l.talk.Abort(l.running)
		l.a.say("aborting the answer; Ctrl-C again leaves")
	default:
		l.a.say("Ctrl-C again leaves")
	}
	l.warned = true
	return nil
}

func (l *lineChat) prompt() {
	if l.prompts && l.open == 0 {
		_ = l.a.write("> ") // the next write tells
	}
}
