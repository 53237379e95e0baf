package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit/llmserver"
)

type doctorFakeCmd struct {
	Listen    string        `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free one."`
	Quirk     string        `placeholder:"NAME" help:"Answer every request with this quirk of the catalogue; a single request asks for one by the model quirk/NAME."`
	Delay     time.Duration `placeholder:"D" help:"Wait before each word of an echo."`
	List      bool          `help:"List the catalogue of quirks."`
	ReadyFile string        `placeholder:"FILE" help:"Write the base URL to this file once it serves."`
}

// attrGone is a key of the fake provider's log that the server's has not.
const attrGone = "client_gone"

// fakeJournal is how many requests the fake provider remembers.
const fakeJournal = 100

// Run implements the command.
func (d *doctorFakeCmd) Run(a *app) error {
	if d.List {
		return d.list(a)
	}
	answer := llmserver.Answer{Echo: true, FirstDelay: d.Delay, Delay: d.Delay}
	if d.Quirk != "" {
		if _, found := llmserver.QuirkNamed(d.Quirk); !found {
			return &usageError{fmt.Errorf("there is no quirk %q; correx-actors doctor fake-provider --list shows all", d.Quirk)}
		}
		answer = llmserver.Answer{Quirk: d.Quirk}
	}
	if d.Delay < 0 {
		return &usageError{errors.New("--delay is negative")}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	log := &fakeLog{a: a}
	url, stop, err := llmserver.NewServer(llmserver.Config{
		Script: []llmserver.Answer{answer}, Keep: fakeJournal, Observe: log.observe,
	}).Listen(d.Listen)
	if err != nil {
		return err
	}
	defer stop()
	if a.json {
		err = a.writeJSON(map[string]string{"base_url": url})
	} else {
		err = a.write("%s\n", url)
	}
	if err = errors.Join(err, (&serveCmd{ReadyFile: d.ReadyFile}).ready(url)); err != nil {
		return err
	}
	if !a.json {
		a.say("a fake provider serves; a model quirk/NAME asks for a quirk of doctor fake-provider --list; Ctrl-C ends it")
	}
	<-signals
	return nil
}

func (d *doctorFakeCmd) list(a *app) error {
	quirks := llmserver.Quirks()
	if a.json {
		for _, quirk := range quirks {
			if err := a.writeJSON(map[string]string{"name": quirk.Name, "about": quirk.About, "right": right(quirk)}); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "QUIRK\tRIGHT READING\tWHAT IT IS")
	for _, quirk := range quirks {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", quirk.Name, right(quirk), quirk.About); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return table.Flush()
}

// right is what a client must make of a quirk: an answer, or a kind of error.
func right(quirk llmserver.Quirk) string {
	if quirk.Want.Kind != "" {
		return string(quirk.Want.Kind)
	}
	return "answer"
}

// fakeLog writes a line for each request, without what was said.
type fakeLog struct {
	a  *app
	mu sync.Mutex
}

func (l *fakeLog) observe(request *llmserver.Request, outcome llmserver.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := outcome.At.Sub(request.Arrived).Round(time.Millisecond)
	if l.a.json {
		slog.New(slog.NewJSONHandler(l.a.err, nil)).Info("request ended",
			slog.String(messages.AttrModel, request.Chat.Model), slog.Int(messages.AttrCount, len(request.Chat.Messages)),
			slog.Int(messages.AttrStatus, outcome.Status), slog.Int64(messages.AttrBytes, outcome.Bytes), slog.Int64(messages.AttrDuration, took.Milliseconds()),
			slog.Bool(attrGone, outcome.Gone))
		return
	}
	parts := []string{
		request.Arrived.Format(time.TimeOnly), fmt.Sprintf("model %q", request.Chat.Model), number(len(request.Chat.Messages), "message"),
		fmt.Sprintf("status %d", outcome.Status), number(int(outcome.Bytes), "byte") + " in " + max(took, time.Millisecond).String(),
	}
	if outcome.Quirk != "" {
		parts = append(parts, "quirk "+outcome.Quirk)
	}
	if outcome.Gone {
		parts = append(parts, "the client went away")
	}
	_ = put(l.a.err, strings.Join(parts, ", ")+"\n") // there is no one else to tell
}
