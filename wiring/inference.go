package wiring

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/offline"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/inference/telemetry"
	"github.com/correx/correx-actors/messages"
)

var inferring = fx.Provide(newProvider, newRouter, func(r *route.Router) inference.Router { return r })

// newProvider makes the provider of turns that name no model. The others are made with the router.
func newProvider(lc fx.Lifecycle, cfg Config, log *slog.Logger) (inference.Provider, error) {
	first := cfg.backends()[0]
	p, err := cfg.open(lc, first, log)
	if err != nil {
		return nil, err
	}
	if cfg.Answering() == ProviderOffline {
		log.LogAttrs(context.Background(), slog.LevelInfo, "no model is configured, the embedded offline engine answers",
			slog.String(messages.AttrProvider, offline.Name))
		return p, nil
	}
	model := cfg.OpenAI.Model
	if len(first.Models) > 0 {
		model = first.Models[0].Name
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "a model answers",
		slog.String(messages.AttrProvider, p.Name()), slog.String(messages.AttrModel, model))
	return p, nil
}

// open makes a provider that is closed with the app.
func (c Config) open(lc fx.Lifecycle, p Provider, log *slog.Logger) (inference.Provider, error) {
	made, err := c.backend(p, log)
	if err != nil {
		return nil, &StartError{Part: "provider " + p.Name, Err: err}
	}
	if closer, ok := made.(interface{ Close() }); ok {
		lc.Append(fx.StopHook(closer.Close))
	}
	return made, nil
}

// newRouter watches each provider's calls, also those of one that a host has put in the place of the first.
func newRouter(
	lc fx.Lifecycle, cfg Config, first inference.Provider, calls *telemetry.Calls, log *slog.Logger,
) (*route.Router, error) {
	list, made := cfg.backends(), []inference.Provider{first}
	for _, p := range list[1:] {
		further, err := cfg.open(lc, p, log)
		if err != nil {
			return nil, err
		}
		made = append(made, further)
	}
	for i, p := range list {
		made[i] = calls.Watch(made[i], cfg.modelsOf(p)...)
	}
	router, err := route.New(cfg.routing(list, made, log))
	if err != nil {
		return nil, &StartError{Part: "the inference router", Err: err}
	}
	return router, nil
}
