package files

import (
	"context"
	"os"

	"github.com/correx/correx-actors/core/media"
)

// Reason says why a file is not sent.
type Reason string

// The reasons.
const (
	// ReasonOutside: the path, or a symbolic link on it, leads out of the root. Absolute links count as leading out.
	ReasonOutside Reason = "outside"
	// ReasonMissing: there is no such file.
	ReasonMissing Reason = "missing"
	// ReasonNotRegular: a directory, pipe, socket or device.
	ReasonNotRegular Reason = "not_regular"
	// ReasonHardLink: the file has a second name, which may be outside.
	ReasonHardLink Reason = "hard_link"
	// ReasonTooLarge: it is larger than a file may be.
	ReasonTooLarge Reason = "too_large"
	// ReasonTooMany: the answer has as many files as it may have.
	ReasonTooMany Reason = "too_many"
	// ReasonRepeated: the same file is sent already.
	ReasonRepeated Reason = "repeated"
	// ReasonUnreadable: the file system refuses to read it.
	ReasonUnreadable Reason = "unreadable"
	// ReasonLate: its check did not end in time. It may be asked for again.
	ReasonLate Reason = "late"
)

// Valid says whether r is one of the reasons.
func (r Reason) Valid() bool {
	switch r {
	case ReasonOutside, ReasonMissing, ReasonNotRegular, ReasonHardLink, ReasonTooLarge, ReasonTooMany, ReasonRepeated,
		ReasonUnreadable, ReasonLate:
		return true
	default:
		return false
	}
}

// Dropped is a request that is not served.
type Dropped struct {
	Request media.Request
	Reason  Reason
}

// Set is what became of the requests of one answer. Whoever takes it closes it.
type Set struct {
	// Files to send, open, in the order of their requests.
	Files []*File
	// Dropped requests, in their order.
	Dropped []Dropped
}

// Close closes all files of the set.
func (s *Set) Close() {
	for _, f := range s.Files {
		f.Close()
	}
}

// Late are the requests whose checks did not end in time: the answer does not wait for them, but they can be resolved again and
// sent behind it.
func (s *Set) Late() []media.Request {
	var late []media.Request
	for _, d := range s.Dropped {
		if d.Reason == ReasonLate {
			late = append(late, d.Request)
		}
	}
	return late
}

// Resolve opens the files that may be sent, in the order of the requests, which is that of media.Merge. It never fails: what is
// not sent is in the set with its reason. It takes as long as the checks of the files do, each within its own time, and ends
// early with ctx; everything that is not decided by then is late.
func (r *Root) Resolve(ctx context.Context, requests []media.Request) *Set {
	set := &Set{}
	for _, request := range requests {
		if file, reason := r.resolve(ctx, set, request); reason != "" {
			set.Dropped = append(set.Dropped, Dropped{Request: request, Reason: reason})
		} else {
			set.Files = append(set.Files, file)
		}
	}
	return set
}

func (r *Root) resolve(ctx context.Context, set *Set, request media.Request) (*File, Reason) {
	switch {
	case len(set.Files) >= r.cfg.MaxFiles:
		return nil, ReasonTooMany
	case ctx.Err() != nil:
		return nil, ReasonLate
	}
	file, reason := r.check(ctx, request.Path)
	if reason != "" {
		return nil, reason
	}
	file.describe(request)
	if set.has(file) {
		file.Close()
		return nil, ReasonRepeated
	}
	return file, ""
}

// has says whether the set has the file already. Not its path counts but what was opened, so that two spellings are one file; it
// is sent twice only if it is to be shown under another name or caption, and not if a tool merely made what is sent anyway.
func (s *Set) has(file *File) bool {
	for _, f := range s.Files {
		same := f.Name == file.Name && f.Request.Caption == file.Request.Caption
		if os.SameFile(f.info, file.info) && (same || file.Request.Source == media.SourceGenerated) {
			return true
		}
	}
	return false
}
