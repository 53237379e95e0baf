package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/correx/correx-actors/messages"
)

const (
	headerRequestID = "X-Request-Id"
	attrRequest     = "request_id"
	attrStack       = "stack"
	maxRequestID    = 128
	localhost       = "localhost"
)

// origins knows which web pages may use the server. Without authentication this is what keeps any page that a user has open
// from talking to the server on the same machine.
type origins struct {
	allowed map[string]bool // origins
	hosts   map[string]bool // their hosts
}

func newOrigins(configured []string) origins {
	o := origins{allowed: make(map[string]bool), hosts: make(map[string]bool)}
	for _, origin := range configured {
		o.allowed[strings.ToLower(origin)] = true
		if u, err := parseOrigin(origin); err == nil {
			o.hosts[strings.ToLower(u.Hostname())] = true
		}
	}
	return o
}

// refuse says why a request may not come in; "" = it may.
func (o origins) refuse(r *http.Request) string {
	if !o.knowsHost(r.Host) {
		return fmt.Sprintf("host %.200q is not served: use an address, localhost, or configure it as an origin", r.Host)
	}
	origin := r.Header.Get("Origin")
	if origin == "" || o.allowed[strings.ToLower(origin)] {
		return ""
	}
	if u, err := parseOrigin(origin); err == nil && strings.EqualFold(u.Host, r.Host) {
		return ""
	}
	return fmt.Sprintf("origin %.200q is not allowed", origin)
}

// knowsHost refuses names that somebody's DNS may point here (DNS rebinding): for them the page that attacks is of the same
// origin.
func (o origins) knowsHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "" || host == localhost || strings.HasSuffix(host, "."+localhost) || o.hosts[host] {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// guarded refuses requests of foreign pages.
func (g *Gateway) guarded(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	for _, origin := range g.config.Origins {
		_ = crossOrigin.AddTrustedOrigin(origin) // Validate has parsed it
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reason := g.origins.refuse(r)
		if reason == "" && crossOrigin.Check(r) != nil {
			reason = "cross-origin requests are not allowed"
		}
		if reason != "" {
			respondError(w, messages.Fail(messages.CodeForbidden, reason))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// observed gives each request an id, logs it, and keeps a panic in it from being more than its own failure (I13).
func (g *Gateway) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		id := r.Header.Get(headerRequestID)
		if !validRequestID(id) {
			id = rand.Text()[:16]
		}
		w.Header().Set(headerRequestID, id)
		rec := &recorder{ResponseWriter: w}
		log := g.log.With(slog.String(attrRequest, id))
		defer func() {
			if reason := recover(); reason != nil {
				panicked(r.Context(), log, rec, reason)
			}
			log.LogAttrs(r.Context(), slog.LevelDebug, "request served",
				slog.String(messages.AttrRoute, r.Pattern), slog.Int(messages.AttrStatus, rec.status),
				slog.Int64(messages.AttrBytes, rec.bytes), slog.Int64(messages.AttrDuration, time.Since(begun).Milliseconds()))
		}()
		limitBody(w, r)
		next.ServeHTTP(rec, r)
	})
}

func panicked(ctx context.Context, log *slog.Logger, rec *recorder, reason any) {
	if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(reason) // net/http's way to cut a response
	}
	log.LogAttrs(ctx, slog.LevelError, "request panicked",
		slog.Any(messages.AttrReason, reason), slog.String(attrStack, string(debug.Stack())))
	if rec.status != 0 {
		panic(http.ErrAbortHandler) // the response has begun: the client must not take it for whole
	}
	respondError(rec, messages.Fail(messages.CodeInternal, "internal error"))
}

func validRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find what is below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
