package wiring_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/wiring"
)

func TestExamineJournalTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.DataDir, cfg.Provider, cfg.Log.Level = "127.0.0.1:0", filepath.Join(t.TempDir(), "data"), wiring.ProviderOffline, "error"
	state, err := cfg.ExamineJournal()
	require.NoError(t, err)
	require.False(t, state.Exists)
	require.NoDirExists(t, cfg.DataDir, "a look makes nothing")

	server, err := wiring.NewServer(cfg)
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	state, err = cfg.ExamineJournal()
	require.NoError(t, err)
	require.True(t, state.Exists)
	require.Contains(t, state.Holder, "pid ")
	require.NoError(t, server.Stop(t.Context()))

	state, err = cfg.ExamineJournal()
	require.NoError(t, err)
	require.Empty(t, state.Holder)
	require.EqualValues(t, 1, state.Boots)
	require.Positive(t, state.Size)

	require.NoError(t, os.WriteFile(state.Path, []byte("no journal"), 0o600))
	state, err = cfg.ExamineJournal()
	require.Error(t, err)
	require.True(t, state.Exists)

	cfg.Journal.Driver = wiring.DriverMemory
	state, err = cfg.ExamineJournal()
	require.NoError(t, err)
	require.Equal(t, wiring.JournalState{}, state)
}
