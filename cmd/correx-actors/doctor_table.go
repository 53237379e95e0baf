package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"

	"github.com/correx/correx-actors/inference/doctor"
)

// verdicts is a table for people: a word, a name, what was found, and below it what to do.
type verdicts struct {
	out io.Writer
	// width in columns; 0 = lines are not broken.
	width  int
	colors bool
	rows   []finding
}

// leastText is the least width of a broken column: below it the terminal breaks better.
const leastText = 24

func (t *verdicts) add(r finding) { t.rows = append(t.rows, r) }

func (t *verdicts) print() error {
	words, names := 0, 0
	for _, r := range t.rows {
		words, names = max(words, len(wordOf(r.Verdict))), max(names, len(r.Check))
	}
	indent := words + names + 4
	for _, r := range t.rows {
		head := t.paint(r.Verdict, fmt.Sprintf("%-*s", words, wordOf(r.Verdict))) + fmt.Sprintf("  %-*s  ", names, r.Check)
		lines := t.broken(r.Detail, indent)
		if r.Advice != "" {
			for i, line := range t.broken(r.Advice, indent+2) {
				lead := "  "
				if i == 0 {
					lead = "→ "
				}
				lines = append(lines, lead+line)
			}
		}
		for i, line := range lines {
			if i > 0 {
				head = strings.Repeat(" ", indent)
			}
			// Not put: that would take the colors out; what others wrote is made visible above.
			if _, err := io.WriteString(t.out, head+line+"\n"); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
	}
	return nil
}

// broken breaks text into lines that fit behind an indent.
func (t *verdicts) broken(text string, indent int) []string {
	text = visible(strings.Join(strings.Fields(text), " "))
	if t.width == 0 || t.width-indent < leastText {
		return []string{text}
	}
	return strings.Split(lipgloss.Wrap(text, t.width-indent, ""), "\n")
}

func wordOf(verdict doctor.Verdict) string {
	if verdict == doctor.Failed {
		return "FAILED"
	}
	return string(verdict)
}

func (t *verdicts) paint(verdict doctor.Verdict, text string) string {
	if !t.colors {
		return text
	}
	color := "2" // faint
	switch verdict {
	case doctor.OK:
		color = "32"
	case doctor.Warning:
		color = "33"
	case doctor.Failed:
		color = "1;31"
	case doctor.Skipped:
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// width of the terminal that out is; 0 = it is none.
func width(out any) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(f.Fd())
	if err != nil {
		return 0
	}
	return columns
}

// colors says whether output may be colored: at a terminal that can and whose user has not said no.
func colors(a *app) bool {
	return isTerminal(a.out) && !slices.ContainsFunc(a.environ, func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return name == "NO_COLOR" && value != "" || name == "TERM" && value == "dumb"
	})
}
