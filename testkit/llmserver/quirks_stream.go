package llmserver

import (
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

// ends: whole, cut and held streams.
func ends() []Quirk {
	return []Quirk{
		{Name: "none", About: "a stream as it should be", Response: says(whole), Want: fine},
		{
			Name: "cut", About: "the connection is cut after the text", Response: says(deltas).ending(EndCut),
			Want: Want{Text: hello, Kind: inference.KindTruncated},
		},
		{
			Name: "ended", About: "the stream ends in good order without a finish reason or an end mark", Response: says(deltas),
			Want: Want{Text: hello, Kind: inference.KindTruncated},
		},
		{
			Name: "empty", About: "a stream without a byte", Response: says(""), Want: Want{Kind: inference.KindTruncated},
		},
		{
			Name: "cut_event", About: "the connection is cut inside of an event",
			Response: says(deltas + `data: {"choices":[{"index":0,"del`).ending(EndCut),
			Want:     Want{Text: hello, Kind: inference.KindTruncated},
		},
		{
			Name: "tail", About: "the last event lacks its line end", Response: says(strings.TrimRight(deltas, "\n")),
			Want: Want{Text: hello, Kind: inference.KindTruncated},
		},
		{
			Name: "tail_done", About: "the end mark lacks its line end", Response: says(strings.TrimRight(whole, "\n")), Want: fine,
		},
		{
			Name: "cut_finished", About: "the connection is cut after the finish reason", Response: says(deltas + finish).ending(EndCut),
			Want: Want{Text: hello, FinishReason: "stop"},
		},
		{
			Name: "no_done", About: "a finish reason but no end mark", Response: says(deltas + finish + usageEvent(counts)), Want: fine,
		},
		{
			Name: "hold_done", About: "the connection stays open after the end mark", Response: says(whole).ending(EndHold), Want: fine,
		},
		{
			Name: "late_end", About: "the transfer ends a little after the end mark",
			Response: Response{Parts: []Part{{Text: whole}, {Delay: 10 * time.Millisecond}}}, Want: fine,
		},
		{
			Name: "hold_finished", About: "the connection stays open after the finish reason", Slow: true,
			Response: says(deltas + finish).ending(EndHold), Want: Want{Text: hello, FinishReason: "stop"},
		},
	}
}

// framing: legal streams that line readers misread, and some that no standard allows.
func framing() []Quirk {
	lines := content("Hello", ",") + "data: {\"choices\":\ndata: [{\"delta\":\ndata: {\"content\":\" world\"}}]}\n\n" + finish + usageEvent(counts) + done
	script := "日本語 한국어 👩‍👩‍👧 e\u0301 ß"
	return []Quirk{
		{
			Name: "keep_alives", About: "200 comments before the first token, 1,000 after it",
			Response: says(strings.Repeat(": keep-alive\n\n", 200) + content("Hello") + strings.Repeat(":\n", 1000) + content(",", " world") + finish + usageEvent(counts) + done),
			Want:     Want{Text: hello, FinishReason: "stop", Usage: &counts, Active: true},
		},
		{
			Name: "blank_lines", About: "blank lines as a sign of life",
			Response: says(strings.Repeat("\n", 700) + whole), Want: Want{Text: hello, FinishReason: "stop", Usage: &counts, Active: true},
		},
		{
			Name: "empty_data", About: "events without data, also after an id",
			Response: says("id: 7\n\n: ping\n\ndata:\n\ndata: \n\n" + deltas + "data\n\n" + finish + done),
			Want:     Want{Text: hello, FinishReason: "stop"},
		},
		{Name: "crlf", About: "CRLF line ends", Response: says(strings.ReplaceAll(lines, "\n", "\r\n")), Want: fine},
		{Name: "cr", About: "CR line ends", Response: says(strings.ReplaceAll(lines, "\n", "\r")), Want: fine},
		{Name: "bom", About: "a byte order mark", Response: says("\ufeff" + whole), Want: fine},
		{Name: "no_space", About: "no space after the colon", Response: says(strings.ReplaceAll(whole, "data: ", "data:")), Want: fine},
		{
			Name: "multi_line", About: "data in several lines", Response: says(lines), Want: fine,
		},
		{
			Name: "fields", About: "ids, retry times, event names and fields of nobody",
			Response: says("retry: 3000\nid: 1\nevent: message\nfoo: bar\n" + deltas + "event: ping\ndata: {\"type\": \"ping\"}\n\n" + finish + usageEvent(counts) + done),
			Want:     fine,
		},
		{
			Name: "scripts", About: "characters of several bytes and graphemes of several characters",
			Response: says(content(strings.SplitAfter(script, " ")...) + finish + done), Want: Want{Text: script, FinishReason: "stop"},
		},
		{
			Name: "escaped", About: "text that looks like the protocol",
			Response: says(content("data: [DONE]\n\n", `{"error":{"message":"no"}}`, "\n: x") + finish + done),
			Want:     Want{Text: "data: [DONE]\n\n" + `{"error":{"message":"no"}}` + "\n: x", FinishReason: "stop"},
		},
		{
			Name: "null_error", About: `"error": null as the first key of each chunk`,
			Response: says(strings.ReplaceAll(whole, "data: {", `data: {"error":null,`)), Want: fine,
		},
		{
			Name: "big_event", About: "an event of 5 MiB", Large: true,
			Response: bulk(deltas+`data: {"choices":[{"index":0,"delta":{"content":"`, "x", 5, `"}}]}`+"\n\n"+finish+done),
			Want:     Want{Text: hello, Kind: inference.KindProvider, Says: "above"},
		},
		{
			Name: "big_line", About: "6 MiB without a line end", Large: true, Response: bulk(deltas+"data: ", "x", 6, ""),
			Want: Want{Text: hello, Kind: inference.KindProvider, Says: "above"},
		},
		{
			Name: "not_json", About: "an event that is no JSON", Response: says(content("Hello") + "data: oops\n\n" + done),
			Want: Want{Text: "Hello", Kind: inference.KindProvider},
		},
		{
			Name: "wrong_shape", About: "an event of another shape", Response: says(content("Hello") + "data: {\"choices\":{}}\n\n" + done),
			Want: Want{Text: "Hello", Kind: inference.KindProvider},
		},
	}
}

// reasons: what a stream says of the answer besides its text.
func reasons() []Quirk {
	thinking := event(`{"reasoning_content":"Let me"}`, "") + event(`{"reasoning":"think"}`, "")
	return []Quirk{
		{
			Name: "null_reason", About: "an end mark but only null as finish reason", Response: says(deltas + done),
			Want: Want{Text: hello, FinishReason: "stop"},
		},
		{
			Name: "unknown_reason", About: "a finish reason of the server's own", Response: says(deltas + event("{}", "end_of_thought") + done),
			Want: Want{Text: hello, FinishReason: "end_of_thought"},
		},
		{
			Name: "starved", About: "a finish reason that says that the server gave up for want of resources",
			Response: says(deltas + event("{}", "insufficient_system_resource") + usageEvent(counts) + done),
			Want:     Want{Text: hello, Kind: inference.KindOverloaded, Says: "insufficient_system_resource"},
		},
		{
			Name: "reason_error", About: "a finish reason that says that the upstream failed", Response: says(content("Hello") + event("{}", "error") + done),
			Want: Want{Text: "Hello", Kind: inference.KindProvider, Says: "error"},
		},
		{
			Name: "length", About: "the answer hit its limit", Response: says(deltas + event("{}", "length") + done),
			Want: Want{Text: hello, FinishReason: "length"},
		},
		{
			Name: "filtered", About: "a filter stopped the answer", Response: says(content("Hello") + event("{}", "content_filter") + done),
			Want: Want{Text: "Hello", Kind: inference.KindContentFiltered},
		},
		{
			Name: "prompt_filtered", About: "a filter stopped the prompt: no choices at all",
			Response: says(`data: {"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"custom":[],"hate":{"filtered":true,"severity":"high"}}}]}` + "\n\n" + done),
			Want:     Want{Kind: inference.KindContentFiltered},
		},
		{
			Name: "prompt_passed", About: "a filter's verdict in a chunk without choices, then the answer",
			Response: says(`data: {"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered":false}}}]}` + "\n\n" + whole),
			Want:     fine,
		},
		{
			Name: "no_choices", About: "a stream without any choice", Response: says(`data: {"choices":[]}` + "\n\n" + done),
			Want: Want{Kind: inference.KindProvider},
		},
		{
			Name: "no_usage", About: "the usage that was asked for never comes", Response: says(deltas + finish + done),
			Want: Want{Text: hello, FinishReason: "stop"},
		},
		{
			Name: "zero_usage", About: "a usage of zeros", Response: says(deltas + finish + usageEvent(Usage{}) + done),
			Want: Want{Text: hello, FinishReason: "stop"},
		},
		{
			Name: "null_usage", About: "a usage of null in each chunk but the last",
			Response: says(strings.ReplaceAll(deltas+finish, `"created":1`, `"usage":null`) + usageEvent(counts) + done), Want: fine,
		},
		{
			Name: "reasoning", About: "reasoning before the text", Response: says(thinking + whole),
			Want: Want{Text: hello, FinishReason: "stop", Usage: &counts, Active: true},
		},
		{
			Name: "only_reasoning", About: "reasoning and no text", Response: says(thinking + finish + usageEvent(counts) + done),
			Want: Want{FinishReason: "stop", Usage: &counts, Active: true},
		},
		{
			Name: "refusal", About: "the model refuses in words", Response: says(event(`{"content":null,"refusal":"I cannot."}`, "") + finish + done),
			Want: Want{Text: "I cannot.", FinishReason: "stop"},
		},
	}
}

// shapes: chunks that look otherwise than OpenAI's.
func shapes() []Quirk {
	finished := strings.Replace(finish, `"finish_reason":"stop"}]`, `"finish_reason":"stop"}],`+usageJSON(counts), 1)
	running := strings.ReplaceAll(deltas, `"created":1`, usageJSON(Usage{Input: 9, Output: 1}))
	return []Quirk{
		{
			Name: "blank_reason", About: "an empty finish reason in each chunk but the last",
			Response: says(strings.ReplaceAll(deltas, `"finish_reason":null`, `"finish_reason":""`) + finish + usageEvent(counts) + done), Want: fine,
		},
		{Name: "usage_finished", About: "the usage in the chunk of the finish reason", Response: says(deltas + finished + done), Want: fine},
		{Name: "running_usage", About: "a usage in each chunk, so far", Response: says(running + finish + usageEvent(counts) + done), Want: fine},
		{
			Name: "null_delta", About: "a first chunk of nulls", Want: fine,
			Response: says(event(`{"role":"assistant","content":null,"tool_calls":null,"refusal":null}`, "") + event("null", "") + whole),
		},
		{
			Name: "two_choices", About: "a second choice that nobody asked for", Want: fine,
			Response: says(deltas + strings.ReplaceAll(content("never", "mind"), `"index":0`, `"index":1`) + finish + usageEvent(counts) + done),
		},
		{Name: "after_done", About: "text after the end mark", Response: says(whole + content("never")), Want: fine},
		{
			Name: "limits_told", About: "headers that tell of rate limits and a request id", Want: fine,
			Response: says(whole).with("X-Request-Id", "req_2").with("X-Ratelimit-Limit-Requests", "500").with("X-Ratelimit-Remaining-Requests", "499").
				with("X-Ratelimit-Reset-Requests", "120ms").with("X-Ratelimit-Limit-Tokens", "30000").with("X-Ratelimit-Remaining-Tokens", "29990").
				with("X-Ratelimit-Reset-Tokens", "1m0.5s"),
		},
		{
			Name: "compressed", About: "a compressed stream that nobody asked for", Response: says("\x1f\x8b\x08").with("Content-Encoding", "gzip"),
			Want: Want{Kind: inference.KindProvider, Says: "gzip"},
		},
	}
}
