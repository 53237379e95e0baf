package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// passedOn are the variables that every command gets.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "LANG", "LC_ALL", "TZ",
	"SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT",
}

// process is a server that we started. It leads a process group of its own where there is such a thing.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	// exited is closed when the process has ended and was reaped, logged when its last words were read.
	exited, logged chan struct{}
}

func startProcess(server Server, log *slog.Logger) (*process, error) {
	// Not CommandContext: that kills the process alone, and without warning.
	cmd := exec.Command(server.Command, server.Args...) //nolint:noctx // stop ends it, and all that it started
	cmd.SysProcAttr = ownGroup()
	for _, name := range append(passedOn, server.Env...) {
		if value, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// Files of our own, not the pipes of exec: those are closed by Wait, whether they were read or not.
	p := &process{cmd: cmd, exited: make(chan struct{}), logged: make(chan struct{})}
	var theirs [3]*os.File
	err := errors.Join(pipe(&theirs[0], &p.stdin), pipe(&p.stdout, &theirs[1]), pipe(&p.stderr, &theirs[2]))
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = cmd.Start()
	}
	for _, file := range theirs {
		closeFile(file)
	}
	if err != nil {
		p.closeFiles()
		return nil, fmt.Errorf("start the command: %w", err)
	}
	go p.logWords(log)
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // How it ended is nobody's business: it is started again.
	}()
	return p, nil
}

func pipe(reader, writer **os.File) error {
	var err error
	*reader, *writer, err = os.Pipe()
	return err
}

func closeFile(file *os.File) {
	if file != nil {
		_ = file.Close()
	}
}

func (p *process) closeFiles() {
	closeFile(p.stdin)
	closeFile(p.stdout)
	closeFile(p.stderr)
}

// logWords tells what the server writes to its standard error; a server that nobody reads there would stop.
func (p *process) logWords(log *slog.Logger) {
	defer close(p.logged)
	ctx := context.Background()
	lines := bufio.NewReaderSize(p.stderr, 4096)
	for {
		line, err := lines.ReadSlice('\n')
		if words := strings.TrimSpace(string(line)); words != "" && log.Enabled(ctx, slog.LevelDebug) {
			log.LogAttrs(ctx, slog.LevelDebug, "mcp server says", slog.String(messages.AttrReason, inference.CleanMessage(words)))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			_, _ = io.Copy(io.Discard, p.stderr)
			return
		}
	}
}

// stop ends the process and all that it started: by the end of its input, then by a signal, then by force. Each step gets the
// grace time. It returns when the process was reaped.
func (p *process) stop(grace time.Duration) {
	closeFile(p.stdin)
	if !p.ends(grace) {
		p.signal(false)
		if !p.ends(grace) {
			p.signal(true)
			<-p.exited
		}
	}
	// What it started may have outlived it.
	p.signal(true)
	p.closeFiles()
	<-p.logged
}

func (p *process) ends(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}
