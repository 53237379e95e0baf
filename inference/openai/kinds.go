package openai

import (
	"net/http"
	"strings"

	"github.com/correx/correx-actors/inference"
)

// specific maps names of errors (a code or a type, in lower case) that tell more than the HTTP status with which they come.
// From OpenAI, Azure, Anthropic's compatible endpoint, DeepSeek, Moonshot, llama.cpp, vLLM and LiteLLM.
var specific = map[string]inference.Kind{
	"context_length_exceeded":      inference.KindContextOverflow,
	"contextwindowexceedederror":   inference.KindContextOverflow,
	"exceed_context_size_error":    inference.KindContextOverflow,
	"request_too_large":            inference.KindContextOverflow,
	"string_above_max_length":      inference.KindContextOverflow,
	"tokens_limit_reached":         inference.KindContextOverflow,
	"content_filter":               inference.KindContentFiltered,
	"content_policy_violation":     inference.KindContentFiltered,
	"contentpolicyviolationerror":  inference.KindContentFiltered,
	"data_inspection_failed":       inference.KindContentFiltered,
	"responsibleaipolicyviolation": inference.KindContentFiltered,
	"invalid_prompt":               inference.KindContentFiltered,
	"billing_error":                inference.KindQuota,
	"billing_hard_limit_reached":   inference.KindQuota,
	"billing_not_active":           inference.KindQuota,
	"exceeded_current_quota_error": inference.KindQuota,
	"insufficient_quota":           inference.KindQuota,
	"account_deactivated":          inference.KindAuth,
	"authentication_error":         inference.KindAuth,
	"authenticationerror":          inference.KindAuth,
	"invalid_api_key":              inference.KindAuth,
	"invalid_authentication_error": inference.KindAuth,
	"permission_denied_error":      inference.KindAuth,
	"permission_error":             inference.KindAuth,
	"deploymentnotfound":           inference.KindConfig,
	"model_not_found":              inference.KindConfig,
	"not_found_error":              inference.KindConfig,
	"resource_not_found_error":     inference.KindConfig,
	"rate_limit_error":             inference.KindRateLimited,
	"rate_limit_exceeded":          inference.KindRateLimited,
	"rate_limit_reached_error":     inference.KindRateLimited,
	"ratelimiterror":               inference.KindRateLimited,
	"engine_overloaded":            inference.KindOverloaded,
	"engine_overloaded_error":      inference.KindOverloaded,
	"insufficient_system_resource": inference.KindOverloaded,
	"overloaded_error":             inference.KindOverloaded,
	"server_overloaded":            inference.KindOverloaded,
	"slow_down":                    inference.KindOverloaded,
	"timeout":                      inference.KindTimeout,
	"timeout_error":                inference.KindTimeout,
	"service_unavailable":          inference.KindUnavailable,
	"serviceunavailableerror":      inference.KindUnavailable,
}

// generic maps names that are used for anything: they count only where there is no status.
var generic = map[string]inference.Kind{
	"badrequesterror":       inference.KindBadRequest,
	"invalid_request_error": inference.KindBadRequest,
}

// phrases are for servers that name nothing: parts of messages, in lower case.
var phrases = []struct {
	part string
	kind inference.Kind
}{
	{"maximum context length", inference.KindContextOverflow},
	{"context window", inference.KindContextOverflow},
	{"available context size", inference.KindContextOverflow},
	{"prompt is too long", inference.KindContextOverflow},
	{"exceeded your current quota", inference.KindQuota},
	{"insufficient balance", inference.KindQuota},
	{"credit balance is too low", inference.KindQuota},
	{"overloaded", inference.KindOverloaded},
}

// kindOf classifies a problem that came with an HTTP status: by the name of the error, by its words, by its status.
func kindOf(status int, p problem) inference.Kind {
	code, kind := strings.ToLower(p.code), strings.ToLower(p.kind)
	for _, name := range []string{code, kind} {
		if found, ok := specific[name]; ok {
			return found
		}
	}
	message := strings.ToLower(p.message)
	for _, phrase := range phrases {
		if strings.Contains(message, phrase.part) {
			return phrase.kind
		}
	}
	if p.status != 0 {
		status = p.status
	}
	if status >= http.StatusMultipleChoices {
		return kindOfStatus(status)
	}
	for _, name := range []string{code, kind} {
		if found, ok := generic[name]; ok {
			return found
		}
	}
	return inference.KindProvider
}

func kindOfStatus(status int) inference.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return inference.KindAuth
	case http.StatusPaymentRequired:
		return inference.KindQuota
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		// The base URL or the model is wrong.
		return inference.KindConfig
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return inference.KindTimeout
	case http.StatusRequestEntityTooLarge:
		return inference.KindContextOverflow
	case http.StatusTooManyRequests:
		return inference.KindRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return inference.KindUnavailable
	case statusOverloaded:
		return inference.KindOverloaded
	}
	switch {
	case status < http.StatusBadRequest:
		// A redirect: the base URL is wrong, and following it would send the request elsewhere.
		return inference.KindConfig
	case status < http.StatusInternalServerError:
		return inference.KindBadRequest
	case status > statusCloud:
		return inference.KindUnavailable
	}
	return inference.KindProvider
}

const (
	// statusOverloaded is used by Anthropic and others for "at capacity".
	statusOverloaded = 529
	// statusCloud: above it stand the codes of reverse proxies for an origin that is not reached.
	statusCloud = 519
)
