package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/google/uuid"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// Screen is a terminal to chat on.
type Screen struct {
	In, Out *os.File
	// Err gets the last words, when the screen is the shell's again.
	Err io.Writer
	// Environ tells what the terminal can do: TERM, NO_COLOR and the like.
	Environ []string
}

// Usable says whether a person sits at a terminal that can place text.
func (s Screen) Usable() bool {
	dumb := slices.ContainsFunc(s.Environ, func(v string) bool { return v == "TERM=dumb" })
	return !dumb && term.IsTerminal(s.In.Fd()) && term.IsTerminal(s.Out.Fd())
}

// Run holds the conversation until the user leaves it or there is no server. Errors: *client.UnreachableError,
// *protocol.Error, the cause of ctx.
func (s Screen) Run(ctx context.Context, c *client.Client, session string) error {
	everything := uint64(0) // what of it is in the history already, the model knows
	talk := c.Talk(ctx, session, client.TalkOptions{AfterSeq: &everything, Events: true})
	defer talk.Close()
	// Whoever has no server gets a line, not a screen that comes and goes.
	first, open := <-talk.Notices()
	if !open {
		return talk.Err()
	}
	p := &program{talk: talk, model: newModel(session, uuid.NewString()), first: first}
	_, err := tea.NewProgram(p,
		tea.WithContext(ctx), tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithEnvironment(s.Environ),
	).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	s.farewell(p.model)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return p.err
}

// farewell tells how to go on, and gives back what the server may not have got.
func (s Screen) farewell(m *model) {
	fmt.Fprintf(s.Err, "correx-actors: session %s (go on with it later: correx-actors chat %[1]s)\n", oneLine(m.session))
	for _, text := range m.unconfirmed() {
		fmt.Fprintf(s.Err, "correx-actors: not confirmed by the server:\n%s\n", clean(text))
	}
	if draft := m.draft(); draft != "" {
		fmt.Fprintf(s.Err, "correx-actors: not sent:\n%s\n", clean(draft))
	}
}

// program lets the model run on a terminal: it hands over what comes in and does what the model wants done.
type program struct {
	model *model
	talk  *client.Talk
	first client.Notice
	// err is why the conversation ended, if it did.
	err error
}

// Init implements tea.Model.
func (p *program) Init() tea.Cmd {
	_, command := p.Update(notices{p.first})
	return command
}

// Update implements tea.Model.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var commands []tea.Cmd
	switch msg := msg.(type) {
	case notices:
		commands = append(commands, p.listen)
	case ended:
		p.err = msg.err
	}
	for _, e := range p.model.Update(msg) {
		if command := p.do(e); command != nil {
			commands = append(commands, command)
		}
	}
	return p, tea.Batch(commands...)
}

// maxNotices bounds how many notices are handled before the screen is drawn again.
const maxNotices = 256

// listen waits for notices. All that are there come together, since each message draws the screen.
func (p *program) listen() tea.Msg {
	first, open := <-p.talk.Notices()
	if !open {
		return ended{p.talk.Err()}
	}
	batch := notices{first}
	for len(batch) < maxNotices {
		select {
		case n, open := <-p.talk.Notices():
			if !open {
				return batch
			}
			batch = append(batch, n)
		default:
			return batch
		}
	}
	return batch
}

func (p *program) do(e effect) tea.Cmd {
	switch e := e.(type) {
	case submit:
		p.talk.Submit(&e.input)
	case abort:
		p.talk.Abort(e.run)
	case withdraw:
		p.talk.Ask(&protocol.Withdraw{SessionID: p.model.session, TurnID: e.turn})
	case ack:
		p.talk.Ack(e.seq)
	case state:
		p.talk.Ask(&protocol.GetSession{SessionID: p.model.session})
	case after:
		return tea.Tick(e.wait, func(_ time.Time) tea.Msg { return e.msg })
	case quit:
		return tea.Quit
	case suspend:
		return tea.Suspend
	case redraw:
		return tea.ClearScreen
	}
	return nil
}

// View implements tea.Model.
func (p *program) View() tea.View {
	drawn := p.model.View()
	view := tea.NewView(strings.Join(drawn.lines, "\n"))
	view.AltScreen = true
	view.Cursor = tea.NewCursor(drawn.x, drawn.y)
	return view
}
