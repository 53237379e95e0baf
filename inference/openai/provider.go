// Package openai drives any server with an OpenAI-compatible chat completions or responses endpoint, through the client library
// go-openai.
//
// The library takes a broken stream for a finished one in many cases: a cut connection, a login page, an error object that
// does not start as it expects. So it reads through a guard (guard.go, events.go, feed.go): an HTTP doer that checks what came,
// parses the stream by the SSE standard and hands on canonical lines only. What is no answer becomes an *inference.Error of
// the right kind; an empty success does not exist.
package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/sashabaranov/go-openai"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// API is the endpoint of a server that is called.
type API string

// APIs.
const (
	// APIChat is chat/completions: each call brings the whole conversation along.
	APIChat API = "chat"
	// APIResponses is responses: the server keeps the conversation, and each answer is a token with which it goes on.
	APIResponses API = "responses"
)

// Valid says whether a is one of the APIs.
func (a API) Valid() bool {
	switch a {
	case APIChat, APIResponses:
		return true
	}
	return false
}

// BaseURL is OpenAI's own endpoint.
const BaseURL = "https://api.openai.com/v1"

const (
	connectTimeout = 10 * time.Second
	maxEventBytes  = 4 << 20
	maxBodyBytes   = 256 << 20
)

// Config of a provider. Of its fields only Model matters to most; the zero value of each means what its comment says.
type Config struct {
	// Name in logs, routes and errors; "" = "openai".
	Name string
	// BaseURL up to and without "/chat/completions" or "/responses"; "" = BaseURL.
	BaseURL string
	// API of its calls; "" = APIChat.
	API API
	// APIKey is sent as bearer token; "" = none is sent, as local servers like it. Never logged, cut out of every error.
	APIKey string
	// Model for requests that name none; "" = such requests fail with KindConfig.
	Model string
	// HTTPClient makes the calls; nil = one made for many long streams (see NewHTTPClient). One with a Timeout would cut
	// every answer that takes longer.
	HTTPClient *http.Client
	// ConnectTimeout bounds dialing and the TLS handshake, each; 0 = 10 s. Unused with an HTTPClient.
	ConnectTimeout time.Duration
	// MaxEventBytes bounds one event of a stream, and an answer that comes as one JSON document; 0 = 4 MiB.
	MaxEventBytes int
	// MaxBodyBytes bounds a whole stream, which is never held in memory; 0 = 256 MiB.
	MaxBodyBytes int64
	// Observe is told of the headers of every answer and refusal, on the goroutine of its Infer and with its context; nil = nobody is.
	Observe func(context.Context, Response)
	// Logger gets one debug line for each call; nil = none.
	Logger *slog.Logger
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	var faults []error
	if base, err := url.Parse(c.BaseURL); c.BaseURL != "" && (err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https") {
		faults = append(faults, errors.New("base URL is not an absolute http or https URL"))
	}
	if base, err := url.Parse(c.BaseURL); err == nil && (base.RawQuery != "" || base.ForceQuery || base.Fragment != "") {
		// Paths are appended to it; and what stands there is as a rule a key, which is not hidden where URLs are shown.
		faults = append(faults, errors.New("base URL has a query or a fragment"))
	}
	if c.API != "" && !c.API.Valid() {
		faults = append(faults, fmt.Errorf("API is %q, want chat or responses", c.API))
	}
	if strings.ContainsFunc(strings.TrimSpace(c.APIKey), unicode.IsControl) {
		faults = append(faults, errors.New("API key holds a control character"))
	}
	if c.ConnectTimeout < 0 || c.MaxEventBytes < 0 || c.MaxBodyBytes < 0 {
		faults = append(faults, errors.New("a timeout or limit is negative"))
	}
	return errors.Join(faults...)
}

func (c Config) withFallbacks() Config {
	if c.Name == "" {
		c.Name = "openai"
	}
	if c.BaseURL == "" {
		c.BaseURL = BaseURL
	}
	// Keys often come from a file that ends in a newline.
	c.APIKey = strings.TrimSpace(c.APIKey)
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.HTTPClient == nil {
		c.HTTPClient = NewHTTPClient(c.ConnectTimeout)
	}
	if c.MaxEventBytes == 0 {
		c.MaxEventBytes = maxEventBytes
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = maxBodyBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Provider is an OpenAI-compatible backend. Safe for concurrent use.
type Provider struct {
	config Config
}

var _ inference.Provider = (*Provider)(nil)

// New makes a provider; it does not connect. Errors: *inference.Error of KindConfig.
func New(c Config) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, &inference.Error{
			Kind: inference.KindConfig, Provider: c.Name, Message: inference.CleanMessage(err.Error(), c.APIKey), Err: err,
		}
	}
	return &Provider{config: c.withFallbacks()}, nil
}

// Name implements inference.Provider.
func (p *Provider) Name() string { return p.config.Name }

// CallsTools implements inference.ToolCaller: models of the chat API can.
func (p *Provider) CallsTools() bool { return p.config.API != APIResponses }

// Close drops idle connections. Calls in progress are not touched.
func (p *Provider) Close() { p.config.HTTPClient.CloseIdleConnections() }

// Infer implements inference.Provider. With an error the Completion holds what was known by then: model and usage.
func (p *Provider) Infer(ctx context.Context, req inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	started := time.Now()
	how, err := p.exchange(req)
	if err != nil {
		return inference.Completion{}, err
	}
	c := &call{ctx: ctx, name: p.config.Name, report: report}
	completion, err := c.run(p.config, how)
	outcome := "completed"
	if err != nil {
		outcome = string(inference.KindOf(err))
	}
	p.config.Logger.LogAttrs(ctx, slog.LevelDebug, "model call ended",
		slog.String(messages.AttrProvider, p.config.Name),
		slog.String(messages.AttrModel, how.model),
		slog.String(messages.AttrRun, req.RunID),
		slog.String(messages.AttrOutcome, outcome),
		slog.Int64(messages.AttrBytes, c.guard.received()),
		slog.Int64(messages.AttrDuration, time.Since(started).Milliseconds()))
	return completion, err
}

// exchange is the call of the configured API for a request. Errors are found before any call is made.
func (p *Provider) exchange(req inference.Request) (exchange, error) {
	if p.config.API == APIResponses {
		if len(req.Rounds) > 0 { // the plan goes on with a provider that can
			return exchange{}, fault(inference.KindConfig, p.config.Name, "tools are called by models of the chat API only")
		}
		request, err := p.responseRequest(req)
		return responses(request), err
	}
	request, err := p.request(req)
	return chat(request), err
}

// client makes the library's client for one call. It is a few words of memory; what lasts is the HTTP client below it.
func (c Config) client(doer openai.HTTPDoer) *openai.Client {
	config := openai.DefaultConfig(c.APIKey)
	config.BaseURL = c.BaseURL
	config.HTTPClient = doer
	return openai.NewClientWithConfig(config)
}

// clean makes what the server sent fit to be shown.
func (c Config) clean(text string) string { return inference.CleanMessage(text, c.APIKey) }

// cleanName is clean for names of things.
func (c Config) cleanName(text string) string { return inference.Bound(c.clean(text), maxName) }

// fault makes an error of this provider; format must not quote what the server sent.
func fault(kind inference.Kind, name, format string, args ...any) *inference.Error {
	return &inference.Error{Kind: kind, Provider: name, Message: inference.CleanMessage(fmt.Sprintf(format, args...))}
}
