package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"

	"github.com/correx/correx-actors/persistence"
)

// bbolt's page format, in the machine's byte order.
const (
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	pageHeader   = 16 // id(8) flags(2) count(2) overflow(4)
	elementLen   = 16 // branch: pos(4) ksize(4) pgid(8); leaf: flags(4) pos(4) ksize(4) vsize(4)
	bucketHeader = 16 // root pgid(8) sequence(8)
	metaLen      = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	leafBucket   = 0x01

	noFreelist = math.MaxUint64
	maxDepth   = 64
)

var order = binary.NativeEndian

type boltMeta struct {
	pageSize int
	root     uint64
	freelist uint64
	end      uint64 // high-water mark: no page from here on is used
	txid     uint64
}

// walker checks the tree of pages by plain reads: every page is what it says, lies inside the file, is used once, and its
// keys rise between those of its parent. It tells of damage where bbolt would panic.
type walker struct {
	f    io.ReaderAt
	meta boltMeta
	seen []uint64 // bitmap of pages
}

// verify checks the structure of a bbolt file of size bytes. oldMeta: of the two meta pages one is damaged, so the last commit
// may be missing. Errors: ErrFormat if it is no bbolt file, ErrCorrupt.
func verify(f io.ReaderAt, size int64) (oldMeta bool, err error) {
	meta, oldMeta, err := newestMeta(f, size)
	if err != nil {
		return false, err
	}
	if meta.end > uint64(size)/uint64(meta.pageSize) { //nolint:gosec // sizes are not negative
		return false, fmt.Errorf("%w: file has %d bytes, its pages need %d",
			persistence.ErrCorrupt, size, meta.end*uint64(meta.pageSize)) //nolint:gosec // sizes are not negative
	}
	w := &walker{f: f, meta: meta, seen: make([]uint64, meta.end/64+1)}
	if err := w.freelist(); err != nil {
		return false, fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
	}
	if err := w.page(meta.root, nil, nil, 0); err != nil {
		return false, fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
	}
	return oldMeta, nil
}

func newestMeta(f io.ReaderAt, size int64) (newest boltMeta, oldMeta bool, err error) {
	first, firstErr := readMeta(f, 0)
	if firstErr == nil {
		second, secondErr := readMeta(f, int64(first.pageSize))
		if secondErr == nil && second.txid > first.txid {
			return second, false, nil
		}
		return first, secondErr != nil, nil
	}
	for pageSize := int64(1 << 10); pageSize <= 1<<16; pageSize <<= 1 {
		if second, err := readMeta(f, pageSize); err == nil && int64(second.pageSize) == pageSize {
			return second, true, nil
		}
	}
	if size == 0 {
		return newest, false, fmt.Errorf("%w: the file is empty", persistence.ErrFormat)
	}
	var magic [pageHeader + 4]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil || order.Uint32(magic[pageHeader:]) != boltMagic {
		return newest, false, fmt.Errorf("%w: it is no bbolt file", persistence.ErrFormat)
	}
	return newest, false, fmt.Errorf("%w: both meta pages are damaged: %w", persistence.ErrCorrupt, firstErr)
}

func readMeta(f io.ReaderAt, offset int64) (boltMeta, error) {
	var page [pageHeader + metaLen]byte
	if _, err := f.ReadAt(page[:], offset); err != nil {
		return boltMeta{}, fmt.Errorf("meta page: %w", err)
	}
	b := page[pageHeader:]
	sum := fnv.New64a()
	sum.Write(b[:metaLen-8])
	if order.Uint32(b) != boltMagic || order.Uint32(b[4:]) != boltVersion || order.Uint64(b[56:]) != sum.Sum64() {
		return boltMeta{}, fmt.Errorf("meta page at %d is damaged", offset)
	}
	return boltMeta{
		pageSize: int(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		end:      order.Uint64(b[40:]),
		txid:     order.Uint64(b[48:]),
	}, nil
}

// freelist checks the page that other tools (a compaction) may have left.
func (w *walker) freelist() error {
	if w.meta.freelist == noFreelist {
		return nil
	}
	b, err := w.read(w.meta.freelist)
	if err != nil {
		return err
	}
	count := uint64(order.Uint16(b[10:]))
	ids := b[pageHeader:]
	if count == math.MaxUint16 && len(ids) >= 8 {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if order.Uint16(b[8:]) != flagFreelist || count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d: damaged freelist", w.meta.freelist)
	}
	for i := range count {
		if id := order.Uint64(ids[i*8:]); id < 2 || id >= w.meta.end {
			return fmt.Errorf("page %d: free page %d does not exist", w.meta.freelist, id)
		}
	}
	return nil
}

// read gives a page with its overflow, after marking all of it as used.
func (w *walker) read(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.end {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	size := w.meta.pageSize
	b := make([]byte, size)
	if _, err := w.f.ReadAt(b, int64(id)*int64(size)); err != nil { //nolint:gosec // below the file's size
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(order.Uint32(b[12:]))
	if order.Uint64(b) != id || overflow >= w.meta.end-id {
		return nil, fmt.Errorf("page %d: damaged header", id)
	}
	for p := id; p <= id+overflow; p++ {
		if w.seen[p/64]&(1<<(p%64)) != 0 {
			return nil, fmt.Errorf("page %d is used twice", p)
		}
		w.seen[p/64] |= 1 << (p % 64)
	}
	if overflow == 0 {
		return b, nil
	}
	b = make([]byte, size*int(overflow+1))                          //nolint:gosec // below the file's size
	if _, err := w.f.ReadAt(b, int64(id)*int64(size)); err != nil { //nolint:gosec // below the file's size
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return b, nil
}

// page checks the tree below a page; its keys are >= low and < high, where nil is no bound.
func (w *walker) page(id uint64, low, high []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d: tree is deeper than %d", id, maxDepth)
	}
	b, err := w.read(id)
	if err != nil {
		return err
	}
	switch order.Uint16(b[8:]) {
	case flagLeaf:
		err = w.leaf(b, low, high, depth)
	case flagBranch:
		err = w.branch(b, low, high, depth)
	default:
		err = fmt.Errorf("unexpected flags %#x", order.Uint16(b[8:]))
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (w *walker) branch(b, low, high []byte, depth int) error {
	count := int(order.Uint16(b[10:]))
	if count == 0 {
		return fmt.Errorf("branch without children")
	}
	keys := make([][]byte, count+1)
	keys[count] = high
	for i := range count {
		e, err := element(b, i, count)
		if err != nil {
			return err
		}
		at, ksize := pageHeader+i*elementLen+int(order.Uint32(e)), int(order.Uint32(e[4:]))
		if keys[i], err = slice(b, at, ksize, count); err != nil {
			return err
		}
		if err := between(keys[i], low, high, i > 0); err != nil {
			return err
		}
		low = keys[i]
	}
	for i := range count {
		e, err := element(b, i, count)
		if err != nil {
			return err
		}
		if err := w.page(order.Uint64(e[8:]), keys[i], keys[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaf(b, low, high []byte, depth int) error {
	count := int(order.Uint16(b[10:]))
	for i := range count {
		e, err := element(b, i, count)
		if err != nil {
			return err
		}
		at := pageHeader + i*elementLen + int(order.Uint32(e[4:]))
		ksize, vsize := int(order.Uint32(e[8:])), int(order.Uint32(e[12:]))
		key, err := slice(b, at, ksize, count)
		if err != nil {
			return err
		}
		value, err := slice(b, at+ksize, vsize, count)
		if err != nil {
			return err
		}
		if err := between(key, low, high, i > 0); err != nil {
			return err
		}
		low = key
		switch order.Uint32(e) {
		case 0:
		case leafBucket:
			if err := w.bucket(value, depth); err != nil {
				return fmt.Errorf("bucket %q: %w", key, err)
			}
		default:
			return fmt.Errorf("unexpected element flags %#x", order.Uint32(e))
		}
	}
	return nil
}

// bucket checks a bucket's tree, or the leaf that lies inline behind its header.
func (w *walker) bucket(value []byte, depth int) error {
	if len(value) < bucketHeader {
		return fmt.Errorf("header of %d bytes", len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return w.page(root, nil, nil, depth+1)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader || order.Uint16(inline[8:]) != flagLeaf || depth > maxDepth {
		return fmt.Errorf("damaged inline page")
	}
	return w.leaf(inline, nil, nil, depth+1)
}

func element(b []byte, i, count int) ([]byte, error) {
	if pageHeader+count*elementLen > len(b) {
		return nil, fmt.Errorf("%d elements in %d bytes", count, len(b))
	}
	return b[pageHeader+i*elementLen:][:elementLen], nil
}

// slice gives b[at:at+n] if that lies behind the elements.
func slice(b []byte, at, n, count int) ([]byte, error) {
	if at < pageHeader+count*elementLen || n < 0 || at > len(b) || n > len(b)-at {
		return nil, fmt.Errorf("element of %d bytes at %d in a page of %d", n, at, len(b))
	}
	return b[at : at+n : at+n], nil
}

func between(key, low, high []byte, strictly bool) error {
	c := bytes.Compare(key, low)
	if (low != nil && (c < 0 || (strictly && c == 0))) || (high != nil && bytes.Compare(key, high) >= 0) {
		return fmt.Errorf("keys are out of order")
	}
	return nil
}
