package correx_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A criterion that no test names is a wish: docs/seeds.md maps each to its tests, and these look whether they are there.

// notYet begins the row of a fault that cannot happen because what it is a fault of does not exist, and says so plainly.
const notYet = "not yet"

var (
	testName = regexp.MustCompile(`^([a-z/-]*)\.(Test\w+)$`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

func TestEveryCriterionIsNamedByATest(t *testing.T) {
	t.Parallel()
	known := make(map[string]map[string]bool)
	rows := tableRowsOf(open(t, "docs/seeds.md").text)
	require.Greater(t, len(rows), 40)
	for _, cells := range rows {
		require.Len(t, cells, 2)
		named := 0
		for _, span := range names(cells[1]) {
			found := testName.FindStringSubmatch(span)
			if found == nil {
				_, err := os.Stat(span)
				require.NoError(t, err, "%q names %s", cells[0], span)
				continue
			}
			folder := filepath.FromSlash(found[1])
			if folder == "" {
				folder = "."
			}
			if known[folder] == nil {
				known[folder] = testsOf(t, folder)
			}
			require.True(t, known[folder][found[2]], "%q names %s, which does not exist", cells[0], span)
			named++
		}
		if !strings.HasPrefix(cells[1], notYet) {
			require.Positive(t, named, "%q is named by no test", cells[0])
		}
	}
}

// The epic asks for a least number of deterministic tests; each scenario file is one.
func TestScenariosAreAsManyAsAskedFor(t *testing.T) {
	t.Parallel()
	for folder, least := range map[string]int{
		"core/router/testdata/reducer": 8, "core/router/testdata/projection": 4, "core/contextpack/testdata": 6,
	} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.txt"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(files), least, folder)
	}
}

// tableRowsOf gives the rows of all tables of a document.
func tableRowsOf(text string) [][]string {
	var rows [][]string
	for part := range strings.SplitSeq(text, "\n## ") {
		rows = append(rows, tableRows(part)...)
	}
	return rows
}

func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range testFunc.FindAllStringSubmatch(string(text), -1) {
			found[name[1]] = true
		}
	}
	return found
}
