package messages

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// addGolden writes the records of types that have none yet. It never writes over one: what a release has stored must
// decode for ever, so these files are only added.
var addGolden = flag.Bool("add-golden", false, "write golden records that are missing")

var goldenKey = NewKey("golden")

// goldenRecord is a record as a journal holds it, with every field of its payload set.
func goldenRecord(t *testing.T, reg registration) Record {
	t.Helper()
	m := reg.make()
	wholeFill().message(m.ProtoReflect())
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	require.NoError(t, err)
	return Record{
		ID:     RecordID{0x01, 0x98, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1},
		Stream: reg.stream, Seq: 3, Epoch: 5, Type: reg.name, Version: reg.version,
		Time: time.Unix(1_800_000_000, 123_456_789).UTC(), Payload: payload,
	}
}

// TestGoldenRecordsCoverEveryField: every type has a record, and a field that was added later is in a second one of it
// (type@1.2.bin), else nothing would notice if its number changed.
func TestGoldenRecordsCoverEveryField(t *testing.T) {
	t.Parallel()
	for _, reg := range registrations {
		m := reg.make()
		wholeFill().message(m.ProtoReflect())
		want := protojson.Format(m)
		files, err := filepath.Glob(fmt.Sprintf("testdata/%s@*.json", reg.name))
		require.NoError(t, err)
		seen := make(map[string]bool)
		for _, path := range files {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			fieldPaths(t, b, seen)
		}
		missing := fieldPaths(t, []byte(want), make(map[string]bool))
		maps.DeleteFunc(missing, func(path string, _ bool) bool { return seen[path] })
		if *addGolden && len(missing) > 0 {
			addGoldenRecord(t, reg, len(files), want)
			continue
		}
		require.Empty(t, missing, "%s; run: go test ./messages -add-golden", reg.name)
	}
}

// fieldPaths adds the paths of all values in a JSON text to paths.
func fieldPaths(t *testing.T, b []byte, paths map[string]bool) map[string]bool {
	t.Helper()
	var root any
	require.NoError(t, json.Unmarshal(b, &root))
	var walk func(path string, v any)
	walk = func(path string, v any) {
		paths[path] = true
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(path+"."+name, value)
			}
		case []any:
			for _, value := range v {
				walk(path+"[]", value)
			}
		}
	}
	walk("", root)
	return paths
}

func addGoldenRecord(t *testing.T, reg registration, existing int, content string) {
	t.Helper()
	base := fmt.Sprintf("testdata/%s@%d", reg.name, reg.version)
	if existing > 0 {
		base = fmt.Sprintf("%s.%d", base, existing+1)
	}
	r := goldenRecord(t, reg)
	stored, err := AppendRecord(nil, goldenKey, &r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(base+".bin", stored, 0o600))
	require.NoError(t, os.WriteFile(base+".json", []byte(content+"\n"), 0o600))
}

// TestGoldenRecordsDecodeForEver reads every record that any release has written, those of old versions too.
func TestGoldenRecordsDecodeForEver(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*@*.bin")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(filepath.Base(path), "@")
			stored, err := os.ReadFile(path)
			require.NoError(t, err)
			r, err := ParseRecord(goldenKey, byName[name].stream, 3, stored)
			require.NoError(t, err)
			require.Equal(t, name, r.Type)
			require.Equal(t, uint64(5), r.Epoch)
			require.Equal(t, int64(1_800_000_000_123_456_789), r.Time.UnixNano())
			require.Equal(t, "01980000-0000-7000-8000-000000000001", r.ID.String())

			m := decodeRecord(t, r)
			require.Empty(t, m.ProtoReflect().GetUnknown(), "a field went away")
			want, err := os.ReadFile(strings.TrimSuffix(path, ".bin") + ".json")
			require.NoError(t, err)
			require.JSONEq(t, string(want), protojson.Format(m))

			again, err := AppendRecord(nil, goldenKey, &r)
			require.NoError(t, err)
			require.Equal(t, stored, again)
		})
	}
}

func decodeRecord(t *testing.T, r Record) proto.Message {
	t.Helper()
	if r.Stream == StreamLedger {
		l, err := DecodeLedger(r.Type, r.Version, r.Payload)
		require.NoError(t, err)
		return l
	}
	e, err := DecodeEvent(r.Type, r.Version, r.Payload)
	require.NoError(t, err)
	m, ok := e.(proto.Message)
	require.True(t, ok, "%s is not known any more", r.Type)
	return m
}
