//go:build unix

package files

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/media"
)

// W45: between the look and the opening, exactly there, something else is put into the file's place.
func TestW45SwapBetweenLookAndOpeningIsSeen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		swap func(t *testing.T, dir, outside string)
		want Reason
	}{
		{"nothing", func(*testing.T, string, string) {}, ""},
		{"another file", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "d", "f")))
		}, ""},
		{"a link out of the root", func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d", "f")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "d", "f")))
		}, ReasonOutside},
		{"its directory a link out of the root", func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "d")))
		}, ReasonOutside},
		{"the root a link", func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.MkdirAll(filepath.Join(outside, "d"), 0o700))
			require.NoError(t, os.Rename(filepath.Join(outside, "f"), filepath.Join(outside, "d", "f")))
			require.NoError(t, os.Symlink(outside, dir))
		}, ""},
		{"a second name of a file outside", func(t *testing.T, dir, outside string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d", "f")))
			require.NoError(t, os.Link(filepath.Join(outside, "f"), filepath.Join(dir, "d", "f")))
		}, ReasonHardLink},
		{"a pipe without a writer", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d", "f")))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "d", "f"), 0o600))
		}, ReasonNotRegular},
		{"a directory", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d", "f")))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "d", "f"), 0o700))
		}, ReasonNotRegular},
		{"a file that is too large", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "d", "f"), 51<<20))
		}, ReasonTooLarge},
		{"nothing any more", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "d", "f")))
		}, ReasonMissing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			cfg, outside := DefaultConfig(), filepath.Join(top, "outside")
			cfg.Root = filepath.Join(top, "root")
			for path, content := range map[string]string{"root/d/f": "public", "root/other": "public", "outside/f": "secret"} {
				path = filepath.Join(top, filepath.FromSlash(path))
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			}
			root, err := Open(cfg)
			require.NoError(t, err)
			defer root.Close()
			root.open = func(r *os.Root, path string, limit int64) (*File, Reason) {
				if reason := look(r, path); reason != "" {
					return nil, reason
				}
				tt.swap(t, cfg.Root, outside)
				return take(r, path, limit)
			}
			set := root.Resolve(t.Context(), []media.Request{{Path: "d/f"}})
			defer set.Close()
			if tt.want != "" {
				require.Len(t, set.Dropped, 1)
				require.Equal(t, tt.want, set.Dropped[0].Reason)
				return
			}
			require.Len(t, set.Files, 1)
			var content bytes.Buffer
			_, err = set.Files[0].WriteTo(&content)
			require.NoError(t, err)
			require.Equal(t, "public", content.String())
		})
	}
}
