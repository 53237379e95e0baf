package doctor

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference/openai"
)

// Profile is what the product's configuration should say of the endpoint, its key apart.
type Profile struct {
	// Name is made of the host.
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	Model   string `json:"model"`
	// Limits; 0 = none was found.
	Concurrent        int `json:"concurrent,omitempty"`
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerMinute   int `json:"tokens_per_minute,omitempty"`
	// FirstToken and Token are the longest waits that were seen, for a first token and within an answer.
	FirstToken time.Duration `json:"first_token_ns"`
	Token      time.Duration `json:"token_ns"`
}

// slowFirstToken: waits above it are warned of.
const slowFirstToken = 15 * time.Second

func (e *exam) profile() *Profile {
	if e.answers == 0 {
		return nil
	}
	return &Profile{
		Name: nameOf(e.config.BaseURL), BaseURL: withoutUser(e.config.BaseURL), Model: e.model,
		Concurrent: e.concurrent, RequestsPerMinute: perMinute(e.whole.Response.Requests), TokensPerMinute: perMinute(e.whole.Response.Tokens),
		FirstToken: slices.Max(append(e.first, 0)), Token: e.silence,
	}
}

// perMinute gives a limit if it is one of a minute: headers do not say of what time they are, but how fast it fills again.
func perMinute(limit openai.RateLimit) int {
	const tolerance = 0.2
	used := limit.Limit - limit.Remaining
	if !limit.Known || limit.Limit <= 0 || used <= 0 || limit.Reset <= 0 {
		return 0
	}
	refilled := float64(used) / limit.Reset.Minutes()
	if refilled < float64(limit.Limit)*(1-tolerance) || refilled > float64(limit.Limit)*(1+tolerance) {
		return 0
	}
	return int(limit.Limit)
}

// nameOf gives a word for the endpoint: "groq" of https://api.groq.com/openai/v1.
func nameOf(base string) string {
	parsed, err := url.Parse(base)
	if err != nil {
		return "provider"
	}
	host := parsed.Hostname()
	if host == "localhost" || net.ParseIP(host) != nil {
		return "local"
	}
	labels := strings.Split(host, ".")
	if len(labels) > 2 {
		labels = labels[len(labels)-2:]
	}
	return labels[0]
}

func withoutUser(base string) string {
	parsed, err := url.Parse(base)
	if err != nil {
		return ""
	}
	parsed.User = nil
	return parsed.String()
}

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

// short gives a duration with the digits that people read.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
