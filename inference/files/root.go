// Package files opens the files that an answer asks to send. The paths come from models and tools, so none is believed: a root
// directory confines them, whatever symbolic links and renames do meanwhile, and only regular files of a bounded size and number
// are taken. A file is opened once; what was checked is what is read.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Config says which files may be sent.
type Config struct {
	// Root is the directory that files are sent from: it and all below it is readable for whoever reads answers. No default.
	Root string
	// MaxFiles bounds the files of one answer. Default 16.
	MaxFiles int
	// MaxBytes bounds the size of each. Default 50 MiB.
	MaxBytes int64
	// Check is how long the check of one file may take, on a disk that is far away. Default 1 s.
	Check time.Duration
}

// DefaultConfig has the defaults, and no root.
func DefaultConfig() Config {
	return Config{MaxFiles: 16, MaxBytes: 50 << 20, Check: time.Second}
}

// Validate tells everything that is wrong.
func (c Config) Validate() error {
	var wrong []error
	if c.Root == "" {
		wrong = append(wrong, errors.New("files.root: is not set"))
	}
	for _, v := range []struct {
		name  string
		value int64
	}{{"files.max_files", int64(c.MaxFiles)}, {"files.max_bytes", c.MaxBytes}, {"files.check", int64(c.Check)}} {
		if v.value <= 0 {
			wrong = append(wrong, fmt.Errorf("%s: must be positive", v.name))
		}
	}
	return errors.Join(wrong...)
}

// maxChecks bounds the checks that are under way at once. One that hangs holds its place until its disk answers, so that a dead
// disk costs a few threads and not one for each file that was ever asked for.
const maxChecks = 8

// Root is the open directory that files are sent from. It may be used by many at once. A directory that is put into its place
// later is not seen: whoever can rename it must not decide what is sent.
type Root struct {
	cfg  Config
	root *os.Root
	// names are what an absolute path may begin with: the directory as it was named, and without symbolic links.
	names []string
	busy  chan struct{}
	// open is openFile; tests put slow disks here.
	open func(root *os.Root, path string, limit int64) (*File, Reason)
}

// Open opens the root directory. The error is of the file system, or tells what is wrong with the configuration.
func Open(cfg Config) (*Root, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("open the root of files: %w", err)
	}
	r := &Root{cfg: cfg, root: root, busy: make(chan struct{}, maxChecks), open: openFile}
	r.names = namesOf(cfg.Root)
	return r, nil
}

// Narrow opens a directory inside the root as a root of its own, with the same limits. Both are to be closed.
func (r *Root) Narrow(dir string) (*Root, error) {
	path, inside := r.relative(dir)
	if !inside {
		return nil, fmt.Errorf("narrow the root of files to %q: %w", dir, fs.ErrInvalid)
	}
	root, err := r.root.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("narrow the root of files: %w", err)
	}
	n := &Root{cfg: r.cfg, root: root, busy: r.busy, open: r.open}
	for _, name := range r.names {
		n.names = append(n.names, filepath.Join(name, path))
	}
	return n, nil
}

// Close closes the directory. Files that were opened before stay open.
func (r *Root) Close() error { return r.root.Close() }

// namesOf gives the absolute names of a directory. One that cannot be resolved has fewer.
func namesOf(dir string) []string {
	var names []string
	if name, err := filepath.Abs(dir); err == nil {
		names = append(names, name)
		if resolved, err := filepath.EvalSymlinks(name); err == nil && resolved != name {
			names = append(names, resolved)
		}
	}
	return names
}

// relative gives a path as seen from the root, and whether it can be inside at all. What symbolic links make of it is seen when
// it is opened.
func (r *Root) relative(path string) (string, bool) {
	if path == "" || len(path) > maxPath || strings.ContainsRune(path, 0) {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Clean(path)
		return path, filepath.IsLocal(path)
	}
	for _, name := range r.names {
		if rel, err := filepath.Rel(name, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// check opens one file within its time.
func (r *Root) check(ctx context.Context, path string) (*File, Reason) {
	rel, inside := r.relative(path)
	if !inside {
		return nil, ReasonOutside
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Check)
	defer cancel()
	select {
	case r.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ReasonLate
	}
	type opened struct {
		file   *File
		reason Reason
	}
	// Handed over or closed: nobody else knows the file.
	handed := make(chan opened)
	go func() {
		defer func() { <-r.busy }()
		file, reason := r.open(r.root, rel, r.cfg.MaxBytes)
		select {
		case handed <- opened{file, reason}:
		case <-ctx.Done():
			file.Close()
		}
	}()
	select {
	case o := <-handed:
		return o.file, o.reason
	case <-ctx.Done():
		return nil, ReasonLate
	}
}
