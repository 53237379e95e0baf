// Package media says which files an answer asks to send: lines of the answer itself, wishes of tools, images that tools made. It
// reads text and names; whether such a file exists and may be sent is the business of who opens it.
//
// A MEDIA: line never reaches a client as text. Strip takes such lines out of a whole answer and Screen out of one that is still
// being streamed, and both leave the same text.
package media

import (
	"slices"
	"strings"
)

// Source says who asked for a file.
type Source string

// The sources of requests, in the order in which they are served.
const (
	// SourceTool is a tool that asks to send a file.
	SourceTool Source = "tool"
	// SourceDirective is a MEDIA: line of the answer.
	SourceDirective Source = "directive"
	// SourceGenerated is an image that a tool wrote.
	SourceGenerated Source = "generated"
)

// Valid says whether s is one of the sources.
func (s Source) Valid() bool {
	switch s {
	case SourceTool, SourceDirective, SourceGenerated:
		return true
	default:
		return false
	}
}

// MaxRequests bounds the requests of one source; what comes later is not asked for. An answer may have millions of lines.
const MaxRequests = 64

// Request asks for a file to be sent with the answer. It is a wish of a model or a tool: nothing in it is to be trusted.
type Request struct {
	// Path of the file: relative to the root of the files, or absolute and inside it.
	Path string
	// Name to show; empty means the last element of Path.
	Name string
	// Caption to show with it, empty for none.
	Caption string
	// MediaType that the tool claims, empty if it is to be found out.
	MediaType string
	Source    Source
}

// Merge puts requests into the order in which they are served (of tools, of MEDIA: lines, generated images) and leaves out what
// repeats an earlier one's path, name and caption.
func Merge(tools, directives, generated []Request) []Request {
	type key struct{ path, name, caption string }
	seen := make(map[key]bool)
	var merged []Request
	for _, r := range slices.Concat(tools, directives, generated) {
		k := key{r.Path, r.Shown(), r.Caption}
		if !seen[k] {
			seen[k] = true
			merged = append(merged, r)
		}
	}
	return merged
}

// Shown is the name that the request's file is shown with.
func (r Request) Shown() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Path[strings.LastIndexAny(r.Path, `/\`)+1:]
}

// Change is one file that an action changed.
type Change struct {
	Path string
	// Kind as the engine says it: added, modified, deleted, …
	Kind string
}

// Outcome is what a finished action of a tool left behind.
type Outcome struct {
	// OK: the action succeeded. Files of failed actions are not sent.
	OK bool
	// Files that the tool asks to send.
	Files []Request
	// Changes that it made to files.
	Changes []Change
}

// Wishes collects what the actions of one run want sent. It is immutable: Add gives a new one.
type Wishes struct {
	// Tools are the files that tools asked to send, in their order and each once.
	Tools []Request
	// Generated are the images that they wrote, in their order and each once.
	Generated []Request
}

// Add notes a finished action. What a failed one wrote or asked for is not sent.
func (w Wishes) Add(o Outcome) Wishes {
	if !o.OK {
		return w
	}
	for _, r := range o.Files {
		// A tool may say that it made the file; that a line of the answer asked for it is not for a tool to say.
		if r.Source != SourceGenerated {
			r.Source = SourceTool
		}
		if strings.TrimSpace(r.Path) != "" {
			w.Tools = add(w.Tools, r)
		}
	}
	for _, c := range o.Changes {
		if strings.TrimSpace(c.Path) != "" && c.Kind != "deleted" && c.Kind != "remove" && Image(c.Path) {
			w.Generated = add(w.Generated, Request{Path: c.Path, Source: SourceGenerated})
		}
	}
	return w
}

// add appends r to a copy of list, if it is not there and there is room.
func add(list []Request, r Request) []Request {
	same := func(x Request) bool { return x.Path == r.Path && x.Shown() == r.Shown() && x.Caption == r.Caption }
	if len(list) >= MaxRequests || slices.ContainsFunc(list, same) {
		return list
	}
	return append(slices.Clip(list), r)
}

// Image says whether a file's name is that of an image.
func Image(path string) bool {
	switch strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]) {
	case "png", "jpg", "jpeg", "gif", "webp", "bmp", "svg", "tif", "tiff", "heic", "heif":
		return strings.Contains(path, ".")
	default:
		return false
	}
}
