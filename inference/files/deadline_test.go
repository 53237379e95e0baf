package files

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/media"
)

// A disk that does not answer holds up nothing for longer than a check may take, and what it gives in the end is closed.
func TestChecksEndAtTheirDeadline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slow"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fast"), []byte("x"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Root = dir
		root, err := Open(cfg)
		require.NoError(t, err)
		defer root.Close()
		answers := make(chan struct{})
		var mu sync.Mutex
		var late []*File
		root.open = func(r *os.Root, path string, limit int64) (*File, Reason) {
			f, reason := openFile(r, path, limit)
			if path == "slow" {
				mu.Lock()
				late = append(late, f)
				mu.Unlock()
				<-answers
			}
			return f, reason
		}
		slow := media.Request{Path: "slow", Source: media.SourceDirective}
		began := time.Now()
		set := root.Resolve(t.Context(), []media.Request{slow, {Path: "fast"}})
		require.Equal(t, time.Second, time.Since(began))
		require.Len(t, set.Files, 1)
		require.Equal(t, []media.Request{slow}, set.Late())
		set.Close()

		// A dead disk holds as many threads as there may be checks, and no more.
		for range 20 {
			require.Len(t, root.Resolve(t.Context(), []media.Request{slow}).Late(), 1)
		}
		synctest.Wait()
		require.Len(t, late, maxChecks)
		require.Len(t, root.Resolve(t.Context(), []media.Request{{Path: "fast"}}).Late(), 1)

		close(answers)
		synctest.Wait()
		for _, f := range late {
			_, err := f.WriteTo(io.Discard)
			require.ErrorIs(t, err, os.ErrClosed)
		}
		set = root.Resolve(t.Context(), []media.Request{slow})
		require.Len(t, set.Files, 1, "it can be asked for again")
		set.Close()

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Len(t, root.Resolve(ctx, []media.Request{slow, slow}).Late(), 2)
	})
}

// Whatever a path looks like, what is looked for is inside.
func FuzzRelative(f *testing.F) {
	r := &Root{names: []string{"/srv/root", "/real/root"}}
	for _, path := range []string{"a", "../a", "/srv/root/../x", "/srv/root/a", "/real/root", "..a", "a/../../b", "\x00", "//srv/root//a"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		rel, inside := r.relative(path)
		if inside {
			require.True(t, filepath.IsLocal(rel), "%q is %q", path, rel)
			require.NotContains(t, strings.Split(rel, "/"), "..")
		}
	})
}
