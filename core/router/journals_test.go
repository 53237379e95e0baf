package router

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
)

// Logs of each release fold to the same state for ever (I1, I14). Files in testdata/journals are never edited and never
// removed, only added: NAME.jsonl has stored events as that release exports them (those of v0.1.0 were written by hand), NAME.state.txt
// the state that they led to.
func TestJournalsOfAllReleasesReplayForEver(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/journals/*.jsonl")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 4, "a journal was removed")
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			key, log := readJournal(t, path)
			golden, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".state.txt")
			require.NoError(t, err)

			whole := foldRecords(t, key, State{}, log)
			require.Equal(t, string(golden), printState(whole))
			for i := range log {
				resumed := foldRecords(t, key, foldRecords(t, key, State{}, log[:i]), log[i:])
				require.True(t, whole.Equal(resumed), "resumed after %d", i)
			}
		})
	}
}

func readJournal(t *testing.T, path string) (messages.Key, []messages.Record) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var key messages.Key
	var log []messages.Record
	for line := range bytes.Lines(content) {
		stored, err := messages.StoredEventFromJSON(line)
		require.NoError(t, err)
		key = messages.NewKey(messages.SessionID(stored.GetSessionId()))
		require.Equal(t, uint64(len(log)+1), stored.GetSequence(), "a hole in %s", path)
		log = append(log, messages.Record{
			Stream: messages.StreamEvents, Seq: stored.GetSequence(), Time: stored.GetRecordedAt().AsTime(),
			Type: stored.GetEvent().GetType(), Version: stored.GetEvent().GetVersion(), Payload: stored.GetEvent().GetPayload(),
		})
	}
	return key, log
}
