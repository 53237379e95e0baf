package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// initialMap is the address space reserved for the file. While it is larger than the file, growing needs no new mapping;
// a new mapping would wait for every reader, and every new reader for it. On Linux it costs address space only.
const initialMap = 1 << 30

func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		// A freelist on disk is rewritten by every commit (8 bytes for each free page) and has no checksum. Without it Open
		// walks all pages, 0.4 s for 1 GB.
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	}
}

// openFile opens the file and counts the boot. It leaves the journal ready for its committer.
func (j *Journal) openFile() error {
	path := j.cfg.Path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return err
		}
	}
	opts := boltOptions()
	opts.Timeout = j.cfg.LockTimeout
	opts.NoSync = j.nosync
	opts.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
		if err != nil {
			return nil, err
		}
		if err := j.inspect(f, opts); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	db, err := bbolt.Open(path, 0o600, opts)
	if errors.Is(err, berrors.ErrTimeout) {
		err = lockedError(path)
	}
	if err != nil {
		return err
	}
	j.db = db
	if err := j.startBoot(); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// inspect runs before bbolt touches the file: bbolt panics, in goroutines where nothing can catch it, on pages that are
// damaged or missing.
func (j *Journal) inspect(f *os.File, opts *bbolt.Options) error {
	if err := lock(f, j.cfg.LockTimeout); err != nil {
		if errors.Is(err, errLocked) {
			return lockedError(j.cfg.Path)
		}
		return fmt.Errorf("lock: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	j.file = info
	if math.MaxInt > math.MaxInt32 && runtime.GOOS != "windows" {
		opts.InitialMmapSize = max(initialMap, 2*int(info.Size()))
	}
	oldMeta, err := verify(f, info.Size())
	if err != nil {
		return err
	}
	if oldMeta {
		// Normal after a power cut in mid-commit; else the newest commit was lost to damage.
		j.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "journal opens at its last commit but one",
			slog.String(messages.AttrPath, j.cfg.Path), slog.String(messages.AttrReason, "one of two meta pages is damaged"))
	}
	return nil
}

// startBoot reads the header and begins a new boot: epochs of earlier ones are fenced by being smaller.
func (j *Journal) startBoot() error {
	var h header
	err := j.db.View(func(tx *bbolt.Tx) (err error) {
		h, err = j.readMeta(tx)
		return err
	})
	if err != nil {
		return err
	}
	j.counters.boot++
	if j.counters.boot > math.MaxUint32 {
		return fmt.Errorf("%w: opened %d times, epochs are used up", persistence.ErrFormat, j.counters.boot)
	}
	err = j.db.Update(func(tx *bbolt.Tx) error {
		if err := upgrade(tx, h); err != nil {
			return err
		}
		if err := j.mendIDs(tx); err != nil {
			return err
		}
		return tx.Bucket(bucketMeta).Put(keyCounters, j.counters.encode())
	})
	if err != nil {
		return commitError(err)
	}
	j.boot, j.stats = j.counters.boot, j.counters
	return nil
}

// readMeta takes over what the file says of itself.
func (j *Journal) readMeta(tx *bbolt.Tx) (header, error) {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return header{}, fmt.Errorf("%w: no bucket %q", persistence.ErrFormat, bucketMeta)
	}
	h, err := decodeHeader(meta.Get(keyHeader))
	if err != nil {
		return h, fmt.Errorf("%w: header: %w", persistence.ErrCorrupt, err)
	}
	if h.format > formatVersion || h.features != 0 {
		return h, fmt.Errorf("%w: it has format %d with features %#x, this build reads format %d without features; "+
			"use the build that wrote it, or a newer one", persistence.ErrFormat, h.format, h.features, formatVersion)
	}
	want := allBuckets
	if h.format < formatVersion {
		want = format1Buckets
	}
	for _, name := range want {
		if tx.Bucket(name) == nil {
			return h, fmt.Errorf("%w: no bucket %q", persistence.ErrFormat, name)
		}
	}
	j.incarnation = h.incarnation
	if j.counters, err = decodeCounters(meta.Get(keyCounters)); err != nil {
		return h, fmt.Errorf("%w: counters: %w", persistence.ErrCorrupt, err)
	}
	return h, nil
}

// upgrade makes a file of an older format one of this format.
func upgrade(tx *bbolt.Tx, h header) error {
	if h.format >= formatVersion {
		return nil
	}
	for _, name := range allBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	h.format = formatVersion
	return tx.Bucket(bucketMeta).Put(keyHeader, h.encode())
}

// mendIDs makes a damaged ids bucket anew: every row names its session. Rows that are damaged themselves stay unmended.
func (j *Journal) mendIDs(tx *bbolt.Tx) error {
	ids, sessions := tx.Bucket(bucketIDs), tx.Bucket(bucketSessions)
	var bad [][]byte
	for k, v := range all(ids) {
		if _, err := decodeID(k, v); err != nil {
			bad = append(bad, bytes.Clone(k))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	j.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "journal mends damaged session ids",
		slog.String(messages.AttrPath, j.cfg.Path), slog.Int(messages.AttrCount, len(bad)))
	for _, k := range bad {
		if err := ids.Delete(k); err != nil {
			return err
		}
	}
	for k, v := range all(sessions) {
		r, err := decodeRow(number(uint64Of(k)), k, v)
		if err != nil {
			continue
		}
		if id := idKey(r.key); ids.Get(id) == nil {
			if err := ids.Put(id, encodeID(id, r.number)); err != nil {
				return err
			}
		}
	}
	return nil
}

func all(b *bbolt.Bucket) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		c := b.Cursor()
		for k, v := c.First(); k != nil && yield(k, v); k, v = c.Next() {
		}
	}
}

// create makes the file so that a crash leaves either none or a whole one: bbolt's own first writes are not safe. Of two
// processes that create at once, one's file stays.
func create(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // a leftover is harmless
	if err := tmp.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(tmp.Name(), 0o600, boltOptions())
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(initialize), db.Sync(), db.Close()); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	// A link, unlike a rename, never replaces a file. Some file systems have no links.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(tmp.Name(), path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

func initialize(tx *bbolt.Tx) error {
	for _, name := range allBuckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	h := header{format: formatVersion, created: time.Now().UnixNano(), incarnation: uuid.NewString()}
	return errors.Join(meta.Put(keyHeader, h.encode()), meta.Put(keyCounters, counters{}.encode()))
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// The owner file names the process that holds the lock. It is a help for people only, the lock alone decides.

func ownerPath(path string) string { return path + ".owner" }

func writeOwner(path string) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	text := fmt.Sprintf("pid %d on %s\n", os.Getpid(), host)
	_ = os.WriteFile(ownerPath(path), []byte(text), 0o600) // best effort
}

func removeOwner(path string) { _ = os.Remove(ownerPath(path)) }

func lockedError(path string) error {
	text, err := os.ReadFile(ownerPath(path))
	if err != nil || len(text) > 512 {
		return persistence.ErrLocked
	}
	return fmt.Errorf("%w: %s", persistence.ErrLocked, strings.TrimSpace(string(text)))
}

var errLocked = errors.New("file is locked")
