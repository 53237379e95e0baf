package correx_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/wiring"
)

// The documents are tested, so that they stay true: examples are the golden files, tables are made of the code, and every
// path, link, setting, code and target that a document must name is looked for.

var rewriteDocs = flag.Bool("rewrite-docs", false, "write the parts of the documents that are made of the code")

const goldenFrames = "messages/protocol/testdata"

// document is a Markdown file and its generated parts.
type document struct {
	t    *testing.T
	path string
	text string
}

func open(t *testing.T, path string) *document {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return &document{t: t, path: path, text: string(text)}
}

// part checks, or with -rewrite-docs writes, what stands behind a marker: up to the marker's end if it has one.
func (d *document) part(name, want string) {
	d.t.Helper()
	start, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	at := strings.Index(d.text, start)
	require.GreaterOrEqual(d.t, at, 0, "%s has no marker %q", d.path, strings.TrimSpace(start))
	at += len(start)
	have := ""
	if n := strings.Index(d.text[at:], end); n >= 0 {
		have = d.text[at : at+n+len(end)]
	}
	if want += end; have == want {
		return
	}
	require.True(d.t, *rewriteDocs, "%s differs from the code after %q: run make docs", d.path, strings.TrimSpace(start))
	d.text = d.text[:at] + want + d.text[at+len(have):]
}

func (d *document) save() {
	if *rewriteDocs {
		require.NoError(d.t, os.WriteFile(d.path, []byte(d.text), 0o600))
	}
}

func TestProtocolShowsEveryGoldenFrame(t *testing.T) {
	t.Parallel()
	doc := open(t, "docs/protocol.md")
	var names []string
	for _, pattern := range []string{"*.json", "http/*.json"} {
		found, err := filepath.Glob(filepath.Join(goldenFrames, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		names = append(names, found...)
	}
	require.NotEmpty(t, names)
	for _, path := range names {
		frame, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(goldenFrames, path)
		require.NoError(t, err)
		doc.part("example:"+filepath.ToSlash(name), "```json\n"+strings.TrimSpace(string(frame))+"\n```\n")
	}
	doc.save()
}

func TestProtocolListsEveryCode(t *testing.T) {
	t.Parallel()
	text := open(t, "docs/protocol.md").text
	for _, code := range constantsOf(t, "messages/failure.go", "Code") {
		require.Contains(t, text, "| `"+code+"` |")
	}
}

func TestProtocolListsEveryEvent(t *testing.T) {
	t.Parallel()
	text := open(t, "docs/protocol.md").text
	schema, err := os.ReadFile("messages/registry.go")
	require.NoError(t, err)
	names := regexp.MustCompile(`\{"([a-z_]+)", \d+, StreamEvents`).FindAllStringSubmatch(string(schema), -1)
	require.Greater(t, len(names), 9)
	for _, name := range names {
		require.Contains(t, text, "| `"+name[1]+"` |")
	}
}

// TestStatesOfTheDocumentsAreLegal reads the diagrams: phases may move as drawn, states are those of turns.
func TestStatesOfTheDocumentsAreLegal(t *testing.T) {
	t.Parallel()
	text := open(t, "docs/state-machine.md").text
	moves := regexp.MustCompile(`(?m)^ +([a-z_]+|\[\*\]) --> ([a-z_]+|\[\*\])`)
	diagram := func(heading string) [][]string {
		_, part, found := strings.Cut(text, "\n## "+heading+"\n")
		require.True(t, found, heading)
		part, _, _ = strings.Cut(part, "\n## ")
		drawn := moves.FindAllStringSubmatch(part, -1)
		require.Greater(t, len(drawn), 10, heading)
		return drawn
	}
	for _, move := range diagram("Phases of a run") {
		if move[1] != "[*]" && move[2] != "[*]" {
			require.True(t, testkit.LegalPhase(messages.Phase(move[1]), messages.Phase(move[2])), move[0])
		}
	}
	for _, move := range diagram("Turns") {
		for _, state := range move[1:] {
			require.True(t, state == "[*]" || messages.TurnState(state).Valid(), move[0])
		}
		if move[1] != "[*]" {
			require.Equal(t, move[2] == "[*]", messages.TurnState(move[1]).Ended(), move[0])
		}
	}
}

func TestReadmeListsEverySetting(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| setting | environment | default | meaning |\n|---|---|---|---|\n")
	for _, s := range wiring.Settings() {
		fallback := "`" + s.Default + "`"
		switch {
		case s.Default == "":
			fallback = ""
		case strings.Contains(s.Default, " "):
			fallback = s.Default
		}
		doc := s.Doc
		if len(s.Values) > 1 {
			doc += " (`" + strings.Join(s.Values, "`, `") + "`)"
		}
		variable := "`" + s.Env + "`"
		if s.Env == "" {
			variable = "in a file only"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", s.Key, variable, fallback, doc)
	}
	doc := open(t, "README.md")
	doc.part("settings", table.String())
	doc.save()
}

func TestDependenciesAreAllExplained(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	text := open(t, "docs/dependencies.md").text
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(line, "\t") && strings.HasPrefix(fields[1], "v") {
			require.Contains(t, text, "| `"+fields[0]+"` |")
		}
	}
}

func TestContributingListsEveryTarget(t *testing.T) {
	t.Parallel()
	text := open(t, "CONTRIBUTING.md").text
	makefile := open(t, "Makefile").text
	targets := regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(makefile, -1)
	require.Greater(t, len(targets), 15)
	for _, target := range targets {
		require.Contains(t, text, "`make "+target[1]+"`")
	}
}

func TestDecisionsHaveTheirFourParts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("docs/adr/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, path := range files {
		require.True(t, strings.HasPrefix(filepath.Base(path), fmt.Sprintf("%04d-", i+1)), "%s is out of order", path)
		text := open(t, path).text
		for _, part := range []string{"Status: ", "## Context", "## Decision", "## Consequences"} {
			require.Contains(t, text, part, path)
		}
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	repoPath     = regexp.MustCompile(`^[a-z.][A-Za-z0-9_.@-]*(/[A-Za-z0-9_.@-]+)+/?$`)
	fence        = regexp.MustCompile("(?s)```.*?```")
)

// TestDocumentsPointToWhatExists checks the links, and each code span that is a path into one of our folders.
func TestDocumentsPointToWhatExists(t *testing.T) {
	t.Parallel()
	for _, path := range documents(t) {
		text := fence.ReplaceAllString(open(t, path).text, "")
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(link[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			require.FileExists(t, filepath.Join(filepath.Dir(path), target), "link in %s", path)
		}
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(span[1], "/")
			top, _, _ := strings.Cut(name, "/")
			if repoPath.MatchString(span[1]) && !strings.Contains(name, "...") && !testName.MatchString(name) && (slices.Contains(topFolders, top) || top == ".ci") {
				_, err := os.Stat(name)
				require.NoError(t, err, "%s names %s", path, span[1])
			}
		}
	}
}

func TestDocumentsNameNoMachine(t *testing.T) {
	t.Parallel()
	private := regexp.MustCompile(`/(work|tmp|root|home)/`)
	for _, path := range documents(t) {
		require.NotRegexp(t, private, open(t, path).text, path)
	}
}

func TestDocumentsHaveNoUnfinishedMerge(t *testing.T) {
	t.Parallel()
	marker := regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>)( |$)`)
	for _, path := range documents(t) {
		require.NotRegexp(t, marker, open(t, path).text, path)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.FromSlash(pattern))
		require.NoError(t, err)
		all = append(all, found...)
	}
	require.NotEmpty(t, all)
	return all
}

// constantsOf gives the values of a file's string constants whose declared type has a name.
func constantsOf(t *testing.T, path, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if declared, ok := spec.Type.(*ast.Ident); ok && declared.Name == typeName {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				values = append(values, value)
			}
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}
