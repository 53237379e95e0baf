package openai

import (
	"net"
	"net/http"
	"time"
)

const (
	keepAlive       = 30 * time.Second
	idleConnections = 256
	idleTime        = 90 * time.Second
	// writeBuffer holds the head of a request, whose body passes it by; each open stream keeps one.
	writeBuffer = 1 << 10
)

// NewHTTPClient makes a client for many long streams at once: bounded dialing and TLS handshake but no limit on the whole
// call (callers end it through its context), proxies from the environment, as many idle connections to one host as sessions
// may stream at once. It follows no redirect: a POST would become a GET, and a redirected base URL is an error to be told.
// Compression is off since a compressor in between holds tokens back until its block is full.
func NewHTTPClient(connectTimeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlive}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        2 * idleConnections,
			MaxIdleConnsPerHost: idleConnections,
			IdleConnTimeout:     idleTime,
			TLSHandshakeTimeout: connectTimeout,
			DisableCompression:  true,
			WriteBufferSize:     writeBuffer,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
