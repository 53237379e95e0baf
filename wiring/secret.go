package wiring

import (
	"log/slog"
	"strconv"
	"strings"
)

// hidden stands for a secret wherever it would be shown.
const hidden = "********"

// Secret is a setting that is never shown: printed, logged or marshaled it is a row of stars, or "" if it is not set.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// URL is an address that may hold a user and password: printed, logged or marshaled these are a row of stars.
type URL string

// String hides the user and password. It takes what is no address as well, since faults show their values.
func (u URL) String() string {
	scheme, rest, found := strings.Cut(string(u), "://")
	if !found {
		scheme, rest = "", string(u)
	} else {
		scheme += "://"
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return string(u)
	}
	return scheme + hidden + rest[at:]
}

// GoString hides the user and password from %#v.
func (u URL) GoString() string { return strconv.Quote(u.String()) }

// MarshalText hides the user and password from JSON and YAML.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue hides the user and password from logs.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }
