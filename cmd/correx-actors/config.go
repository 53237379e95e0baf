package main

import (
	"github.com/correx/correx-actors/wiring"
)

// configFlags choose the server's configuration.
type configFlags struct {
	File string            `name:"config" env:"CORREX_CONFIG" placeholder:"FILE" help:"YAML file with settings (${env})."`
	Set  map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"One setting, such as queue.limit=5; may be repeated."`
}

// load puts flags, environment and file together. Shorthands are flags of their own for a setting; "" = not given.
func (f configFlags) load(a *app, shorthands map[string]string) (wiring.Loaded, error) {
	flags := make(map[string]string, len(f.Set)+len(shorthands))
	for key, value := range f.Set {
		flags[key] = value
	}
	for key, value := range shorthands {
		if value != "" {
			flags[key] = value
		}
	}
	loaded, err := wiring.Load(wiring.Sources{Flags: flags, Environ: a.environ, File: f.File})
	if err != nil {
		return loaded, &usageError{err}
	}
	loaded.Config.Version = buildVersion().Version
	return loaded, nil
}

type configCmd struct {
	Show   configShowCmd   `cmd:"" help:"Show the effective configuration; secrets are hidden."`
	Schema configSchemaCmd `cmd:"" help:"Show the JSON schema of configuration files."`
}

type configShowCmd struct{ configFlags }

// Run implements the command.
func (c *configShowCmd) Run(a *app) error {
	loaded, err := c.load(a, nil)
	if err != nil {
		return err
	}
	for _, warning := range loaded.Warnings {
		a.say("%s", warning)
	}
	if a.json {
		return a.writeJSON(loaded.Config)
	}
	text, err := loaded.Config.YAML()
	if err != nil {
		return err
	}
	return a.write("%s", text)
}

type configSchemaCmd struct{}

// Run implements the command.
func (configSchemaCmd) Run(a *app) error {
	schema, err := wiring.Schema()
	if err != nil {
		return err
	}
	return a.writeJSON(schema)
}
