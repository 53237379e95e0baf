package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/correx/correx-actors/messages/protocol"
)

// key carries out a key.
func (m *model) key(k tea.KeyPressMsg) []effect {
	pressed := k.String()
	if pressed != "ctrl+c" {
		m.armed = false
	}
	switch pressed {
	case "enter":
		return m.enter()
	case "ctrl+c":
		return m.interrupt()
	case "esc":
		return m.escape()
	case "ctrl+d":
		if m.input.text == "" {
			return []effect{quit{}}
		}
		m.input.del()
	case "ctrl+z":
		return []effect{suspend{}}
	case "ctrl+l":
		return []effect{redraw{}}
	case "pgup":
		m.scroll += m.page()
	case "pgdown":
		m.scroll -= m.page()
	case "ctrl+home":
		m.scroll = m.lines
	case "ctrl+end":
		m.scroll = 0
	case "up", "ctrl+p":
		m.climb(-1)
	case "down", "ctrl+n":
		m.climb(1)
	default:
		m.edit(pressed, k.Text)
	}
	return nil
}

// edit changes the input or moves its cursor.
func (m *model) edit(pressed, text string) {
	in := &m.input
	switch pressed {
	case "alt+enter", "ctrl+j", "shift+enter", "ctrl+enter":
		in.insert("\n")
	case "tab":
		in.insert("\t")
	case "backspace", "ctrl+h":
		in.backspace()
	case "delete":
		in.del()
	case "left", "ctrl+b":
		in.move(in.before(in.at))
	case "right", "ctrl+f":
		in.move(in.next(in.at))
	case "alt+left", "ctrl+left", "alt+b":
		in.move(in.wordBefore())
	case "alt+right", "ctrl+right", "alt+f":
		in.move(in.wordAfter())
	case "home", "ctrl+a":
		in.move(in.lineStart())
	case "end", "ctrl+e":
		in.move(in.lineEnd())
	case "ctrl+w", "alt+backspace":
		in.erase(in.wordBefore(), in.at)
	case "alt+d":
		in.erase(in.at, in.wordAfter())
	case "ctrl+u":
		in.erase(in.lineStart(), in.at)
	case "ctrl+k":
		in.erase(in.at, in.lineEnd())
	default:
		if text != "" {
			in.insert(text)
		}
	}
}

// climb moves in the input, and beyond its first and last line through the earlier inputs.
func (m *model) climb(by int) {
	if m.input.climb(by, m.inputWidth()) {
		return
	}
	if text, ok := m.recall.step(by, m.input.text); ok {
		m.input.set(text)
	}
}

// interrupt: Ctrl-C once stops the answer, twice the chat.
func (m *model) interrupt() []effect {
	if m.armed {
		return []effect{quit{}}
	}
	m.armed = true
	m.presses++
	out := []effect{after{quitWithin, disarm{m.presses}}}
	if m.busy() {
		out = append(out, m.abort()...)
	}
	return out
}

// escape stops the answer; when none is given, it goes back to the end.
func (m *model) escape() []effect {
	if m.busy() {
		return m.abort()
	}
	m.scroll = 0
	return nil
}

func (m *model) abort() []effect {
	if m.conn == linkEnded {
		return nil
	}
	m.aborting = m.running != ""
	return []effect{abort{m.running}}
}

// enter sends the input or carries out a command. A text that cannot be sent stays where it is.
func (m *model) enter() []effect {
	text := strings.TrimSpace(m.input.text)
	if text == "" {
		return nil
	}
	command, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	isCommand := strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
	switch {
	case isCommand && command == "/quit":
		m.input.set("")
		return []effect{quit{}}
	case isCommand && command == "/help":
		m.log.note(help)
	case m.conn == linkEnded:
		m.log.fail("there is no connection any more; /quit leaves, and shows what was not sent")
		return nil
	case isCommand && command == "/status":
		m.took(text)
		m.asks = append(m.asks, askStatus)
		return []effect{state{}}
	case isCommand && command == "/abort":
		m.took(text)
		return m.abort()
	case isCommand && command == "/withdraw":
		m.took(text)
		return m.withdraw()
	case isCommand && inputCommands[command] && rest == "":
		m.log.fail(command + " needs a text")
		return nil
	case isCommand && inputCommands[command]:
		m.took(text)
		input := protocol.ChatInput{Text: rest, Mode: protocol.ModeChat, QueueMode: command[1:]}
		if command == "/steer" {
			input.Mode, input.QueueMode = protocol.ModeSteering, ""
		}
		return m.say(input)
	case isCommand:
		m.log.fail("unknown command " + command + "; /help lists them (// begins a text with a slash)")
		return nil
	default:
		m.took(text)
		if strings.HasPrefix(text, "//") {
			text = text[1:]
		}
		return m.say(protocol.ChatInput{Text: text, Mode: protocol.ModeChat})
	}
	m.took(text)
	return nil
}

// inputCommands send a text that is not a plain turn.
var inputCommands = map[string]bool{"/steer": true, "/followup": true, "/interrupt": true}

// withdraw takes back the newest input that waits.
func (m *model) withdraw() []effect {
	e := m.log.waiting()
	if e == nil {
		m.log.note("nothing to withdraw")
		return nil
	}
	return []effect{withdraw{e.turn}}
}

// took empties the input and remembers what stood there.
func (m *model) took(text string) {
	m.input.set("")
	m.recall.add(text)
	m.scroll = 0
}

const help = `Enter         send; with Alt (or Ctrl-J) a new line
↑ ↓           earlier inputs; PgUp and PgDn scroll
Esc           stop the answer (also /abort, or Ctrl-C once)
Ctrl-C twice  leave; the session stays (also /quit, or Ctrl-D)
/status       the session's state
/steer TEXT   a turn that also leaves TEXT as a steering note for the workflow
/followup TEXT, /interrupt TEXT
              a turn that joins a followup that waits; one that stops the answer
/withdraw     take back your newest turn that waits
//TEXT        a text that begins with a slash`

// describe tells a state to a person.
func describe(s *protocol.State) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("session   %s", oneLine(s.SessionID))
	workflow := s.WorkflowStatus
	if s.CurrentStageID != "" {
		workflow += ", stage " + s.CurrentStageID
	}
	line("workflow  %s", oneLine(workflow))
	line("events    %d", s.EventSequence)
	if run := s.ActiveRun; run != nil {
		line("running   %s, %s", oneLine(run.RunID), oneLine(run.Phase))
	}
	if len(s.Queue) > 0 {
		line("queued    %d", len(s.Queue))
	}
	for i, stage := range s.L2Memory {
		if i == 0 {
			line("stages    %d ended", s.L2Total)
		}
		line("- %-9s %s: %s", stage.Outcome, oneLine(stage.StageID), oneLine(stage.Summary))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
