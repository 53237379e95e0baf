package main

import (
	"runtime/debug"
)

// build is what this binary is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func buildVersion() build {
	b := build{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = info.Main.Version, info.GoVersion
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(a *app) error {
	b := buildVersion()
	if a.json {
		return a.writeJSON(b)
	}
	text := "correx-actors " + b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
	}
	return a.write("%s, %s\n", text, b.Go)
}
