package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/correx/correx-actors/wiring"
)

type serveCmd struct {
	configFlags

	Listen    string `placeholder:"HOST:PORT" help:"Address to listen on (CORREX_LISTEN, 127.0.0.1:7711); port 0 picks a free one."`
	DataDir   string `placeholder:"DIR" help:"Folder of the journal (CORREX_DATA_DIR)."`
	Provider  string `placeholder:"NAME" help:"Who answers: auto, openai or offline (CORREX_PROVIDER)."`
	ReadyFile string `placeholder:"FILE" help:"Write the server's URL to this file once it serves."`
}

// errNow ends a stop that a second signal cut short.
var errNow = errors.New("stopped at once by a second signal; what was open goes on after the next start")

// Run implements the command.
func (s *serveCmd) Run(a *app) error {
	loaded, err := s.load(a, map[string]string{"listen": s.Listen, "data_dir": s.DataDir, "provider": s.Provider})
	if err != nil {
		return err
	}
	for _, warning := range loaded.Warnings {
		a.say("%s", warning)
	}
	// Two: the second one must not be lost while the first is handled.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	server, err := wiring.NewServer(loaded.Config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := server.Start(ctx); err != nil {
		return err
	}
	url := "http://" + server.Addr().String()
	// Who reads JSON gets nothing else: the log tells the same.
	people := loaded.Config.Log.Format != wiring.FormatJSON
	if people {
		s.banner(a, loaded.Config, url)
	}
	if err := s.ready(url); err != nil {
		return errors.Join(err, server.Stop(ctx))
	}
	<-signals
	if people {
		a.say("stopping: running answers have %s to finish; a second signal stops at once", loaded.Config.Drain.Timeout)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-signals:
		return errNow
	}
}

// ready writes the URL so that a reader never sees half of it.
func (s *serveCmd) ready(url string) error {
	if s.ReadyFile == "" {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(s.ReadyFile), ".ready-*")
	if err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	_, err = temp.WriteString(url + "\n")
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), s.ReadyFile)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write ready file: %w", err), os.Remove(temp.Name()))
	}
	return nil
}

func (s *serveCmd) banner(a *app, cfg wiring.Config, url string) {
	store := cfg.DataDir
	if cfg.Journal.Driver == wiring.DriverMemory {
		store = "in memory only: everything is forgotten at the end"
	}
	answering := cfg.Answering()
	switch answering {
	case wiring.ProviderOffline:
		answering += " (no model: an embedded engine answers by rules; set OPENAI_API_KEY or OPENAI_BASE_URL for one)"
	case wiring.ProviderOpenAI:
		answering += ", model " + cfg.OpenAI.Model
		if cfg.OpenAI.BaseURL != "" {
			answering += " at " + cfg.OpenAI.BaseURL.String()
		}
	}
	chat := "correx-actors chat"
	if cfg.Listen != wiring.DefaultConfig().Listen {
		chat += " --server " + url
	}
	fmt.Fprintf(a.err, "correx-actors %s\n  address   %s\n  data      %s\n  provider  %s\n  chat      %s\n",
		cfg.Version, url, store, answering, chat)
}
