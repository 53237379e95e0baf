package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/correx/correx-actors/inference/doctor"
	"github.com/correx/correx-actors/wiring"
)

// maxKeyFile bounds a file that should hold a key.
const maxKeyFile = 64 << 10

type doctorProviderCmd struct {
	configFlags

	URL        string        `arg:"" optional:"" name:"url" help:"Base URL up to and without /chat/completions; without it the configured OpenAI-compatible provider is examined, with its key."`
	Model      string        `placeholder:"M" help:"Model to ask; without it the first one that the provider lists, or the configured one."`
	APIKeyFile string        `name:"api-key-file" placeholder:"FILE" help:"File with the key. A key from the environment is never sent to a URL of the command line."`
	Timeout    time.Duration `default:"30s" help:"Time that each probe may take."`
}

// Run implements the command.
func (d *doctorProviderCmd) Run(a *app) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := d.config(a)
	if err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return &usageError{err}
	}
	progress := &progress{out: a.err, live: isTerminal(a.err)}
	c.Progress = progress.step
	report, err := doctor.Examine(ctx, c)
	progress.end()
	if err != nil {
		return err
	}
	rows := make([]finding, 0, len(report.Findings))
	for _, f := range report.Findings {
		rows = append(rows, finding{Check: f.Probe, Verdict: f.Verdict, Detail: f.Detail, Advice: f.Advice})
	}
	if a.json {
		if err := a.writeJSON(report); err != nil {
			return err
		}
		return verdictOf(rows)
	}
	asked := report.BaseURL
	if report.Model != "" {
		asked += ", model " + report.Model
	}
	if err := a.write("%s\n\n", asked); err != nil {
		return err
	}
	unwell := a.tell("probe", rows)
	if report.Profile != nil {
		if err := a.write("\nfor the file of the configuration (--config):\n\n%s", profileYAML(*report.Profile, d.APIKeyFile)); err != nil {
			return err
		}
	}
	return unwell
}

// config is what is examined: what the command line names, or what serve would use.
func (d *doctorProviderCmd) config(a *app) (doctor.Config, error) {
	c := doctor.Config{BaseURL: d.URL, Model: d.Model, Timeout: d.Timeout}
	if d.Timeout <= 0 {
		return c, &usageError{fmt.Errorf("--timeout %s is no time for a probe", d.Timeout)}
	}
	if d.URL == "" {
		loaded, err := d.load(a, nil)
		if err != nil {
			return c, err
		}
		if loaded.Config.Answering() != wiring.ProviderOpenAI {
			return c, &usageError{fmt.Errorf("no OpenAI-compatible provider is configured as the first; name a URL")}
		}
		c.BaseURL, c.APIKey = string(loaded.Config.OpenAI.BaseURL), string(loaded.Config.OpenAI.APIKey)
		if c.Model == "" {
			c.Model = loaded.Config.OpenAI.Model
		}
	}
	if d.APIKeyFile == "" {
		return c, nil
	}
	key, err := readKey(d.APIKeyFile)
	if err != nil {
		return c, &usageError{err}
	}
	c.APIKey = key
	return c, nil
}

func readKey(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	key, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	if trimmed := strings.TrimSpace(string(key)); trimmed != "" {
		return trimmed, nil
	}
	return "", fmt.Errorf("read the key: %s is empty", path)
}

// profileYAML is the endpoint's entry in a file of the configuration. Times are told where the defaults are too short.
func profileYAML(p doctor.Profile, keyFile string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("providers:")
	line("  - name: %s", quoted(p.Name))
	line("    base_url: %s", quoted(p.BaseURL))
	if keyFile != "" {
		line("    api_key_file: %s", quoted(keyFile))
	}
	line("    models:")
	line("      - name: %s", quoted(p.Model))
	if p.Concurrent+p.RequestsPerMinute+p.TokensPerMinute > 0 {
		line("    limits:")
		for _, limit := range []struct {
			key string
			n   int
		}{{"concurrent", p.Concurrent}, {"requests_per_minute", p.RequestsPerMinute}, {"tokens_per_minute", p.TokensPerMinute}} {
			if limit.n > 0 {
				line("      %s: %d", limit.key, limit.n)
			}
		}
	}
	standard := wiring.DefaultConfig().Runs
	first, token := ample(p.FirstToken, standard.FirstTokenTimeout), ample(p.Token, standard.TokenTimeout)
	if first+token > 0 {
		line("runs:")
	}
	if first > 0 {
		line("  first_token_timeout: %dm # ten times the longest wait that was seen", first/time.Minute)
	}
	if token > 0 {
		line("  token_timeout: %dm # ten times the longest silence that was seen", token/time.Minute)
	}
	return b.String()
}

// ample is a timeout for waits such as the one that was seen, in whole minutes; 0 = the standard one is ample.
func ample(seen, standard time.Duration) time.Duration {
	const margin = 10
	if margin*seen <= standard {
		return 0
	}
	return (margin*seen + time.Minute - 1).Truncate(time.Minute)
}

// quoted is a text for a file of YAML, which takes the texts of JSON.
func quoted(text string) string { return fmt.Sprintf("%q", visible(text)) }

// progress tells which probe runs: on a terminal in one line that the result takes the place of.
type progress struct {
	out  io.Writer
	live bool
}

func (p *progress) step(s doctor.Step) {
	text := fmt.Sprintf("probe %d of %d: %s, at most %s", s.Number, s.Of, s.Probe, s.Within)
	if p.live {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintf(p.out, "correx-actors: %s\n", text)
}

func (p *progress) end() {
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
