package llmserver

import (
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
)

const (
	jsonType = "application/json"
	htmlType = "text/html; charset=utf-8"
	page     = "<!doctype html><title>Sign in</title><p>Please sign in"
)

// documents: successes that are no streams.
func documents() []Quirk {
	completion := `{"id":"c1","object":"chat.completion","model":"fake-1","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"Hello, world"},"finish_reason":"stop"}],` + usageJSON(counts) + `}`
	return []Quirk{
		{
			Name: "html", About: "a login page", Response: sends(200, htmlType, page), Want: Want{Kind: inference.KindProvider, Says: "text/html"},
		},
		{
			Name: "html_untyped", About: "a login page that does not say what it is", Response: sends(200, "", page),
			Want: Want{Kind: inference.KindProvider, Says: "base URL"},
		},
		{Name: "no_content", About: "204", Response: Response{Status: 204}, Want: Want{Kind: inference.KindTruncated}},
		{
			Name: "document", About: "a completion in one document, as of a server that ignores the wish for a stream",
			Response: sends(200, jsonType, completion), Want: fine,
		},
		{
			Name: "document_cut", About: "such a document, cut", Response: sends(200, jsonType, completion[:len(completion)/2]),
			Want: Want{Kind: inference.KindTruncated},
		},
		{
			Name: "document_error", About: "an error with status 200", Response: sends(200, jsonType, errorJSON("insufficient_quota", "You exceeded your quota")),
			Want: Want{Kind: inference.KindQuota, Says: "insufficient_quota: You exceeded your quota"},
		},
		{
			Name: "document_other", About: "some other document", Response: sends(200, jsonType, `{"status":"ok"}`),
			Want: Want{Kind: inference.KindProvider},
		},
		{
			Name: "document_filtered", About: "a document without choices since a filter stopped the prompt",
			Response: sends(200, jsonType, `{"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered":true}}}]}`),
			Want:     Want{Kind: inference.KindContentFiltered},
		},
		{
			Name: "document_no_choices", About: "a document without choices", Response: sends(200, jsonType, `{"choices":[]}`),
			Want: Want{Kind: inference.KindProvider},
		},
		{Name: "stream_as_text", About: "a stream that calls itself text", Response: sends(200, "text/plain", whole), Want: fine},
		{Name: "stream_as_json", About: "a stream that calls itself JSON", Response: sends(200, jsonType, whole), Want: fine},
		{Name: "stream_untyped", About: "a stream without a type", Response: sends(200, "", "\ufeff\n"+whole), Want: fine},
	}
}

// errorEvents: errors inside of a stream that began as a success.
func errorEvents() []Quirk {
	overloaded := `{"message":"The engine is overloaded","type":"server_error","code":"engine_overloaded"}`
	failed := Want{Kind: inference.KindOverloaded, Says: "The engine is overloaded"}
	late := failed
	late.Text = hello
	return []Quirk{
		{Name: "error_first", About: "an error as the first event", Response: says(`data: {"error":` + overloaded + "}\n\n" + done), Want: failed},
		{Name: "error_late", About: "an error after the text", Response: says(deltas + `data: {"error":` + overloaded + "}\n\n"), Want: late},
		{
			Name: "error_hold", About: "an error, then an open connection", Response: says(`data: {"error":` + overloaded + "}\n\n").ending(EndHold),
			Want: failed,
		},
		{
			Name: "error_after_comment", About: "an error after a comment and an event name",
			Response: says(deltas + ": ping\nevent: message\ndata: {\"error\":" + overloaded + "}\n\n"), Want: late,
		},
		{Name: "error_spaced", About: "an error with spaces", Response: says(deltas + `data: { "error" : ` + overloaded + " }\n\n" + done), Want: late},
		{
			Name: "error_not_first", About: "an error behind empty choices", Response: says(`data: {"id":"c1","choices":[],"error":` + overloaded + "}\n\n" + done),
			Want: failed,
		},
		{
			Name: "error_not_first_late", About: "an error behind empty choices after the text",
			Response: says(deltas + `data: {"id":"c1","choices":[],"error":` + overloaded + "}\n\n" + done), Want: late,
		},
		{Name: "error_event", About: "event: error", Response: says(deltas + "event: error\ndata: " + overloaded + "\n\n"), Want: late},
		{
			Name: "error_event_text", About: "event: error with mere text", Response: says("event: error\ndata: upstream died\n\n"),
			Want: Want{Kind: inference.KindProvider, Says: "upstream died"},
		},
		{
			Name: "error_text", About: "an error that is a text", Response: says(`data: {"error":"upstream died"}` + "\n\n" + done),
			Want: Want{Kind: inference.KindProvider, Says: "upstream died"},
		},
		{
			Name: "error_status", About: "an error with the upstream's status as its code",
			Response: says(`data: {"error":{"code":429,"message":"slow down please"}}` + "\n\n"),
			Want:     Want{Kind: inference.KindRateLimited, Says: "slow down please"},
		},
		{
			Name: "error_object", About: "an object that calls itself an error",
			Response: says(`data: {"object":"error","message":"too many images","type":"BadRequestError","code":400}` + "\n\n" + done),
			Want:     Want{Kind: inference.KindBadRequest, Says: "too many images"},
		},
		{
			Name: "error_unframed", About: "an error without any framing", Response: says(deltas + "{\n  \"error\": " + overloaded + "\n}\n").ending(EndHold),
			Want: late,
		},
		{
			Name: "error_tail", About: "an error that lacks its line end", Response: says(deltas + `data: {"error":` + overloaded + "}"), Want: late,
		},
		{
			Name: "error_secret", About: "an error that quotes the key",
			Response: says(`data: {"error":{"message":"bad key ` + apiKey + ` given","code":"invalid_api_key"}}` + "\n\n"),
			Want:     Want{Kind: inference.KindAuth, Says: "bad key [redacted] given"},
		},
		{
			Name: "error_secret_hidden", About: "an error that quotes the key with a control character in each gap",
			Response: says(`data: {"error":{"message":` + quote("bad key "+strings.Join(strings.Split(apiKey, ""), "\x01")+" given") + `,"code":"invalid_api_key"}}` + "\n\n"),
			Want:     Want{Kind: inference.KindAuth, Says: "bad key [redacted] given"},
		},
		{
			Name: "error_secret_far", About: "an error that quotes the key behind as many spaces as a bound would leave half of it",
			Response: says(`data: {"error":{"message":` + quote(strings.Repeat(" ", 8*inference.MessageLimit-len(apiKey)/2)+apiKey) + `,"code":"invalid_api_key"}}` + "\n\n"),
			Want:     Want{Kind: inference.KindAuth, Says: "invalid_api_key: [redacted]"},
		},
	}
}

// refusals: answers with another status than success.
func refusals() []Quirk {
	refusal := func(name string, status int, code, message string, kind inference.Kind) Quirk {
		return Quirk{
			Name: name, About: message, Response: sends(status, jsonType, errorJSON(code, message)), Want: Want{Kind: kind, Says: message},
		}
	}
	limited := refusal("rate_limited", 429, "rate_limit_exceeded", "Rate limit reached", inference.KindRateLimited)
	limited.Response = limited.Response.with("Retry-After", "7").with("X-Request-Id", "req_1")
	limited.Want.RetryAfter, limited.Want.RequestID = 7*time.Second, "req_1"
	return []Quirk{
		limited,
		refusal("quota", 429, "insufficient_quota", "You exceeded your current quota", inference.KindQuota),
		refusal("payment", 402, "", "Insufficient Balance", inference.KindQuota),
		refusal("auth", 401, "invalid_api_key", "Incorrect API key", inference.KindAuth),
		refusal("forbidden", 403, "", "Country not supported", inference.KindAuth),
		refusal("no_model", 404, "model_not_found", "The model does not exist", inference.KindConfig),
		refusal("overflow", 400, "context_length_exceeded", "Too many tokens", inference.KindContextOverflow),
		refusal("overflow_uncoded", 400, "", "the request exceeds the available context size", inference.KindContextOverflow),
		refusal("too_large", 413, "", "Too large", inference.KindContextOverflow),
		refusal("policy", 400, "content_filter", "The prompt was filtered", inference.KindContentFiltered),
		refusal("bad_request", 400, "invalid_value", "Unknown parameter", inference.KindBadRequest),
		refusal("server_error", 500, "", "Something broke", inference.KindProvider),
		refusal("unavailable", 503, "", "Come back later", inference.KindUnavailable),
		refusal("overloaded", 503, "", "The model is overloaded", inference.KindOverloaded),
		refusal("capacity", 529, "", "At capacity", inference.KindOverloaded),
		refusal("gateway_timeout", 504, "", "Upstream timed out", inference.KindTimeout),
		{
			Name: "gateway_page", About: "a proxy's page", Response: sends(502, htmlType, "<html><h1>502 Bad Gateway</h1>"),
			Want: Want{Kind: inference.KindUnavailable, Says: "HTML page"},
		},
		{
			Name: "refused_list", About: "an error in a list", Response: sends(400, jsonType, `[{"error":{"code":400,"message":"Bad field","status":"INVALID_ARGUMENT"}}]`),
			Want: Want{Kind: inference.KindBadRequest, Says: "Bad field"},
		},
		{
			Name: "refused_detail", About: "an error as detail", Response: sends(422, jsonType, `{"detail":[{"loc":["body"],"msg":"field required"}]}`),
			Want: Want{Kind: inference.KindBadRequest, Says: "field required"},
		},
		{
			Name: "refused_empty", About: "a refusal without a body", Response: Response{Status: 429, Header: map[string]string{"Retry-After-Ms": "1500"}},
			Want: Want{Kind: inference.KindRateLimited, RetryAfter: 1500 * time.Millisecond},
		},
		{
			Name: "refused_hold", About: "a refusal whose body never ends", Large: true,
			Response: Response{
				Status: 500, Header: map[string]string{"Content-Type": "text/plain"}, Parts: bulk("", "no end ", 1, "").Parts, End: EndHold,
			}, Want: Want{Kind: inference.KindProvider, Says: "no end"},
		},
		{
			Name: "redirect", About: "a redirect", Response: Response{Status: 307, Header: map[string]string{"Location": "https://elsewhere.invalid/"}},
			Want: Want{Kind: inference.KindConfig, Says: "redirected"},
		},
	}
}
