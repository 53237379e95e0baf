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
// any length meets no limit and reads its answers in order; only /abort and /steer, which are about the running answer, do not wait.
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
	// held is a line from a pipe that waits for the answer before it; nil = none.
	held *string
	eof  bool
	// reached: there was a connection.
	reached bool
	// open counts inputs and questions without an end.
	open int
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
		if l.held != nil && l.open == 0 {
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
	switch {
	case text == "":
		l.prompt()
	case !l.prompts && l.open > 0 && command != "/abort" && command != "/steer":
		l.held = &line
	case strings.HasPrefix(text, "//"):
		l.submit(text[1:], protocol.ModeChat)
	case !strings.HasPrefix(text, "/"):
		l.submit(text, protocol.ModeChat)
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
	case command == "/steer" && strings.TrimSpace(rest) != "":
		l.submit(strings.TrimSpace(rest), protocol.ModeSteering)
	case command == "/steer":
		l.a.say("/steer needs a text")
	default:
		l.a.say("unknown command %s; /help lists them (// begins a text with a slash)", command)
	}
	return nil
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
/abort        stop the answer that is being given (also Ctrl-C)
/quit         leave; the session stays (also Ctrl-C twice, or the end of input)
//TEXT        a text that begins with a slash
`)
}

func (l *lineChat) submit(text, mode string) {
	l.open++
	l.talk.Submit(&protocol.ChatInput{Text: text, Mode: mode})
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
