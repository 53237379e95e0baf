package llmserver

import (
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

// Quirk is one way in which servers were seen to answer: broken, unusual, or merely legal.
type Quirk struct {
	Name  string
	About string
	// Response is what the server sends.
	Response Response
	// Want is what a client must make of it.
	Want Want
	// Large quirks are too big to be written byte by byte.
	Large bool
	// Slow quirks take seconds of a real clock.
	Slow bool
}

// Want is the right reading of a response.
type Want struct {
	// Text of all deltas.
	Text string
	// Kind of the error; "" = success.
	Kind inference.Kind
	// Says is a part of the error's message.
	Says string
	// FinishReason of a success.
	FinishReason string
	// Usage that is known; nil: the client must not claim to know it.
	Usage *Usage
	// RetryAfter and RequestID of the error.
	RetryAfter time.Duration
	RequestID  string
	// Active: there was life besides the text.
	Active bool
	// Calls are the tool calls of a success, CallsBroken says that they cannot be carried out.
	Calls       []ToolCall
	CallsBroken bool
	// Resume is the token of a success; Lost: the error says that the request's token is unknown.
	Resume string
	Lost   bool
}

// QuirkNamed finds a quirk of the catalogue.
func QuirkNamed(name string) (Quirk, bool) {
	for _, quirk := range Quirks() {
		if quirk.Name == name {
			return quirk, true
		}
	}
	return Quirk{}, false
}

// Quirks gives the catalogue.
func Quirks() []Quirk {
	var all []Quirk
	for _, group := range [][]Quirk{ends(), framing(), documents(), errorEvents(), reasons(), shapes(), toolQuirks(), refusals()} {
		all = append(all, group...)
	}
	return all
}

const (
	hello  = "Hello, world"
	apiKey = "sk-proj-0123456789abcdefABCDEF"
)

var (
	deltas = content("Hello", ",", " world")
	finish = event("{}", "stop")
	counts = Usage{Input: 9, Output: 3}
	whole  = deltas + finish + usageEvent(counts) + done
	fine   = Want{Text: hello, FinishReason: "stop", Usage: &counts}
)

func content(texts ...string) string {
	var all strings.Builder
	for _, text := range texts {
		all.WriteString(event(`{"content":`+quote(text)+`}`, ""))
	}
	return all.String()
}

// says makes a response of one part.
func says(body string) Response { return Response{Parts: []Part{{Text: body}}} }

// bulk makes a response with so many MiB of filler in its midst, in parts that share their memory: the catalogue is made
// for each request that names a quirk.
func bulk(before, filler string, mebibytes int, after string) Response {
	parts := []Part{{Text: before}}
	block := strings.Repeat(filler, 1<<16/len(filler))
	for range mebibytes << 4 {
		parts = append(parts, Part{Text: block})
	}
	return Response{Parts: append(parts, Part{Text: after})}
}

// sends makes a response of another type and status than a stream's.
func sends(status int, contentType, body string) Response {
	return Response{Status: status, Header: map[string]string{"Content-Type": contentType}, Parts: []Part{{Text: body}}}
}

func (r Response) with(key, value string) Response {
	header := map[string]string{key: value}
	for k, v := range r.Header {
		header[k] = v
	}
	r.Header = header
	return r
}

func (r Response) ending(end End) Response {
	r.End = end
	return r
}
