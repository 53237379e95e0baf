package llmserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/correx/correx-actors/inference"
)

// ResponseQuirks gives the catalogue of the responses endpoint: its own quirks, and those of Quirks that can happen to any
// stream of events, with their chunks translated.
func ResponseQuirks() []Quirk {
	own := slices.Concat(responseEnds(), responseShapes(), responseFraming(), unknownTokens())
	for _, group := range [][]Quirk{ends(), framing(), documents(), errorEvents(), refusals()} {
		for _, quirk := range group {
			if translated, ok := quirk.translated(); ok {
				own = append(own, translated)
			}
		}
	}
	return own
}

// respondQuirk gives the response of the quirk that the answer names.
func (a Answer) respondQuirk() Response {
	all := ResponseQuirks()
	at := slices.IndexFunc(all, func(q Quirk) bool { return q.Name == a.Quirk })
	if at < 0 {
		return sends(http.StatusBadRequest, jsonType, errorJSON("unknown_quirk", "there is no quirk named "+a.Quirk))
	}
	response := all[at].Response
	response.Piece = max(a.Piece, response.Piece)
	return response
}

var (
	said      = Answer{Deltas: []string{"Hello", ",", " world"}, Usage: &counts}
	responded = typedJSON("response.completed", `"response":`+responseJSON("resp_1", said, true))
	// fineResponse is the reading of a whole response.
	fineResponse = Want{Text: hello, FinishReason: "stop", Usage: &counts, Resume: "resp_1"}
)

func textDelta(text string) string {
	return typedJSON("response.output_text.delta", `"delta":`+quote(text))
}

// translated gives the same quirk of the other endpoint; false = it makes no sense there.
func (q Quirk) translated() (Quirk, bool) {
	words := strings.NewReplacer(
		chunk(`{"content":"Hello"}`, ""), textDelta("Hello"),
		chunk(`{"content":","}`, ""), textDelta(","),
		chunk(`{"content":" world"}`, ""), textDelta(" world"),
		strings.TrimSuffix(usageEvent(counts), "\n\n"), ": usage",
		chunk("{}", "stop"), responded,
	)
	whole := false
	q.Response.Parts = slices.Clone(q.Response.Parts)
	for i, part := range q.Response.Parts {
		text := words.Replace(part.Text)
		if strings.Contains(text, `"choices"`) || strings.Contains(text, `"completion_tokens"`) {
			return Quirk{}, false
		}
		whole = whole || strings.Contains(text, responded)
		q.Response.Parts[i].Text = text
	}
	q.Slow = false // no grace is needed: after its last event nothing follows
	if whole && q.Want.Kind == "" {
		q.Want = fineResponse
	}
	return q, whole || q.Want.Kind != ""
}

// stream puts events behind the first one.
func stream(events ...string) string {
	return typed("response.created", `"response":`+responseJSON("resp_1", said, false)) + strings.Join(events, "")
}

func lastly(kind, response string) string { return typed(kind, `"response":`+response) }

// responseEnds: the ways in which a response says that it is over.
func responseEnds() []Quirk {
	text := typed("response.output_text.delta", `"delta":"Hello, world"`)
	failed := func(code, message string) string {
		return lastly("response.failed", `{"id":"resp_1","status":"failed","error":{"code":`+quote(code)+`,"message":`+quote(message)+`}}`)
	}
	early := func(reason string) string {
		return lastly("response.incomplete", `{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":`+quote(reason)+
			`},"usage":{"input_tokens":9,"output_tokens":3}}`)
	}
	return []Quirk{
		{
			Name: "incomplete", About: "a limit of tokens was reached", Response: says(stream(text, early("max_output_tokens"))),
			Want: Want{Text: hello, FinishReason: "length", Usage: &counts, Resume: "resp_1"},
		},
		{
			Name: "incomplete_filtered", About: "a filter ended the answer", Response: says(stream(text, early("content_filter"))),
			Want: Want{Text: hello, Kind: inference.KindContentFiltered},
		},
		{
			Name: "incomplete_other", About: "it ended early for a reason of nobody", Response: says(stream(text, early("bored"))),
			Want: Want{Text: hello, FinishReason: "bored", Usage: &counts, Resume: "resp_1"},
		},
		{
			Name: "incomplete_silent", About: "it ended early for no reason",
			Response: says(stream(text, lastly("response.incomplete", `{"id":"resp_1"}`))),
			Want:     Want{Text: hello, FinishReason: "incomplete", Resume: "resp_1"},
		},
		{
			Name: "failed", About: "it failed before any text", Response: says(stream(failed("server_error", "The model broke"))),
			Want: Want{Kind: inference.KindProvider, Says: "server_error: The model broke"},
		},
		{
			Name: "failed_late", About: "it failed after the text", Response: says(stream(text, failed("rate_limit_exceeded", "Slow down"))),
			Want: Want{Text: hello, Kind: inference.KindRateLimited, Says: "Slow down"},
		},
		{
			Name: "failed_prompt", About: "the prompt was flagged", Response: says(stream(failed("invalid_prompt", "It was flagged"))),
			Want: Want{Kind: inference.KindContentFiltered},
		},
		{
			Name: "failed_silent", About: "it failed without an error", Response: says(stream(lastly("response.failed", `{"id":"resp_1"}`))),
			Want: Want{Kind: inference.KindProvider, Says: "without a text"},
		},
		{
			Name: "cancelled", About: "somebody stopped it on the server", Response: says(stream(text, lastly("response.cancelled", `{"id":"resp_1"}`))),
			Want: Want{Text: hello, Kind: inference.KindProvider, Says: "cancelled"},
		},
		{
			Name: "error_typed", About: "an event of type error without a name",
			Response: says(stream(text, `data: {"type":"error","code":"server_overloaded","message":"Full","param":null}`+"\n\n")),
			Want:     Want{Text: hello, Kind: inference.KindOverloaded, Says: "Full"},
		},
		{
			Name: "created_cut", About: "the connection is cut after the first event", Response: says(stream()).ending(EndCut),
			Want: Want{Kind: inference.KindTruncated, Active: true},
		},
		{
			Name: "done_alone", About: "an end mark without a last event", Response: says(stream(text, done)),
			Want: Want{Text: hello, Kind: inference.KindTruncated},
		},
		{
			Name: "completed_hold", About: "the connection stays open after the last event",
			Response: says(stream(text, lastly("response.completed", responseJSON("resp_1", said, true)))).ending(EndHold), Want: fineResponse,
		},
		{
			Name: "completed_bare", About: "a last event without a response", Response: says(stream(text, "data: {\"type\":\"response.completed\"}\n\n")),
			Want: Want{Text: hello, FinishReason: "stop"},
		},
	}
}

// responseShapes: where the text may stand, and what else may come.
func responseShapes() []Quirk {
	end := lastly("response.completed", responseJSON("resp_1", said, true))
	keptNot := strings.Replace(responseJSON("resp_1", said, true), `"error":null`, `"error":null,"store":false`, 1)
	return []Quirk{
		{
			Name: "text_at_end", About: "no delta, all text in the last event", Response: says(stream(end)), Want: fineResponse,
		},
		{
			Name: "document_response", About: "a response in one document", Response: sends(http.StatusOK, jsonType, responseJSON("resp_1", said, true)),
			Want: fineResponse,
		},
		{
			Name: "document_failed", About: "a failed response in one document",
			Response: sends(http.StatusOK, jsonType, `{"id":"resp_1","status":"failed","output":[],"error":{"code":"server_error","message":"Broke"}}`),
			Want:     Want{Kind: inference.KindProvider, Says: "Broke"},
		},
		{
			Name: "refusal", About: "the model refuses",
			Response: says(stream(typed("response.refusal.delta", `"delta":"Hello, world"`), end)), Want: fineResponse,
		},
		{
			Name: "thinking", About: "reasoning of all kinds, and events of nobody",
			Response: says(stream(typed("response.reasoning_summary_text.delta", `"delta":"hm"`), typed("response.of_nobody", `"delta":{"a":1}`),
				typed("response.output_text.delta", `"delta":"Hello, world"`), typed("response.output_text.done", `"text":"Hello, world"`), end)),
			Want: Want{Text: hello, FinishReason: "stop", Usage: &counts, Resume: "resp_1", Active: true},
		},
		{
			Name: "nothing", About: "an answer without any text",
			Response: says(stream(lastly("response.completed", `{"id":"resp_1","output":[{"type":"reasoning","content":[{"text":"hm"}]}]}`))),
			Want:     Want{FinishReason: "stop", Resume: "resp_1"},
		},
		{
			Name: "not_kept", About: "a server that keeps nothing, whatever it is asked for",
			Response: says(stream(lastly("response.completed", keptNot))), Want: Want{Text: hello, FinishReason: "stop", Usage: &counts},
		},
		{
			Name: "delta_object", About: "a text that is none", Response: says(stream(typed("response.output_text.delta", `"delta":{"a":1}`))),
			Want: Want{Kind: inference.KindProvider, Says: "cannot be read"},
		},
		{
			Name: "response_number", About: "a response that is a number", Response: says(stream(lastly("response.completed", "7"))),
			Want: Want{Kind: inference.KindProvider, Says: "cannot be read"},
		},
	}
}

// responseFraming: legal streams that line readers misread; one event has its data in several lines.
func responseFraming() []Quirk {
	lines := stream(
		typed("response.output_text.delta", `"delta":"Hello,"`),
		"event: response.output_text.delta\ndata: {\"type\":\ndata: \"response.output_text.delta\",\ndata: \"delta\":\" world\"}\n\n",
		lastly("response.completed", responseJSON("resp_1", said, true)),
	)
	var all []Quirk
	for name, end := range map[string]string{"multi_line": "\n", "crlf": "\r\n", "cr": "\r"} {
		all = append(all, Quirk{
			Name: name, About: "data in several lines, with any line ends", Response: says(strings.ReplaceAll(lines, "\n", end)), Want: fineResponse,
		})
	}
	slices.SortFunc(all, func(a, b Quirk) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// unknownTokens: how servers say that they do not know a response.
func unknownTokens() []Quirk {
	refusal := func(name string, status int, body string) Quirk {
		return Quirk{
			Name: name, About: "a token that the server does not know", Response: sends(status, jsonType, body),
			Want: Want{Kind: inference.KindBadRequest, Lost: true},
		}
	}
	return []Quirk{
		{
			Name: "lost_openai", About: "as OpenAI says it", Response: unknownResponse("resp_0"),
			Want: Want{Kind: inference.KindBadRequest, Says: "resp_0", Lost: true},
		},
		refusal("lost_404", http.StatusNotFound, `{"error":{"message":"Response with id 'resp_0' not found.","type":"invalid_request_error","code":404}}`),
		refusal("lost_unsupported", http.StatusBadRequest, `{"error":{"message":"Unsupported parameter: 'previous_response_id'","code":"unsupported_parameter"}}`),
	}
}
