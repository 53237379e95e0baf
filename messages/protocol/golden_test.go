package protocol

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rewriteGolden writes what is encoded now. The diff is a change of the contract: read it.
var rewriteGolden = flag.Bool("rewrite-golden", false, "write the golden frames")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *rewriteGolden {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run: go test ./messages/protocol -rewrite-golden")
	require.Equal(t, string(want), string(got)+"\n")
}

func TestClientFramesAreGolden(t *testing.T) {
	t.Parallel()
	for _, f := range clientSamples() {
		b, err := EncodeClient(f)
		require.NoError(t, err)
		golden(t, f.FrameType(), b)
		back, refusal := Decode(b)
		require.Nil(t, refusal)
		require.Equal(t, f, back)
		require.NotEmpty(t, back.FrameID())
	}
}

func TestServerFramesAreGolden(t *testing.T) {
	t.Parallel()
	for _, f := range serverSamples() {
		b, err := Encode(f)
		require.NoError(t, err)
		golden(t, f.FrameType(), b)
		back, err := DecodeServer(b)
		require.NoError(t, err)
		require.Equal(t, f, back)
		if item, ok := f.(OutputItem); ok {
			session, seq := item.Place()
			require.Equal(t, sampleItem.SessionID, session)
			require.Equal(t, sampleItem.Seq, seq)
		}
	}
}

func TestBodiesAreGolden(t *testing.T) {
	t.Parallel()
	for name, body := range bodySamples() {
		b, err := EncodeBody(body)
		require.NoError(t, err)
		golden(t, filepath.Join("http", name), b)
		back := reflect.New(reflect.TypeOf(body).Elem()).Interface()
		require.NoError(t, json.Unmarshal(b, back))
		require.Equal(t, body, back)
	}
}

// TestEveryFrameHasASample scans the source for the marker methods, so that a new frame cannot stay without a golden file.
func TestEveryFrameHasASample(t *testing.T) {
	t.Parallel()
	sampled := make(map[string][]string)
	add := func(marker string, v any) {
		sampled[marker] = append(sampled[marker], reflect.TypeOf(v).Elem().Name())
	}
	types := make(map[string]bool)
	for _, f := range clientSamples() {
		add("isClientFrame", f)
		types[f.FrameType()] = true
	}
	for _, f := range serverSamples() {
		add("isServerFrame", f)
		types[f.FrameType()] = true
	}
	for _, b := range bodySamples() {
		add("isBody", b)
	}
	for marker, names := range implementers(t) {
		require.ElementsMatch(t, names, sampled[marker], marker)
	}
	require.Len(t, types, len(sampled["isClientFrame"])+len(sampled["isServerFrame"]), "two frames have one type")
	require.Len(t, serverFrames, len(sampled["isServerFrame"]), "DecodeServer does not know all")
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(types), "a golden file without a frame")
}

func implementers(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := make(map[string][]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "is") || len(fn.Body.List) != 0 {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				found[fn.Name.Name] = append(found[fn.Name.Name], star.X.(*ast.Ident).Name)
			}
		}
	}
	return found
}

// TestNothingCanBeNull looks at the types, not at examples: whatever a host of this package leaves unset, no null leaves.
func TestNothingCanBeNull(t *testing.T) {
	t.Parallel()
	seen := make(map[reflect.Type]bool)
	for _, f := range clientSamples() {
		requireNoNull(t, reflect.TypeOf(f), seen)
		b, err := EncodeClient(reflect.New(reflect.TypeOf(f).Elem()).Interface().(ClientFrame))
		require.NoError(t, err)
		require.NotContains(t, string(b), "null")
	}
	for _, f := range serverSamples() {
		requireNoNull(t, reflect.TypeOf(f), seen)
		b, err := Encode(reflect.New(reflect.TypeOf(f).Elem()).Interface().(ServerFrame))
		require.NoError(t, err)
		require.NotContains(t, string(b), "null")
	}
	for _, f := range bodySamples() {
		requireNoNull(t, reflect.TypeOf(f), seen)
	}
}

func requireNoNull(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeOf(sampleTime) || seen[typ] {
		return
	}
	seen[typ] = true
	for field := range typ.Fields() {
		if field.Anonymous {
			requireNoNull(t, field.Type, seen)
			continue
		}
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		where := typ.Name() + "." + field.Name
		require.Regexp(t, `^[a-z0-9]+(_[a-z0-9]+)*$`, name, where)
		optional := strings.Contains(option, "omitempty")
		isList := strings.HasPrefix(field.Type.Name(), "List[")
		switch field.Type.Kind() { //nolint:exhaustive // the others have no null
		case reflect.Pointer:
			require.True(t, optional, "%s could be null", where)
		case reflect.Slice:
			require.NotEqual(t, isList, optional, "%s: a List is never left out, any other slice may be", where)
		case reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
			require.Fail(t, "no such field", where)
		case reflect.Struct:
			if field.Type == reflect.TypeOf(sampleTime) {
				require.Contains(t, option, "omitzero", where)
			}
		}
		requireNoNull(t, field.Type, seen)
	}
}
