package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/correx/correx-actors/inference/doctor"
	"github.com/correx/correx-actors/wiring"
)

type doctorCmd struct {
	Check        doctorCheckCmd    `cmd:"" default:"withargs" help:"Check configuration, journal, disk, clock and port of this machine; changes nothing."`
	Provider     doctorProviderCmd `cmd:"" help:"Examine a provider with a dozen small calls and print a profile for the configuration."`
	FakeProvider doctorFakeCmd     `cmd:"" name:"fake-provider" help:"Serve a fake provider that echoes, or misbehaves as real ones do."`
}

type doctorCheckCmd struct{ configFlags }

// Run implements the command.
func (d *doctorCheckCmd) Run(a *app) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c := &checkup{started: time.Now()}
	loaded, err := d.load(a, nil)
	c.add(c.configuration(loaded, err))
	names := []string{"data folder", "journal", "disk", "provider", "port", "clock"}
	for i, check := range []func(context.Context) finding{c.dataFolder, c.journal, c.disk, c.provider, c.port, c.clock} {
		if err != nil && names[i] != "clock" {
			c.add(finding{Check: names[i], Verdict: doctor.Skipped, Detail: "the configuration cannot be read"})
			continue
		}
		found := check(ctx)
		found.Check = names[i]
		c.add(found)
	}
	if err == nil {
		c.toolServers(ctx)
	}
	return a.tell("check", c.rows)
}

// checkup is a look at this machine in progress.
type checkup struct {
	started time.Time
	cfg     wiring.Config
	state   wiring.JournalState
	rows    []finding
}

func (c *checkup) add(r finding) { c.rows = append(c.rows, r) }

// finding is one line of what a doctor found.
type finding struct {
	Check   string         `json:"check"`
	Verdict doctor.Verdict `json:"verdict"`
	Detail  string         `json:"detail"`
	Advice  string         `json:"advice,omitempty"`
}

func passed(format string, args ...any) finding {
	return finding{Verdict: doctor.OK, Detail: fmt.Sprintf(format, args...)}
}

func warned(advice, format string, args ...any) finding {
	return finding{Verdict: doctor.Warning, Advice: advice, Detail: fmt.Sprintf(format, args...)}
}

func failed(advice, format string, args ...any) finding {
	return finding{Verdict: doctor.Failed, Advice: advice, Detail: fmt.Sprintf(format, args...)}
}

// errUnwell ends a command that found something that fails; what it is was printed, so nothing more is said.
var errUnwell = errors.New("not all is well")

// tell prints rows as a table, or as JSON, and gives an error if one of them failed.
func (a *app) tell(noun string, rows []finding) error {
	if a.json {
		for _, r := range rows {
			if err := a.writeJSON(r); err != nil {
				return err
			}
		}
		return verdictOf(rows)
	}
	t := verdicts{out: a.out, width: width(a.out), colors: colors(a)}
	for _, r := range shortened(rows) {
		t.add(r)
	}
	if err := errors.Join(t.print(), a.write("\n%s\n", sum(noun, rows))); err != nil {
		return err
	}
	return verdictOf(rows)
}

// shortened puts findings that were skipped for the same reason into one.
func shortened(rows []finding) []finding {
	var list []finding
	for i := 0; i < len(rows); {
		same := 1
		for rows[i].Verdict == doctor.Skipped && i+same < len(rows) && rows[i+same] == (finding{rows[i+same].Check, doctor.Skipped, rows[i].Detail, rows[i].Advice}) {
			same++
		}
		r := rows[i]
		if same > 1 {
			r.Check = number(same, "other")
		}
		list = append(list, r)
		i += same
	}
	return list
}

func verdictOf(rows []finding) error {
	for _, r := range rows {
		if r.Verdict == doctor.Failed {
			return errUnwell
		}
	}
	return nil
}

// sum counts verdicts: "7 checks: 6 ok, 1 warning".
func sum(noun string, rows []finding) string {
	counts := make(map[doctor.Verdict]int)
	for _, r := range rows {
		counts[r.Verdict]++
	}
	var parts []string
	for _, verdict := range []doctor.Verdict{doctor.OK, doctor.Warning, doctor.Failed, doctor.Skipped} {
		n := counts[verdict]
		word := string(verdict)
		if verdict == doctor.Warning && n > 1 {
			word += "s"
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return number(len(rows), noun) + ": " + strings.Join(parts, ", ")
}

func number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
