package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/correx/correx-actors/core/media"
)

// Bounds of names, in bytes.
const (
	maxPath = 4096
	maxName = 255
)

// ErrChanged is what WriteTo returns when a file became shorter after its check.
var ErrChanged = errors.New("the file became shorter")

// File is an open file that may be sent. Its content is what WriteTo gives; nothing opens it by name again.
type File struct {
	// Request that it answers.
	Request media.Request
	// Name to show: without directories and control characters, valid UTF-8.
	Name string
	// MediaType as the tool said, or as name and content tell it.
	MediaType string
	// Size in bytes when it was checked; WriteTo writes as many.
	Size int64

	file *os.File
	info fs.FileInfo
}

// WriteTo writes the content that was checked, each time from its beginning. Bytes that were appended since are not written; if
// some are missing it returns ErrChanged.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, io.NewSectionReader(f.file, 0, f.Size))
	if err == nil && n < f.Size {
		err = ErrChanged
	}
	if err != nil {
		return n, fmt.Errorf("read %d bytes of a file of an answer: %w", f.Size, err)
	}
	return n, nil
}

// Close closes the file. A nil file has nothing to close.
func (f *File) Close() {
	if f != nil {
		_ = f.file.Close() // it was only read
	}
}

// openFile opens the file at a path inside the root, if it may be sent.
func openFile(root *os.Root, path string, limit int64) (*File, Reason) {
	if reason := look(root, path); reason != "" {
		return nil, reason
	}
	return take(root, path, limit)
}

// look is before take because opening a device may do something. It decides nothing in favor of a file: what it saw may be gone.
func look(root *os.Root, path string) Reason {
	info, err := root.Stat(path)
	switch {
	case err != nil:
		return reasonOf(err)
	case !info.Mode().IsRegular():
		return ReasonNotRegular
	default:
		return ""
	}
}

// take opens a path, whatever stands there by now, and decides on what it has opened.
func take(root *os.Root, path string, limit int64) (*File, Reason) {
	// Not blocking: a pipe that came into its place would wait for a writer.
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reasonOf(err)
	}
	f, reason := examine(file, limit)
	if reason != "" {
		_ = file.Close() // it was only read
		return nil, reason
	}
	return f, ""
}

// examine decides on an open file.
func examine(file *os.File, limit int64) (*File, Reason) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, ReasonUnreadable
	case !info.Mode().IsRegular():
		return nil, ReasonNotRegular
	case info.Size() > limit:
		return nil, ReasonTooLarge
	case links(info) > 1:
		return nil, ReasonHardLink
	}
	head := make([]byte, min(info.Size(), 512))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, ReasonUnreadable
	}
	return &File{MediaType: http.DetectContentType(head[:n]), Size: info.Size(), file: file, info: info}, ""
}

// reasonOf tells why a file could not be opened.
func reasonOf(err error) Reason {
	var refused syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return ReasonMissing
	case errors.As(err, &refused):
		return ReasonUnreadable
	default:
		return ReasonOutside // of a path that leaves it, os.Root says so itself and not the system
	}
}

// describe gives the file the request's name and type, as far as they can be shown.
func (f *File) describe(r media.Request) {
	f.Request, f.Name = r, showable(r.Shown())
	if claimed, _, err := mime.ParseMediaType(r.MediaType); err == nil && strings.Contains(claimed, "/") {
		f.MediaType = claimed
		return
	}
	if known := typeOf(r.Path); known != "" {
		f.MediaType = known
	}
}

// typeOf knows what content alone does not tell. The tables of the machine are not asked: they differ.
func typeOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		return "image/svg+xml"
	case ".tif", ".tiff":
		return "image/tiff"
	case ".heic":
		return "image/heic"
	case ".heif":
		return "image/heif"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".json":
		return "application/json"
	default:
		return ""
	}
}

// showable makes a name fit to be shown and sent.
func showable(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if len(name) > maxName {
		ext := filepath.Ext(name)
		if len(ext) > 16 {
			ext = ""
		}
		name = strings.ToValidUTF8(name[:maxName-len(ext)], "") + ext
	}
	if name = strings.TrimSpace(name); name == "" || name == "." || name == ".." {
		return "file"
	}
	return name
}
