package tui

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
)

// Measures of the screen, in columns and lines.
const (
	// margin is left of the text: a space, the bar of an input, a space.
	margin = 3
	// maxText keeps lines readable on wide screens.
	maxText = 100
	// prompt is what stands before the input, with the frame.
	prompt = 4
	// maxInput bounds the lines of the input that are shown, together with a third of the screen.
	maxInput = 10
	// minFrame is the height from which the input has a frame and a line of hints.
	minFrame = 9
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

func (m *model) inputWidth() int { return max(2, m.width-2*prompt+2) }

// inputRows gives the rows of the input, those that are shown, and the cursor among the shown.
func (m *model) inputRows() (shown []row, line, col, hidden int) {
	rows := m.input.rows(m.inputWidth())
	line, col = m.input.cursor(rows)
	fit := max(1, min(len(rows), maxInput, m.height/3))
	first := min(max(0, line-fit+1), len(rows)-fit)
	return rows[first : first+fit], line - first, col, first
}

// logHeight is how many lines of the transcript are shown.
func (m *model) logHeight() int {
	shown, _, _, _ := m.inputRows()
	used := len(shown) + 1 // the status
	if m.height >= minFrame {
		used += 3 // the frame and the hints
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
	rows, line, col, _ := m.inputRows()
	s := screen{lines: m.window(m.logHeight())}
	s.lines = append(s.lines, m.statusLine())
	if m.height < minFrame {
		for i, r := range rows {
			s.lines = append(s.lines, promptOf(i)+m.input.draw(r))
		}
		s.x, s.y = 2+col, len(s.lines)-len(rows)+line
		return s.crop(m.height)
	}
	frame := m.frameStyle()
	edge := strings.Repeat("─", max(0, m.width-2))
	s.lines = append(s.lines, frame.Render("╭"+edge+"╮"))
	s.x, s.y = prompt+col, len(s.lines)+line
	for i, r := range rows {
		text := m.input.draw(r)
		if m.input.text == "" {
			text = m.styles.dim.Render(cut("Write a message", m.inputWidth()))
		}
		gap := strings.Repeat(" ", max(0, m.width-prompt-lipgloss.Width(text)-1))
		s.lines = append(s.lines, frame.Render("│")+" "+promptOf(i)+text+gap+frame.Render("│"))
	}
	s.lines = append(s.lines, frame.Render("╰"+edge+"╯"), m.hint())
	return s
}

func promptOf(line int) string {
	if line == 0 {
		return "› "
	}
	return "  "
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

func (m *model) frameStyle() lipgloss.Style {
	if m.conn == linkConnected {
		return m.styles.dim
	}
	return m.styles.warn
}

// statusLine tells where the conversation stands: the session and its workflow on the left, what is going on on the right.
func (m *model) statusLine() string {
	left := []string{oneLine(m.session)}
	if m.status != "" {
		left = append(left, oneLine(m.status))
	}
	if m.stage != "" {
		left = append(left, "stage "+oneLine(m.stage))
	}
	var right []string
	if activity := m.activity(); activity != "" {
		right = append(right, activity)
	}
	if m.queued > 0 {
		right = append(right, strconv.Itoa(m.queued)+" queued")
	}
	dot, style := "● ", m.styles.good
	if m.conn != linkConnected {
		dot, style = "○ ", m.styles.warn
	}
	doing := strings.Join(right, " · ")
	state := dot + string(m.conn)
	room := m.width - 2
	if textWidth(doing)+3+textWidth(state) > room {
		doing = ""
	}
	state = cut(state, room)
	room -= textWidth(state)
	tail := style.Render(state)
	if doing != "" {
		room -= textWidth(doing) + 3
		tail = doing + m.styles.dim.Render(" · ") + tail
	}
	title := cut(strings.Join(left, " · "), room-1)
	return " " + m.styles.dim.Render(title) + strings.Repeat(" ", max(0, room-textWidth(title))) + tail
}

func (m *model) activity() string {
	switch {
	case m.running == "":
		return ""
	case m.aborting:
		return "stopping"
	}
	text := "answering " + strconv.Itoa(m.seconds) + " s"
	if m.attempt > 1 {
		text += ", attempt " + strconv.Itoa(int(m.attempt))
	}
	return text
}

// hint is the last line: what matters most now.
func (m *model) hint() string {
	width := m.width - 2
	switch {
	case m.armed:
		return "  " + m.styles.warn.Render(cut("Ctrl-C again leaves", width))
	case m.trouble != "":
		return "  " + m.styles.warn.Render(cut(oneLine(m.trouble), width))
	case m.scroll > 0:
		return "  " + m.styles.user.Render(cut("↓ "+strconv.Itoa(m.scroll)+" more lines · PgDn · Esc to the end", width))
	case m.busy():
		return "  " + m.styles.dim.Render(cut("Esc stops the answer · Enter queues a message · /steer TEXT · /help", width))
	}
	return "  " + m.styles.dim.Render(cut("Enter sends · Alt+Enter new line · PgUp scrolls · /help · Ctrl-D leaves", width))
}
