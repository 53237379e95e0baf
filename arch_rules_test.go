package correx_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the rules of docs/architecture.md.
type layers struct {
	layers []layer
	// pure is the part of the standard library that core may import.
	pure []string
}

// layer is one row of the table.
type layer struct {
	packages []string
	// ours and others may be imported; "*" is everything.
	ours   []string
	others []string
	// std is "all" or "pure".
	std string
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// testOnly modules are imported by tests, the testkit and the contract suites, and by nothing that a user runs.
	testOnly = []string{
		"testing", "testing/...", "github.com/stretchr/testify/...", "pgregory.net/rapid",
		"github.com/cockroachdb/datadriven", "go.uber.org/goleak", "github.com/rogpeppe/go-internal/...",
	}
	testers = []string{"testkit/...", "persistence/journaltest"}
)

// readLayers reads the two marked parts of docs/architecture.md.
func readLayers(t *testing.T) layers {
	t.Helper()
	text, err := os.ReadFile(architecture)
	require.NoError(t, err)
	var rules layers
	for _, span := range codeSpan.FindAllStringSubmatch(marked(t, string(text), "pure"), -1) {
		rules.pure = append(rules.pure, span[1])
	}
	require.NotEmpty(t, rules.pure)
	for _, cells := range tableRows(marked(t, string(text), "layers")) {
		require.Len(t, cells, 5, "columns: layer, packages, ours, other modules, standard library")
		rules.layers = append(rules.layers, layer{
			packages: names(cells[1]), ours: names(cells[2]), others: names(cells[3]), std: strings.TrimSpace(cells[4]),
		})
	}
	require.NotEmpty(t, rules.layers)
	return rules
}

// marked gives the text between <!-- name:start --> and <!-- name:end -->.
func marked(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "<!-- "+name+":start -->")
	require.True(t, found, "no start of %s", name)
	part, _, found := strings.Cut(rest, "<!-- "+name+":end -->")
	require.True(t, found, "no end of %s", name)
	return part
}

// tableRows gives the cells of a Markdown table without its head.
func tableRows(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) > 0 {
		rows = rows[1:]
	}
	return rows
}

// names are the code spans of a cell.
func names(cell string) []string {
	var out []string
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		out = append(out, span[1])
	}
	return out
}

// matches says whether a folder or import path is meant by a pattern: a path, or all below it with /... .
func matches(pattern, path string) bool {
	if pattern == "*" {
		return true
	}
	if prefix, tree := strings.CutSuffix(pattern, "/..."); tree {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// check says what is wrong with the imports of a file.
func (l layers) check(file source) []string {
	if !strings.Contains(file.Path, "/") {
		return nil // the root holds the tests of the repository itself
	}
	row := slices.IndexFunc(l.layers, func(r layer) bool { return anyMatches(r.packages, file.folder()) })
	if row < 0 {
		return []string{fmt.Sprintf("%s: %s is in no row of %s", file.Path, file.folder(), architecture)}
	}
	var problems []string
	for _, path := range file.Imports {
		if why := l.layers[row].refuses(l, file, path); why != "" {
			problems = append(problems, fmt.Sprintf("%s imports %s: %s", file.Path, path, why))
		}
	}
	if l.layers[row].std == "pure" && !file.test() {
		for _, line := range file.Async {
			problems = append(problems, fmt.Sprintf("%s:%d: no goroutine, select or channel in a pure package", file.Path, line))
		}
	}
	return problems
}

// refuses says why a file of this layer may not import a path; "" = it may.
func (r layer) refuses(all layers, file source, path string) string {
	for module, folders := range unmixed {
		top, _, _ := strings.Cut(file.Path, "/")
		if matches(module+"/...", path) && !slices.Contains(folders, top) {
			return "only " + strings.Join(folders, ", ") + " may"
		}
	}
	mine, ours := strings.CutPrefix(path, modulePath+"/")
	composes := slices.Contains(r.ours, "*")
	switch {
	case ours && matches("wiring/...", mine) && !composes && !slices.Contains(r.ours, "wiring"):
		return "what is composed does not know who composes it"
	case file.test():
		return "" // a test may bring together what a product file may not
	case anyMatches(testOnly, path) && !anyMatches(testers, file.folder()):
		return "only tests may"
	case ours:
		return unless(mine == file.folder() || anyMatches(r.ours, mine), "the table does not allow it")
	case !strings.Contains(strings.Split(path, "/")[0], "."):
		return unless(r.std == "all" || anyMatches(all.pure, path), "it is not in the short list of pure packages")
	}
	return unless(anyMatches(r.others, path), "the table does not allow it")
}

func unless(allowed bool, why string) string {
	if allowed {
		return ""
	}
	return why
}
