package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/offline"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/inference/tokenizer"
)

// Provider is one more OpenAI-compatible provider. Only a file can name them: they are a list of objects.
type Provider struct {
	Name     string         `koanf:"name" doc:"name in fallbacks, reasons and logs"`
	BaseURL  URL            `koanf:"base_url" doc:"endpoint up to and without /chat/completions or /responses" default:"https://api.openai.com/v1"`
	API      string         `koanf:"api" enum:"chat,responses" doc:"chat sends the conversation with each call; with responses the provider keeps it" default:"chat"`
	APIKey   Secret         `koanf:"api_key" doc:"key, or the path of a file with it as api_key_file; a local server may need none"`
	Models   []Model        `koanf:"models" doc:"models it serves, the one for turns that name none first; without the list it takes every name that no other provider lists"`
	Bytes    float64        `koanf:"bytes_per_token" min:"0" max:"16" doc:"how many bytes a token is reckoned to have where the vocabulary is not known; 0 is 4"`
	Limits   ProviderLimits `koanf:"limits"`
	Fallback []string       `koanf:"fallback" doc:"who takes over when it cannot answer, in order: PROVIDER or PROVIDER/MODEL; openai and offline are known too"`
}

// Model is a model of a provider.
type Model struct {
	Name      string   `koanf:"name" doc:"the provider's own name"`
	Aliases   []string `koanf:"aliases" doc:"further names under which turns may ask for it"`
	Window    int      `koanf:"window" min:"0" doc:"its window in tokens; 0 is what is known of the name"`
	MaxOutput int      `koanf:"max_output" min:"0" doc:"longest answer in tokens, which prompts leave free in the window; 0 is the provider's limit, and conversation.answer_reserve"`
	Bytes     float64  `koanf:"bytes_per_token" min:"0" max:"16" doc:"how many bytes a token is reckoned to have, also if the vocabulary is known; 0 counts exactly where it is, else as its provider says"`
}

// ProviderLimits bound the calls of one provider.
type ProviderLimits struct {
	Concurrent        int `koanf:"concurrent" min:"0" doc:"calls at once; 0 is no limit"`
	RequestsPerMinute int `koanf:"requests_per_minute" min:"0" doc:"calls a minute; 0 is no limit"`
	TokensPerMinute   int `koanf:"tokens_per_minute" min:"0" doc:"tokens a minute, of prompts and answers; 0 is no limit"`
}

// Retry is what follows a call that failed.
type Retry struct {
	Limit   int           `koanf:"limit" min:"0" max:"10" doc:"further calls that a provider gets for one answer before its fallback takes over"`
	MaxWait time.Duration `koanf:"max_wait" min:"0s" doc:"longest wait before a call; a provider that asks for more is passed over"`
}

// Breaker is when a provider is left alone.
type Breaker struct {
	Failures int           `koanf:"failures" min:"1" doc:"failures in a row after which a provider is paused"`
	Pause    time.Duration `koanf:"pause" min:"1ms" doc:"how long it is paused; then one call tries it"`
}

func standardRouting() (Retry, Breaker) {
	rules, breaker := route.Standard()
	return Retry{Limit: rules.Retries, MaxWait: rules.MaxWait}, Breaker{Failures: breaker.Failures, Pause: breaker.Pause}
}

// backends are the providers of the catalogue in their order, without what calls them. The provider of its own settings stands
// in front where it is asked for, and behind, for its own model alone, where only a fallback names it: what a file lists must
// not be sent elsewhere because a key happens to be in the environment.
func (c Config) backends() []Provider {
	if len(c.Providers) == 0 {
		return []Provider{{Name: c.Answering()}}
	}
	list := slices.Clone(c.Providers)
	if c.Provider != ProviderAuto {
		list = slices.Insert(list, 0, Provider{Name: c.Provider})
	}
	for _, own := range []Provider{
		{Name: ProviderOpenAI, Models: []Model{{Name: c.OpenAI.Model}}},
		{Name: ProviderOffline, Models: []Model{{Name: ProviderOffline}}},
	} {
		named := slices.ContainsFunc(list, func(p Provider) bool { return p.Name == own.Name })
		if !named && slices.ContainsFunc(list, func(p Provider) bool { return p.falls(own.Name) }) {
			list = append(list, own)
		}
	}
	return list
}

// falls says whether a provider is among the fallbacks.
func (p Provider) falls(name string) bool {
	return slices.ContainsFunc(p.Fallback, func(f string) bool { return f == name || strings.HasPrefix(f, name+"/") })
}

// own says whether a provider of backends is not from the list but has settings of its own.
func (c Config) own(p Provider) bool {
	return !slices.ContainsFunc(c.Providers, func(q Provider) bool { return q.Name == p.Name })
}

// backend makes what calls a provider.
func (c Config) backend(p Provider, log *slog.Logger) (inference.Provider, error) {
	switch {
	case c.own(p) && p.Name == ProviderOffline:
		return offline.New(offline.Config{Delay: c.Offline.Delay}), nil
	case c.own(p):
		return openai.New(c.openAI(log))
	}
	return openai.New(c.openAIOf(p, log))
}

func (c Config) openAIOf(p Provider, log *slog.Logger) openai.Config {
	own := openai.Config{
		Name: p.Name, BaseURL: string(p.BaseURL), API: openai.API(p.API), APIKey: string(p.APIKey),
		ConnectTimeout: c.Runs.ConnectTimeout, Logger: log,
	}
	if len(p.Models) > 0 {
		own.Model = p.Models[0].Name
	}
	return own
}

// modelsOf gives the names of models that the configuration has for a provider.
func (c Config) modelsOf(p Provider) []string {
	var models []string
	for _, m := range p.Models {
		models = append(models, m.Name)
	}
	switch {
	case c.own(p) && p.Name == ProviderOpenAI:
		models = append(models, c.OpenAI.Model)
	case c.own(p) && p.Name == ProviderOffline:
		models = append(models, offline.Name)
	}
	return models
}

// routing is the router's configuration over backends that were made in their order.
func (c Config) routing(list []Provider, made []inference.Provider, log *slog.Logger) route.Config {
	routes := route.Config{
		Rules:   route.Rules{Retries: c.Retry.Limit, MaxWait: c.Retry.MaxWait},
		Breaker: route.Breaker{Failures: c.Breaker.Failures, Pause: c.Breaker.Pause},
		Logger:  log,
	}
	for i, p := range list {
		entry := route.Provider{Name: p.Name, Backend: made[i], Limits: route.Limits(p.Limits), Fallback: p.Fallback}
		if p.Bytes > 0 {
			entry.Counter = tokenizer.Estimating(p.Bytes)
		}
		for _, m := range p.Models {
			entry.Models = append(entry.Models, m.route())
		}
		if c.own(p) && p.Name == ProviderOpenAI {
			entry.Standard = c.OpenAI.Model
		}
		routes.Providers = append(routes.Providers, entry)
	}
	return routes
}

func (m Model) route() route.Model {
	entry := route.Model{Name: m.Name, Aliases: m.Aliases, Window: m.Window, MaxOutput: m.MaxOutput}
	if m.Bytes > 0 {
		entry.Counter = tokenizer.Factor(m.Bytes)
	}
	return entry
}

// engines are the providers that keep conversations.
func (c Config) engines() []string {
	var names []string
	for _, p := range c.backends() {
		api := p.API
		if c.own(p) && p.Name == ProviderOpenAI {
			api = c.OpenAI.API
		}
		if api == string(openai.APIResponses) {
			names = append(names, p.Name)
		}
	}
	return names
}

// checkProviders says what is wrong with the list; nil = nothing.
func (c Config) checkProviders() error {
	var faults []error
	for i, p := range c.Providers {
		name := cmp.Or(p.Name, fmt.Sprintf("number %d", i+1))
		switch {
		case p.Name == "":
			faults = append(faults, fmt.Errorf("provider %s has no name", name))
		case strings.ContainsAny(p.Name, "/ \t\n"):
			faults = append(faults, fmt.Errorf("the name of provider %q holds a slash or a space", name))
		case p.Name == ProviderAuto || p.Name == ProviderOffline:
			faults = append(faults, fmt.Errorf("%q is no name for a provider: it means the embedded choice", name))
		}
		if err := c.openAIOf(p, nil).Validate(); err != nil {
			faults = append(faults, fmt.Errorf("provider %s: %w", name, err))
		}
		if p.falls(ProviderOpenAI) && !c.openAIConfigured() {
			if !slices.ContainsFunc(c.Providers, func(q Provider) bool { return q.Name == ProviderOpenAI }) {
				faults = append(faults, fmt.Errorf("provider %s falls back to openai, but neither openai.api_key nor openai.base_url is set", name))
			}
		}
	}
	if len(faults) > 0 || len(c.Providers) == 0 {
		return errors.Join(faults...)
	}
	list := c.backends()
	made := make([]inference.Provider, len(list))
	for i := range list {
		made[i] = offline.New(offline.Config{}) // only the names matter here
	}
	routes := c.routing(list, made, nil)
	routes.Rules, routes.Breaker = route.Standard()
	return routes.Validate()
}
