package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// codesOf reads the values of the constants named Code… in a Go file.
func codesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || len(spec.Names[0].Name) < 4 || spec.Names[0].Name[:4] != "Code" {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			codes = append(codes, code)
		}
		return true
	})
	slices.Sort(codes)
	return codes
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	require.Equal(t, codesOf(t, "codes.go"), slices.Sorted(maps.Keys(statuses)))
}

// TestCodesAreThoseOfTheDomain: the two lists cannot share constants (this package imports nothing of ours), so this keeps
// them the same.
func TestCodesAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	require.Equal(t, codesOf(t, "../failure.go"), codesOf(t, "codes.go"))
}

func TestStatusesOfTheContract(t *testing.T) {
	t.Parallel()
	for status, codes := range map[int][]string{
		400: {CodeBadFrame, CodeUnknownType, CodeInvalidField, CodeInvalidSessionID, CodeInvalidQueueMode, CodeInvalidMode, CodeEmptyInput, CodeInvalidEvent, CodeUnsupportedResume},
		401: {CodeUnauthorized},
		403: {CodeForbidden, CodeForbiddenEvent},
		404: {CodeUnknownSession, CodeUnknownTurn, CodeUnknownRun},
		409: {CodeIdempotencyConflict},
		410: {CodeSessionDeleted},
		412: {CodeSequenceConflict},
		413: {CodeInputTooLarge},
		429: {CodeQueueFull, CodeRateLimited, CodeBudgetExceeded},
		500: {CodeInternal, "", "no such code"},
		503: {CodeDraining, CodeUnavailable, CodeQuarantined},
	} {
		for _, code := range codes {
			require.Equal(t, status, HTTPStatus(code), code)
		}
	}
}
