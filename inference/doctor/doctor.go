// Package doctor examines an OpenAI-compatible endpoint: it makes a dozen small calls through the driver that the product
// uses, looks at what comes over the wire below it, and says what works, what does not, and what to do about it.
//
// It judges an endpoint as the product will meet it; it is no test of a model. All of it reads and none of it stores: what
// it sends is in probes.go, and of an answer no text is kept.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

// DefaultTimeout is how long a probe may take.
const DefaultTimeout = 30 * time.Second

// Config of an examination.
type Config struct {
	// BaseURL of the endpoint, up to and without "/chat/completions"; "" = OpenAI's own.
	BaseURL string
	// APIKey; "" = none. It is never part of a report.
	APIKey string
	// Model to ask; "" = the first one that the endpoint lists.
	Model string
	// Timeout of each probe; 0 = DefaultTimeout.
	Timeout time.Duration
	// Progress is told of each probe before it starts; nil = nobody is.
	Progress func(Step)
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	err := openai.Config{BaseURL: c.BaseURL, APIKey: c.APIKey}.Validate()
	if c.Timeout < 0 {
		err = errors.Join(err, errors.New("the timeout is negative"))
	}
	return err
}

// Step is a probe that is about to start.
type Step struct {
	Number, Of int
	Probe      string
	// Within is how long it may take.
	Within time.Duration
}

// Verdict is what came of a probe.
type Verdict string

// Verdicts.
const (
	OK Verdict = "ok"
	// Warning: the product works with it, but less well, or a mistake would not be noticed.
	Warning Verdict = "warning"
	Failed  Verdict = "failed"
	// Skipped: another finding makes it pointless.
	Skipped Verdict = "skipped"
)

// Valid says whether v is one of the verdicts.
func (v Verdict) Valid() bool {
	switch v {
	case OK, Warning, Failed, Skipped:
		return true
	}
	return false
}

// Finding is what a probe found.
type Finding struct {
	Probe   string  `json:"probe"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`
	// Advice says what to do; "" = nothing.
	Advice string `json:"advice,omitempty"`
	// Seconds that it took.
	Seconds float64 `json:"seconds"`
}

// Report is a whole examination.
type Report struct {
	// BaseURL is without a user and a password.
	BaseURL  string    `json:"base_url"`
	Model    string    `json:"model,omitempty"`
	Findings []Finding `json:"findings"`
	// Profile is nil if no answer was got.
	Profile *Profile `json:"profile,omitempty"`
}

// Failures counts the findings that failed.
func (r Report) Failures() int { return r.count(Failed) }

// Warnings counts the findings that are warnings.
func (r Report) Warnings() int { return r.count(Warning) }

func (r Report) count(verdict Verdict) int {
	n := 0
	for _, finding := range r.Findings {
		if finding.Verdict == verdict {
			n++
		}
	}
	return n
}

// probe is one step of an examination.
type probe struct {
	name string
	run  func(context.Context) Finding
}

// Examine carries out all probes. What is wrong with the endpoint stands in the report; errors: those of Validate, and the
// cause of ctx.
func Examine(ctx context.Context, c Config) (Report, error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.BaseURL == "" {
		c.BaseURL = openai.BaseURL
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	e, err := newExam(c)
	if err != nil {
		return Report{}, err
	}
	defer e.close()
	report := Report{BaseURL: withoutUser(c.BaseURL)}
	probes := e.probes()
	for i, p := range probes {
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if e.stop != "" {
			report.Findings = append(report.Findings, Finding{Probe: p.name, Verdict: Skipped, Detail: e.stop})
			continue
		}
		if c.Progress != nil {
			c.Progress(Step{Number: i + 1, Of: len(probes), Probe: p.name, Within: c.Timeout})
		}
		report.Findings = append(report.Findings, e.carryOut(ctx, p))
	}
	report.Model, report.Profile = e.model, e.profile()
	return report, nil
}

// carryOut runs one probe within its deadline.
func (e *exam) carryOut(ctx context.Context, p probe) Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, e.config.Timeout, errSlow)
	defer cancel()
	started := time.Now()
	finding := p.run(ctx)
	finding.Probe, finding.Seconds = p.name, time.Since(started).Round(time.Millisecond).Seconds()
	return finding
}

// errSlow is why a probe was ended by its deadline.
var errSlow = errors.New("no end within the time of a probe")

// told says of an error what people should read.
func (e *exam) told(err error) string {
	var typed *inference.Error
	switch {
	case errors.Is(err, errSlow):
		return fmt.Sprintf("no answer within %s", e.config.Timeout)
	case errors.As(err, &typed):
		text := string(typed.Kind)
		if typed.Status != 0 {
			text += fmt.Sprintf(" (status %d)", typed.Status)
		}
		if typed.Message != "" {
			text += ": " + typed.Message
		}
		return text
	}
	return inference.CleanMessage(err.Error(), e.config.APIKey)
}

// exam is an examination in progress.
type exam struct {
	config   Config
	provider *openai.Provider
	client   *http.Client
	wire     *tap
	model    string
	// stop says why the probes that are left are pointless; "" = they are not.
	stop string

	// first are the times to the first sign of each answer, silence the longest one within an answer, comments and answers
	// are counted.
	first    []time.Duration
	silence  time.Duration
	comments int
	answers  int
	// whole is the answer of the probe of streams, which others judge too; bare: it came only without the wish for a usage.
	whole sample
	bare  bool
	// concurrent is how many calls it serves at once, as far as that is a limit; 0 = no limit was met.
	concurrent int
}

func newExam(c Config) (*exam, error) {
	client := openai.NewHTTPClient(c.Timeout)
	wire := &tap{next: client.Transport}
	client.Transport = wire
	provider, err := openai.New(openai.Config{Name: "provider", BaseURL: c.BaseURL, APIKey: c.APIKey, HTTPClient: client})
	if err != nil {
		return nil, err
	}
	return &exam{config: c, provider: provider, client: client, wire: wire, model: c.Model}, nil
}

func (e *exam) close() { e.provider.Close() }
