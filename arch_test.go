package correx_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The structure of the repository is what docs/architecture.md says: these tests read its tables, so neither can drift.

const (
	modulePath   = "github.com/correx/correx-actors"
	architecture = "docs/architecture.md"
	// A longer file holds two things.
	maxProductLines = 400
	maxTestLines    = 500
)

// topFolders is fixed: a new one changes the architecture, not only the tree.
var topFolders = []string{
	"actors", "cmd", "core", "docs", "examples", "inference", "messages", "persistence", "testkit", "wiring",
}

// bannedFolders are names that say nothing about what is inside.
var bannedFolders = []string{"common", "helper", "helpers", "internal", "misc", "pkg", "util", "utils"}

// skippedFolders hold no source of ours.
var skippedFolders = []string{".git", "bin", "dist", "data", "node_modules", "testdata"}

// unmixed modules belong to the named folders alone, in tests too. Elsewhere a test may import what it likes.
var unmixed = map[string][]string{
	"go.uber.org/fx": {"wiring", "cmd", "examples"},
}

// source is what the rules need to know of a Go file.
type source struct {
	Path      string // slash-separated, from the root
	Lines     int
	Generated bool
	Imports   []string
	// Async are the lines with a go statement, a select or a channel type.
	Async []int
}

func (s source) folder() string { return filepath.ToSlash(filepath.Dir(s.Path)) }

func (s source) test() bool { return strings.HasSuffix(s.Path, "_test.go") }

func TestImportsAreThoseOfTheArchitecture(t *testing.T) {
	t.Parallel()
	rules := readLayers(t)
	for _, file := range readSources(t) {
		for _, problem := range rules.check(file) {
			t.Error(problem)
		}
	}
}

func TestEveryLayerOfTheArchitectureExists(t *testing.T) {
	t.Parallel()
	files := readSources(t)
	for _, l := range readLayers(t).layers {
		for _, pattern := range l.packages {
			found := slices.ContainsFunc(files, func(f source) bool { return matches(pattern, f.folder()) })
			require.True(t, found, "%s names %s, which does not exist", architecture, pattern)
		}
	}
}

func TestTopFoldersAreFixed(t *testing.T) {
	t.Parallel()
	for _, file := range readSources(t) {
		top, _, nested := strings.Cut(file.Path, "/")
		if nested {
			require.Contains(t, topFolders, top, file.Path)
		}
	}
}

func TestFoldersSayWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, file := range readSources(t) {
		for part := range strings.SplitSeq(file.folder(), "/") {
			require.NotContains(t, bannedFolders, part, file.Path)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range readSources(t) {
		if problem := tooLong(file); problem != "" {
			t.Error(problem)
		}
	}
}

// A duration logged as it is becomes a number of nanoseconds in JSON, under a key that promises milliseconds.
func TestDurationsAreLoggedInMilliseconds(t *testing.T) {
	t.Parallel()
	for _, file := range readSources(t) {
		if file.test() {
			continue
		}
		content, err := os.ReadFile(file.Path)
		require.NoError(t, err)
		require.NotContains(t, string(content), "slog.Duration(", "%s: want slog.Int64 of its Milliseconds", file.Path)
	}
}

func tooLong(s source) string {
	limit := maxProductLines
	if s.test() {
		limit = maxTestLines
	}
	if s.Generated || s.Lines <= limit {
		return ""
	}
	return fmt.Sprintf("%s has %d lines, at most %d", s.Path, s.Lines, limit)
}

// The rules must be able to fail: each of these is a file that breaks one of them.
func TestCheckerFindsViolations(t *testing.T) {
	t.Parallel()
	rules := readLayers(t)
	ours := func(p string) string { return modulePath + "/" + p }
	violations := map[string]source{
		"bbolt in an actor":           {Path: "actors/session/x.go", Imports: []string{"go.etcd.io/bbolt"}},
		"a driver in an actor":        {Path: "actors/session/x.go", Imports: []string{ours("persistence/bolt")}},
		"actor library in core":       {Path: "core/session/x.go", Imports: []string{"github.com/asynkron/protoactor-go/actor"}},
		"inference in core":           {Path: "core/session/x.go", Imports: []string{ours("inference")}},
		"log in core":                 {Path: "core/router/x.go", Imports: []string{"log/slog"}},
		"context in core":             {Path: "core/contextpack/x.go", Imports: []string{"context"}},
		"goroutine in core":           {Path: "core/router/x.go", Async: []int{7}},
		"a rule that looks up":        {Path: "core/router/x.go", Imports: []string{ours("core/session")}},
		"http in messages/protocol":   {Path: "messages/protocol/x.go", Imports: []string{"github.com/coder/websocket"}},
		"domain types in frames":      {Path: "messages/protocol/x.go", Imports: []string{ours("messages")}},
		"an actor in a port":          {Path: "persistence/x.go", Imports: []string{ours("actors/kernel")}},
		"one driver in another":       {Path: "inference/openai/x.go", Imports: []string{ours("inference/offline")}},
		"fx in an actor":              {Path: "actors/gateway/x.go", Imports: []string{"go.uber.org/fx"}},
		"fx in a test of an actor":    {Path: "actors/gateway/x_test.go", Imports: []string{"go.uber.org/fx/fxtest"}},
		"wiring in the testkit":       {Path: "testkit/x.go", Imports: []string{ours("wiring")}},
		"wiring in a test of core":    {Path: "core/session/x_test.go", Imports: []string{ours("wiring")}},
		"a package that no row names": {Path: "actors/unheard/x.go", Imports: []string{"fmt"}},
		"testing in a product file":   {Path: "messages/x.go", Imports: []string{"testing"}},
	}
	for name, file := range violations {
		require.Len(t, rules.check(file), 1, name)
	}
	require.NotEmpty(t, tooLong(source{Path: "actors/session/x.go", Lines: maxProductLines + 1}))
	require.NotEmpty(t, tooLong(source{Path: "actors/session/x_test.go", Lines: maxTestLines + 1}))
	require.Empty(t, tooLong(source{Path: "messages/x.pb.go", Lines: 9000, Generated: true}))
	require.Empty(t, rules.check(source{Path: "core/router/x.go", Imports: []string{"slices", ours("messages")}}))
}

// readSources gives every Go file of the repository.
func readSources(t *testing.T) []source {
	t.Helper()
	files, err := allSources()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// allSources reads them once for all tests.
var allSources = sync.OnceValues(func() ([]source, error) {
	var files []source
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedFolders, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file, err := readSource(path)
		files = append(files, file)
		return err
	})
	return files, err
})

func readSource(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{
		Path:      filepath.ToSlash(path),
		Lines:     strings.Count(string(text), "\n"),
		Generated: ast.IsGenerated(parsed),
	}
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.Imports = append(s.Imports, name)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
			s.Async = append(s.Async, set.Position(n.Pos()).Line)
		}
		return true
	})
	return s, nil
}
