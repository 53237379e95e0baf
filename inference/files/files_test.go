package files_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/media"
	"github.com/correx/correx-actors/inference/files"
)

const png = "\x89PNG\r\n\x1a\nrest"

// open makes a root with the files of tree (slash-separated names and their contents) beside a file that must not get out.
func open(t *testing.T, tree map[string]string, change func(*files.Config)) (root *files.Root, dir, outside string) {
	t.Helper()
	top := t.TempDir()
	dir, outside = filepath.Join(top, "root"), filepath.Join(top, "secret.txt")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, content := range tree {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	cfg := files.DefaultConfig()
	cfg.Root = dir
	if change != nil {
		change(&cfg)
	}
	root, err := files.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root, dir, outside
}

func ask(paths ...string) []media.Request {
	var requests []media.Request
	for _, path := range paths {
		requests = append(requests, media.Request{Path: path, Source: media.SourceDirective})
	}
	return requests
}

// resolved gives what became of requests: name, type and content of a file, or why it is not sent.
func resolved(t *testing.T, root *files.Root, requests []media.Request) []string {
	t.Helper()
	set := root.Resolve(t.Context(), requests)
	defer set.Close()
	require.Len(t, requests, len(set.Files)+len(set.Dropped))
	var out []string
	for _, f := range set.Files {
		var content bytes.Buffer
		n, err := f.WriteTo(&content)
		require.NoError(t, err)
		require.Equal(t, f.Size, n)
		require.NotContains(t, content.String(), "secret")
		out = append(out, fmt.Sprintf("%s %s %q", f.Name, f.MediaType, content.String()))
	}
	for _, d := range set.Dropped {
		require.True(t, d.Reason.Valid())
		out = append(out, string(d.Reason))
	}
	return out
}

func TestFilesAreOpenedWithTheirNamesAndTypes(t *testing.T) {
	t.Parallel()
	root, _, _ := open(t, map[string]string{
		"out/plot.png": png, "a b.txt": "hi", "Überblick 図.svg": "<svg/>", "empty": "", "..data": "dots", "t.csv": "a,b", "x/y/z.JSON": "{}",
	}, nil)
	require.Equal(t, []string{
		`plot.png image/png "\x89PNG\r\n\x1a\nrest"`, `a b.txt text/plain; charset=utf-8 "hi"`, `Überblick 図.svg image/svg+xml "<svg/>"`,
		`empty text/plain; charset=utf-8 ""`, `..data text/plain; charset=utf-8 "dots"`, `t.csv text/csv; charset=utf-8 "a,b"`,
		`z.JSON application/json "{}"`,
	}, resolved(t, root, ask("out/plot.png", "./a b.txt", "Überblick 図.svg", "empty", "..data", "out/../t.csv", "x//y/z.JSON")))
}

func TestW45PathsThatLeaveTheRootAreDropped(t *testing.T) {
	t.Parallel()
	root, dir, outside := open(t, map[string]string{"in/a.txt": "a"}, nil)
	for name, target := range map[string]string{
		"link": outside, "up": "../secret.txt", "in/dir": "../..", "loop": "loop", "abs": filepath.Join(dir, "in", "a.txt"),
		"good": "in/a.txt", "gone": "nowhere", "zero": "/dev/zero", "in/back": "../in/a.txt",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))))
	}
	for path, want := range map[string]string{
		outside: "outside", "../secret.txt": "outside", "in/../../secret.txt": "outside", "link": "outside", "up": "outside",
		"in/dir/secret.txt": "outside", "zero": "outside", "abs": "outside", dir + "x/a": "outside", "/": "outside", "": "outside", "a\x00b": "outside",
		"in/../../" + filepath.Base(dir) + "/in/a.txt": "outside", strings.Repeat("x/", 3000): "outside",
		"loop": "unreadable", "gone": "missing", "nothing": "missing", "in/a.txt/b": "missing", strings.Repeat("x", 300): "missing",
		"in": "not_regular", ".": "not_regular", dir: "not_regular",
		"good": `good text/plain; charset=utf-8 "a"`, "in/back": `back text/plain; charset=utf-8 "a"`,
	} {
		require.Equal(t, []string{want}, resolved(t, root, ask(path)), "%q", path)
	}
}

func TestAbsolutePathsInsideTheRootAreAllowed(t *testing.T) {
	t.Parallel()
	_, dir, _ := open(t, map[string]string{"in/a.txt": "a", "b.txt": "b"}, nil)
	named := filepath.Join(filepath.Dir(dir), "named")
	require.NoError(t, os.Symlink(dir, named))
	cfg := files.DefaultConfig()
	cfg.Root = named
	root, err := files.Open(cfg)
	require.NoError(t, err)
	defer root.Close()
	require.Equal(t, []string{`a.txt text/plain; charset=utf-8 "a"`, `b.txt text/plain; charset=utf-8 "b"`},
		resolved(t, root, ask(filepath.Join(dir, "in", "a.txt"), filepath.Join(named, "b.txt"))), "as it was named, and as it really is")

	narrow, err := root.Narrow(filepath.Join(named, "in"))
	require.NoError(t, err)
	defer narrow.Close()
	require.Equal(t, []string{`a.txt text/plain; charset=utf-8 "a"`, "outside", "outside", "repeated"},
		resolved(t, narrow, ask("a.txt", "../b.txt", filepath.Join(dir, "b.txt"), filepath.Join(dir, "in", "a.txt"))))
	_, err = root.Narrow("..")
	require.Error(t, err)
}

func TestW45FilesAreBoundedInSizeAndNumber(t *testing.T) {
	t.Parallel()
	tree := make(map[string]string)
	var paths []string
	for i := range 20 {
		name := fmt.Sprintf("%02d", i)
		tree[name], paths = name, append(paths, name)
	}
	root, dir, _ := open(t, tree, nil)
	set := root.Resolve(t.Context(), ask(append([]string{"nothing", "/etc"}, paths...)...))
	defer set.Close()
	require.Len(t, set.Files, 16, "what is not sent is not counted")
	require.Len(t, set.Dropped, 6)
	require.Equal(t, files.ReasonTooMany, set.Dropped[2].Reason)

	// Files with nothing in them: they cost no disk.
	for name, size := range map[string]int64{"most": 50 << 20, "more": 50<<20 + 1, "huge": 1 << 40} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		require.NoError(t, os.Truncate(filepath.Join(dir, name), size))
	}
	large := root.Resolve(t.Context(), ask("most", "more", "huge"))
	defer large.Close()
	require.Len(t, large.Files, 1)
	require.Equal(t, int64(50<<20), large.Files[0].Size)
	for _, d := range large.Dropped {
		require.Equal(t, files.ReasonTooLarge, d.Reason)
	}
}

// Scenarios 102 and 103: the same file is sent once, or once for each name and caption that it is to be shown with.
func TestTheSameFileIsSentOnce(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t, map[string]string{"d/a.png": png}, nil)
	require.NoError(t, os.Symlink("d/a.png", filepath.Join(dir, "a.png")))
	set := root.Resolve(t.Context(), []media.Request{
		{Path: "d/a.png", Name: "first.png", Source: media.SourceTool, MediaType: "image/x-own; q=1"},
		{Path: "d/a.png", Source: media.SourceDirective},
		{Path: filepath.Join(dir, "d", "a.png"), Source: media.SourceDirective},
		{Path: "a.png", Source: media.SourceDirective},
		{Path: "d/a.png", Caption: "look", Source: media.SourceTool},
		{Path: "d/a.png", Source: media.SourceGenerated},
		{Path: "d/a.png", Name: "made.png", Source: media.SourceGenerated},
	})
	defer set.Close()
	require.Len(t, set.Files, 3)
	require.Equal(t, "first.png", set.Files[0].Name)
	require.Equal(t, "image/x-own", set.Files[0].MediaType)
	require.Equal(t, "a.png", set.Files[1].Name)
	require.Equal(t, "image/png", set.Files[1].MediaType)
	require.Equal(t, "look", set.Files[2].Request.Caption)
	require.Len(t, set.Dropped, 4, "a tool that made what is sent anyway adds nothing")
	for _, d := range set.Dropped {
		require.Equal(t, files.ReasonRepeated, d.Reason)
	}
}

// A file system may know no difference between cases, or between two ways to write a letter; what it opens is what counts.
func TestSpellingsAreThoseOfTheFileSystem(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t, map[string]string{"a.txt": "a", "e\u0301.txt": "e"}, nil)
	for _, pair := range [][2]string{{"a.txt", "A.TXT"}, {"e\u0301.txt", "\u00e9.txt"}} {
		set := root.Resolve(t.Context(), []media.Request{
			{Path: pair[0], Name: "n", Source: media.SourceTool}, {Path: pair[1], Name: "n", Source: media.SourceTool},
		})
		want := files.ReasonMissing
		if _, err := os.Stat(filepath.Join(dir, pair[1])); err == nil {
			want = files.ReasonRepeated
		}
		require.Len(t, set.Files, 1)
		require.Equal(t, want, set.Dropped[0].Reason)
		set.Close()
	}
}

func TestNamesAreFitToBeShown(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t, map[string]string{"f": "x"}, nil)
	for name, want := range map[string]string{
		"": "f", "../../etc/passwd": "passwd", `C:\a\b.txt`: "b.txt", "a\nb\x1b[2J.txt": "ab[2J.txt", "..": "file", "x/": "file",
		"\u202Egnp.exe": "gnp.exe", "\xff.txt": "\uFFFD.txt", strings.Repeat("é", 200) + ".png": strings.Repeat("é", 125) + ".png",
	} {
		set := root.Resolve(t.Context(), []media.Request{{Path: "f", Name: name, Source: media.SourceTool, MediaType: "no type"}})
		require.Len(t, set.Files, 1)
		require.Equal(t, want, set.Files[0].Name, "%q", name)
		require.Equal(t, "text/plain; charset=utf-8", set.Files[0].MediaType)
		set.Close()
	}
	require.NoError(t, os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "\xff\xfe")))
	require.Equal(t, []string{"\uFFFD text/plain; charset=utf-8 \"x\""}, resolved(t, root, ask("\xff\xfe")))
}

func TestRootThatCannotBeOpenedIsAnError(t *testing.T) {
	t.Parallel()
	_, err := files.Open(files.DefaultConfig())
	require.ErrorContains(t, err, "files.root: is not set")
	_, err = files.Open(files.Config{Root: "x", MaxFiles: -1})
	require.ErrorContains(t, err, "files.max_files")
	cfg := files.DefaultConfig()
	cfg.Root = filepath.Join(t.TempDir(), "nothing")
	_, err = files.Open(cfg)
	require.ErrorIs(t, err, os.ErrNotExist)

	// W45: a loop of links ends.
	cfg.Root = filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.Symlink(cfg.Root, cfg.Root))
	_, err = files.Open(cfg)
	require.Error(t, err)
}
