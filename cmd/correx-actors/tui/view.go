package tui

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
)

// Measures of the screen, in columns and lines.
const (
	// margin is left of all text: a space, the mark of an input, a space.
	margin = 3
	// maxText keeps lines readable on wide screens.
	maxText = 100
	// maxInput bounds the lines of the input that are shown, together with a third of the screen.
	maxInput = 10
	// minRules is the height from which the input has rules around it and a line of hints.
	minRules = 9
)

// styles use the terminal's own colors, so they suit a dark and a light one. None carries meaning alone: without colors the
// words and marks stay.
type styles struct {
	user, steer, dim, failure, warn, good lipgloss.Style
}

func newStyles() styles {
	color := func(c string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(c)) }
	return styles{
		user: color("6"), steer: color("5"), failure: color("1"), warn: color("3"), good: color("2"),
		dim: lipgloss.NewStyle().Faint(true),
	}
}

// screen is a drawn model.
type screen struct {
	lines []string
	// The cursor's place.
	x, y int
}

func (m *model) resize(width, height int) {
	m.width, m.height = max(width, 1), max(height, 1)
}

func (m *model) textWidth() int { return max(1, min(m.width-margin-1, maxText)) }

func (m *model) inputWidth() int { return max(2, m.width-margin-1) }

// inputRows gives the rows of the input that are shown, the cursor among them, and the number of the first.
func (m *model) inputRows() (shown []row, line, col, first int) {
	rows := m.input.rows(m.inputWidth())
	line, col = m.input.cursor(rows)
	fit := max(1, min(len(rows), maxInput, m.height/3))
	first = min(max(0, line-fit+1), len(rows)-fit)
	return rows[first : first+fit], line - first, col, first
}

// logHeight is how many lines of the transcript are shown.
func (m *model) logHeight() int {
	shown, _, _, _ := m.inputRows()
	used := len(shown) + 1 // the status
	if m.height >= minRules {
		used += 3 // the rules and the hints
	}
	return max(0, m.height-used)
}

func (m *model) page() int { return max(1, m.logHeight()-2) }

// arrange lays out what has changed. A reader who has scrolled back keeps what is on the screen.
func (m *model) arrange() {
	total := 0
	for _, e := range m.log.entries {
		e.layout.update(e.text, m.textWidth())
		total += m.heightOf(e)
	}
	if m.scroll > 0 && total > m.lines {
		m.scroll += total - m.lines
	}
	m.lines = total
	m.scroll = max(0, min(m.scroll, total-m.logHeight()))
}

// heightOf is the number of lines that draw gives.
func (m *model) heightOf(e *entry) int {
	height := 1 // the empty line behind it
	if e.text != "" {
		height += len(e.layout.lines)
	}
	for _, line := range m.below(e) {
		height += len(line.lines)
	}
	return height
}

// subline is a text under an entry.
type subline struct {
	lines []string
	style lipgloss.Style
}

// below gives what is said about an entry.
func (m *model) below(e *entry) []subline {
	var out []subline
	put := func(style lipgloss.Style, mark, text string) {
		lines := wrap(oneLine(text), max(1, m.textWidth()-2))
		for i := range lines {
			lines[i] = strings.Repeat(" ", 2) + lines[i]
			if i == 0 {
				lines[i] = mark + " " + strings.TrimPrefix(lines[i], "  ")
			}
		}
		out = append(out, subline{lines, style})
	}
	switch {
	case e.kind == kindAnswer && e.open && e.text == "":
		put(m.styles.dim, "…", m.waitingFor(e))
	case e.kind == kindAnswer && e.torn:
		put(m.styles.dim, "…", "the beginning follows at the end")
	case e.waits() && e.stage == stageUnsent && m.conn != linkConnected:
		put(m.styles.warn, "…", "not sent yet: waiting for the connection")
	case e.waits() && e.stage == stageQueued && e.steer:
		put(m.styles.steer, "…", "steering, queued")
	case e.waits() && e.stage == stageQueued && e.remark == "":
		put(m.styles.dim, "…", "queued")
	}
	switch {
	case e.remark == steeringRecorded:
		put(m.styles.steer, "✓", e.remark)
	case e.remark != "" && e.kind == kindAnswer:
		put(m.styles.warn, "┄", e.remark)
	case e.remark != "":
		put(m.styles.dim, "┄", e.remark)
	}
	if e.failure != "" {
		put(m.styles.failure, "✗", e.failure)
	}
	return out
}

func (m *model) waitingFor(e *entry) string {
	if m.aborting && e.run == m.running {
		return "stopping"
	}
	return "thinking"
}

// draw gives the lines of an entry, with an empty one behind them.
func (m *model) draw(e *entry) []string {
	var out []string
	pad := strings.Repeat(" ", margin)
	if e.text != "" {
		for i, line := range e.layout.lines {
			switch {
			case e.kind == kindUser && e.steer:
				line = " " + m.styles.steer.Render("▌") + " " + line
			case e.kind == kindUser:
				line = " " + m.styles.user.Render("▌") + " " + line
			case e.kind == kindNote:
				line = pad + m.styles.dim.Render(line)
			case e.kind == kindFailure && i == 0:
				line = " " + m.styles.failure.Render("✗ "+line)
			case e.kind == kindFailure:
				line = pad + m.styles.failure.Render(line)
			default:
				line = pad + line
			}
			out = append(out, line)
		}
	}
	for _, s := range m.below(e) {
		for _, line := range s.lines {
			out = append(out, pad+s.style.Render(line))
		}
	}
	return append(out, "")
}

// View draws the model.
func (m *model) View() screen {
	rows, line, col, first := m.inputRows()
	s := screen{lines: m.window(m.logHeight())}
	s.lines = append(s.lines, m.statusLine())
	if m.height < minRules {
		for i, r := range rows {
			s.lines = append(s.lines, promptOf(first+i)+m.input.draw(r))
		}
		s.x, s.y = margin+col, len(s.lines)-len(rows)+line
		return s.crop(m.height)
	}
	// Rules above and below, nothing at the sides: terminals do not agree on the width of some emoji.
	rule := m.ruleStyle().Render(strings.Repeat("─", m.width))
	s.lines = append(s.lines, rule)
	s.x, s.y = margin+col, len(s.lines)+line
	for i, r := range rows {
		text := m.input.draw(r)
		if m.input.text == "" {
			text = m.styles.dim.Render(cut("Write a message", m.inputWidth()))
		}
		s.lines = append(s.lines, promptOf(first+i)+text)
	}
	s.lines = append(s.lines, rule, m.hint())
	return s
}

func promptOf(line int) string {
	if line == 0 {
		return " › "
	}
	return "   "
}

// crop keeps the last lines, where the cursor is.
func (s screen) crop(height int) screen {
	if over := len(s.lines) - height; over > 0 {
		s.lines, s.y = s.lines[over:], max(0, s.y-over)
	}
	return s
}

// window gives the shown lines of the transcript; a short one stands at the bottom, above the input.
func (m *model) window(height int) []string {
	var back []string // bottom up
	skip := m.scroll
	for i := len(m.log.entries) - 1; i >= 0 && len(back) < height; i-- {
		e := m.log.entries[i]
		if h := m.heightOf(e); skip >= h {
			skip -= h
			continue
		}
		lines := m.draw(e)
		lines = lines[:len(lines)-skip]
		skip = 0
		for j := len(lines) - 1; j >= 0 && len(back) < height; j-- {
			back = append(back, lines[j])
		}
	}
	for len(back) < height {
		back = append(back, "")
	}
	slices.Reverse(back)
	return back
}

func (m *model) ruleStyle() lipgloss.Style {
	if m.conn == linkConnected {
		return m.styles.dim
	}
	return m.styles.warn
}

// statusLine tells where the conversation stands: the session and its workflow on the left, what is going on on the right.
func (m *model) statusLine() string {
	room := m.width - 2
	mark, style := "● ", m.styles.good
	if m.conn != linkConnected {
		mark, style = "○ ", m.styles.warn
	}
	link := cut(mark+string(m.conn), room)
	doing := m.activity()
	if m.queued > 0 {
		doing += strconv.Itoa(m.queued) + " queued · "
	}
	if textWidth(doing)+textWidth(link) > room {
		doing = ""
	}
	room -= textWidth(doing) + textWidth(link)
	title := m.title(room - 2)
	gap := strings.Repeat(" ", max(0, room-textWidth(title)))
	return " " + m.styles.dim.Render(title) + gap + doing + style.Render(link)
}

// title names the session and tells of its workflow. If there is no room for both, the name is cut first.
func (m *model) title(room int) string {
	about := ""
	if m.status != "" {
		about += " · workflow " + oneLine(m.status)
	}
	if m.stage != "" {
		about += " · stage " + oneLine(m.stage)
	}
	const minName = 8
	return cut(cut(oneLine(m.session), max(minName, room-textWidth(about)))+about, room)
}

func (m *model) activity() string {
	switch {
	case m.running == "", m.conn != linkConnected:
		return ""
	case m.aborting:
		return "stopping · "
	case m.attempt > 1:
		return "answering " + strconv.Itoa(m.seconds) + " s, attempt " + strconv.FormatUint(uint64(m.attempt), 10) + " · "
	}
	return "answering " + strconv.Itoa(m.seconds) + " s · "
}

// hint is the last line: what matters most now.
func (m *model) hint() string {
	room := m.width - margin - 1
	pad := strings.Repeat(" ", margin)
	switch {
	case m.armed:
		return pad + m.styles.warn.Render(cut("Ctrl-C again leaves", room))
	case m.trouble != "":
		return pad + m.styles.warn.Render(cut(oneLine(m.trouble), room))
	case m.scroll > 0:
		return pad + m.styles.user.Render(fitting(room, "↓ "+strconv.Itoa(m.scroll)+" more lines", "PgDn", "Ctrl+End to the end"))
	case m.conn == linkEnded:
		return pad + m.styles.warn.Render(fitting(room, "/quit leaves", "what was not sent is shown then"))
	case m.busy():
		return pad + m.styles.dim.Render(fitting(room, "Esc stops the answer", "Enter queues", "/steer TEXT", "/help"))
	}
	return pad + m.styles.dim.Render(fitting(room, "Enter sends", "Alt+Enter new line", "/help", "PgUp scrolls", "Ctrl-D leaves"))
}

// fitting joins as many of the hints as there is room for.
func fitting(room int, hints ...string) string {
	line := cut(hints[0], room)
	for _, hint := range hints[1:] {
		if textWidth(line+" · "+hint) <= room {
			line += " · " + hint
		}
	}
	return line
}
