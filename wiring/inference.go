package wiring

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/offline"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/inference/tokenizer"
	"github.com/correx/correx-actors/messages"
)

var inferring = fx.Provide(newProvider, newRouter)

func newProvider(lc fx.Lifecycle, cfg Config, log *slog.Logger) (inference.Provider, error) {
	if cfg.Answering() == ProviderOffline {
		log.LogAttrs(context.Background(), slog.LevelInfo, "no model is configured, the embedded offline engine answers",
			slog.String(messages.AttrProvider, offline.Name))
		return offline.New(offline.Config{Delay: cfg.Offline.Delay}), nil
	}
	p, err := openai.New(cfg.openAI(log))
	if err != nil {
		return nil, &StartError{Part: "the provider", Err: err}
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "a model answers",
		slog.String(messages.AttrProvider, p.Name()), slog.String(messages.AttrModel, cfg.OpenAI.Model))
	lc.Append(fx.StopHook(p.Close))
	return p, nil
}

func newRouter(p inference.Provider) (inference.Router, error) {
	table, err := inference.NewTable(p)
	if err != nil {
		return nil, &StartError{Part: "the inference router", Err: err}
	}
	return table, nil
}

// counter gives the token counter of a model; a turn that names none is answered by the provider's own model.
func (c Config) counter(model string) contextpack.TokenCounter {
	if model == "" && c.Answering() == ProviderOpenAI {
		model = c.OpenAI.Model
	}
	return tokenizer.For(model)
}
