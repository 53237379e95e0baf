package openai

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Response is what the headers of an answer or a refusal tell.
type Response struct {
	Status      int
	ContentType string
	// RequestID is the provider's, for its support; "" = it gives none.
	RequestID string
	// RetryAfter is what the provider asks for, 0 if it does not.
	RetryAfter time.Duration
	// Requests and Tokens are the rate limits.
	Requests RateLimit
	Tokens   RateLimit
}

// RateLimit is one of a provider's rate limits as it stands. Known false means that the provider did not say.
type RateLimit struct {
	// Limit is 0 where only the rest is told.
	Limit     int64
	Remaining int64
	// Reset is how long until it is whole again; 0 = not told.
	Reset time.Duration
	Known bool
}

// responseOf reads the headers.
func (c Config) responseOf(status int, header http.Header) Response {
	return Response{
		Status: status, ContentType: c.cleanName(header.Get("Content-Type")),
		RequestID: c.requestID(header), RetryAfter: retryAfter(header),
		Requests: rateLimit(header, "Requests"), Tokens: rateLimit(header, "Tokens"),
	}
}

// rateLimit reads the headers of OpenAI and of what is compatible to it, then those of Anthropic, then for requests those that
// do not say of what they are.
func rateLimit(header http.Header, of string) RateLimit {
	names := [][3]string{
		{"X-Ratelimit-Limit-" + of, "X-Ratelimit-Remaining-" + of, "X-Ratelimit-Reset-" + of},
		{"Anthropic-Ratelimit-" + of + "-Limit", "Anthropic-Ratelimit-" + of + "-Remaining", "Anthropic-Ratelimit-" + of + "-Reset"},
	}
	if of == "Requests" {
		names = append(names, [3]string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
			[3]string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"})
	}
	for _, name := range names {
		remaining, err := strconv.ParseInt(header.Get(name[1]), 10, 64)
		if err != nil {
			continue
		}
		// What cannot be read of the others is as if it were not told.
		limit, _ := strconv.ParseInt(header.Get(name[0]), 10, 64)
		return RateLimit{Limit: max(limit, 0), Remaining: max(remaining, 0), Reset: reset(header.Get(name[2])), Known: true}
	}
	return RateLimit{}
}

// reset reads a time until something in the forms that are in use: "6m0.5s", seconds, seconds or milliseconds since 1970, a
// date.
func reset(text string) time.Duration {
	const (
		yearSeconds = 365 * 24 * 3600
		epochMillis = 1e11
	)
	var wait time.Duration
	if d, err := time.ParseDuration(text); err == nil {
		wait = d
	} else if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n > epochMillis:
			wait = time.Until(time.UnixMilli(int64(min(n, 1e15))))
		case n > yearSeconds:
			wait = time.Until(time.Unix(int64(n), 0))
		default:
			wait = seconds(n)
		}
	} else if date, err := time.Parse(time.RFC3339, text); err == nil {
		wait = time.Until(date)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// encoded is the encoding of a body that was to have none; "" = it has none.
func (c Config) encoded(header http.Header) string {
	encoding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	if encoding == "identity" {
		return ""
	}
	return c.cleanName(encoding)
}
