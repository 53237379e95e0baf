package llmserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Model is the name of the model that answers.
const Model = "fake-1"

// Answer is what the server does with one request.
type Answer struct {
	// Deltas are streamed one event each; Reasoning before them, as reasoning_content.
	Deltas    []string
	Reasoning []string
	// Echo answers what was asked instead: with the newest message, as many words of it as the client allows; or, of a request
	// that requires a tool, with a call of it.
	Echo bool
	// ToolCalls are streamed after the deltas; ToolPiece is how many bytes of arguments an event holds, 0 = all.
	ToolCalls []ToolCall
	ToolPiece int
	// FinishReason; "" = stop, or tool_calls if there are any.
	FinishReason string
	// Usage is sent in a chunk of its own if the client asked for it; nil: never.
	Usage *Usage
	// FirstDelay is waited before the first delta (the headers are sent before), Delay before each of the others.
	FirstDelay, Delay time.Duration
	// KeepAlives is how many comments are sent before the first delta, one each KeepAliveEvery.
	KeepAlives     int
	KeepAliveEvery time.Duration
	// Gate, if set, is waited for before the first delta.
	Gate <-chan struct{}
	// CutAfter cuts the connection after so many deltas; 0 = never.
	CutAfter int
	// Hold keeps the connection open after the answer until the client goes away.
	Hold bool
	// Piece is how many bytes are written and flushed at a time: 1 = byte by byte, 0 = event by event.
	Piece int
	// Quirk is the name of one of Quirks, whose response is sent instead of all the above but Piece.
	Quirk string
}

// Usage counts tokens.
type Usage struct{ Input, Output int }

// End is how a response ends.
type End string

// Ends.
const (
	// EndClose ends it as HTTP wants.
	EndClose End = ""
	// EndCut closes the connection in its midst.
	EndCut End = "cut"
	// EndHold keeps it open until the client goes away.
	EndHold End = "hold"
)

// Response is a response byte by byte.
type Response struct {
	// Status; 0 = 200.
	Status int
	// Header; without a Content-Type it is text/event-stream.
	Header map[string]string
	Parts  []Part
	End    End
	// Piece as in Answer.
	Piece int
}

// Part is written in one go.
type Part struct {
	// Delay and Gate are waited for before it.
	Delay time.Duration
	Gate  <-chan struct{}
	Text  string
}

// Body is what the parts say together.
func (r Response) Body() string {
	var body strings.Builder
	for _, part := range r.Parts {
		body.WriteString(part.Text)
	}
	return body.String()
}

// response renders the answer for a request.
func (a Answer) response(chat Chat) Response {
	if a.Quirk != "" {
		quirk, ok := QuirkNamed(a.Quirk)
		if !ok {
			return Response{
				Status: http.StatusBadRequest,
				Header: map[string]string{"Content-Type": "application/json"},
				Parts:  []Part{{Text: errorJSON("unknown_quirk", "there is no quirk named "+a.Quirk)}},
			}
		}
		response := quirk.Response
		response.Piece = max(a.Piece, response.Piece)
		return response
	}
	if a.Echo {
		a = a.echo(chat)
	}
	switch {
	case a.FinishReason != "":
	case len(a.ToolCalls) > 0:
		a.FinishReason = "tool_calls"
	default:
		a.FinishReason = "stop"
	}
	if !chat.Stream {
		return a.document()
	}
	return a.stream(chat)
}

func (a Answer) stream(chat Chat) Response {
	response := Response{Piece: a.Piece, Parts: []Part{{Text: event(`{"role":"assistant","content":""}`, "")}}}
	for range a.KeepAlives {
		response.Parts = append(response.Parts, Part{Delay: a.KeepAliveEvery, Text: ": keep-alive\n\n"})
	}
	for i, text := range a.Reasoning {
		response.Parts = append(response.Parts, a.part(i, event(`{"reasoning_content":`+quote(text)+`}`, "")))
	}
	for i, text := range a.Deltas {
		if a.CutAfter > 0 && i == a.CutAfter {
			response.End = EndCut
			return response
		}
		response.Parts = append(response.Parts, a.part(len(a.Reasoning)+i, event(`{"content":`+quote(text)+`}`, "")))
	}
	for i, text := range toolEvents(a.ToolCalls, a.ToolPiece) {
		response.Parts = append(response.Parts, a.part(len(a.Reasoning)+len(a.Deltas)+i, text))
	}
	end := event("{}", a.FinishReason)
	if a.Usage != nil && chat.StreamOptions.IncludeUsage {
		end += usageEvent(*a.Usage)
	}
	response.Parts = append(response.Parts, Part{Text: end + done})
	if a.Hold {
		response.End = EndHold
	}
	return response
}

func (a Answer) part(i int, text string) Part {
	if i == 0 {
		return Part{Delay: a.FirstDelay, Gate: a.Gate, Text: text}
	}
	return Part{Delay: a.Delay, Text: text}
}

func (a Answer) document() Response {
	usage := ""
	if a.Usage != nil {
		usage = "," + usageJSON(*a.Usage)
	}
	return Response{
		Header: map[string]string{"Content-Type": "application/json"},
		Parts: []Part{{Delay: a.FirstDelay, Gate: a.Gate, Text: fmt.Sprintf(
			`{"id":"c1","object":"chat.completion","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%s%s},"finish_reason":%q}]%s}`,
			Model, quote(strings.Join(a.Deltas, "")), toolList(a.ToolCalls), a.FinishReason, usage,
		)}},
	}
}

// event is one chunk as a server-sent event.
func event(delta, finishReason string) string { return "data: " + chunk(delta, finishReason) + "\n\n" }

func chunk(delta, finishReason string) string {
	reason := "null"
	if finishReason != "" {
		reason = quote(finishReason)
	}
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":%q,"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`,
		Model, delta, reason)
}

func usageEvent(usage Usage) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":%q,"choices":[],%s}`, Model, usageJSON(usage)) + "\n\n"
}

func usageJSON(usage Usage) string {
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, usage.Input, usage.Output, usage.Input+usage.Output)
}

const done = "data: [DONE]\n\n"

// errCut asks for a cut connection.
var errCut = errors.New("cut")

// sent is what was written of a response.
type sent struct {
	status int
	bytes  int64
}

// play writes a response; its error is errCut or the reason why the client is gone.
func play(ctx context.Context, w http.ResponseWriter, response Response) (sent, error) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	for key, value := range response.Header {
		header.Set(key, value)
		if value == "" {
			// Set to nil it is left out; deleted it would be guessed.
			header[http.CanonicalHeaderKey(key)] = nil
		}
	}
	if response.Status == 0 {
		response.Status = http.StatusOK
	}
	out := sent{status: response.Status}
	w.WriteHeader(response.Status)
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		return out, err
	}
	for _, part := range response.Parts {
		if err := wait(ctx, part); err != nil {
			return out, err
		}
		n, err := write(ctx, w, control, part.Text, response.Piece)
		out.bytes += n
		if err != nil {
			return out, err
		}
	}
	switch response.End {
	case EndClose:
	case EndCut:
		return out, errCut
	case EndHold:
		<-ctx.Done()
		return out, context.Cause(ctx)
	}
	return out, nil
}

func wait(ctx context.Context, part Part) error {
	if part.Delay > 0 {
		timer := time.NewTimer(part.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if part.Gate != nil {
		select {
		case <-part.Gate:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func write(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, text string, piece int) (written int64, err error) {
	if piece <= 0 {
		piece = len(text)
	}
	for text != "" {
		if ctx.Err() != nil {
			return written, context.Cause(ctx)
		}
		n := min(piece, len(text))
		got, err := w.Write([]byte(text[:n]))
		written += int64(got)
		if err != nil {
			return written, err
		}
		if err := control.Flush(); err != nil {
			return written, err
		}
		text = text[n:]
	}
	return written, nil
}
