package route

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

// scene runs one scenario file. Its commands: plan (a new course), gate (what stands before a provider from now on), after
// (time passes), next, and ended (how the call ended).
type scene struct {
	now    time.Time
	course *course
	gates  map[string]gate
}

func TestCourseRules(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/course", func(t *testing.T, path string) {
		s := &scene{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

func (s *scene) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "plan":
		s.plan(t, d)
		return ""
	case "gate":
		g := gate{full: d.HasArg("full"), paused: span(t, d, "paused"), wait: span(t, d, "wait"), why: "its limit is reached"}
		s.gates[d.CmdArgs[0].Key] = g
		return ""
	case "after":
		passed, err := time.ParseDuration(d.CmdArgs[0].Key)
		require.NoError(t, err)
		s.now = s.now.Add(passed)
		return ""
	case "next":
		return s.next()
	case "ended":
		s.ended(t, d)
		return ""
	}
	d.Fatalf(t, "unknown command")
	return ""
}

func (s *scene) plan(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	s.now, s.gates = time.Unix(0, 0).UTC(), make(map[string]gate)
	rules, _ := Standard()
	var targets []target
	arg, _ := d.Arg("targets")
	for _, name := range arg.Vals {
		provider, model, _ := strings.Cut(name, "/")
		targets = append(targets, target{provider: provider, model: model, how: "the model is routed to " + provider})
	}
	if d.HasArg("retries") {
		d.ScanArgs(t, "retries", &rules.Retries)
	}
	s.course = newCourse(rules, d.HasArg("replace"), targets)
}

func (s *scene) ended(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	var failure *inference.Error
	if kind := d.CmdArgs[0].Key; kind != "ok" {
		failure = &inference.Error{
			Kind: inference.Kind(kind), Provider: s.course.targets[s.course.at].provider,
			RetryAfter: span(t, d, "retry-after"), Message: "its words",
		}
		require.True(t, failure.Kind.Valid(), kind)
		if arg, ok := d.Arg("limit"); ok {
			failure.Limit = inference.Limit(arg.Vals[0])
			require.True(t, failure.Limit.Valid())
		}
	}
	s.course.ended(s.now, failure, d.HasArg("visible"), 500*time.Millisecond)
}

func (s *scene) next() string {
	m := s.course.next(s.now, func(at int) gate { return s.gates[s.course.targets[at].provider] })
	var failure *inference.Error
	switch {
	case m.wait > 0:
		return fmt.Sprintf("wait %s\n  %s\n", m.wait, m.reason)
	case m.call:
		s.course.called()
		return fmt.Sprintf("call %s\n  %s\n", s.course.targets[s.course.at], m.reason)
	case m.err == nil:
		return "stop\n"
	case errors.As(m.err, &failure):
		text := fmt.Sprintf("stop: %s\n", failure)
		if failure.RetryAfter > 0 {
			text += fmt.Sprintf("  retry after %s\n", failure.RetryAfter)
		}
		return text
	}
	return "stop: " + m.err.Error() + "\n"
}

func span(t *testing.T, d *datadriven.TestData, name string) time.Duration {
	t.Helper()
	arg, ok := d.Arg(name)
	if !ok {
		return 0
	}
	length, err := time.ParseDuration(arg.Vals[0])
	require.NoError(t, err)
	return length
}

// Every kind has its way, its wire code and its say in the breaker: the whole table at one place.
func TestEveryKindHasItsWay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind      inference.Kind
		way       reaction
		counted   bool
		retryable bool
	}{
		{inference.KindCanceled, giveUp, false, false},
		{inference.KindTimeout, tryAgain, true, true},
		{inference.KindRateLimited, tryAgain, false, true},
		{inference.KindOverloaded, tryAgain, true, true},
		{inference.KindAuth, goElsewhere, false, false},
		{inference.KindQuota, goElsewhere, false, false},
		{inference.KindBadRequest, giveUp, false, false},
		{inference.KindContextOverflow, shorten, false, false},
		{inference.KindContentFiltered, giveUp, false, false},
		{inference.KindTruncated, tryAgain, true, true},
		{inference.KindUnavailable, tryAgain, true, true},
		{inference.KindConfig, goElsewhere, false, false},
		{inference.KindProvider, tryAgain, true, true},
	} {
		failure := &inference.Error{Kind: row.kind}
		require.True(t, row.kind.Valid())
		require.Equal(t, row.way, reactionTo(failure), row.kind)
		require.Equal(t, row.counted, counted(failure), row.kind)
		require.Equal(t, row.retryable, failure.Retryable(), row.kind)
	}
	whole := &inference.Error{Kind: inference.KindTimeout, Limit: inference.LimitWhole}
	require.Equal(t, giveUp, reactionTo(whole))
	require.False(t, counted(whole), "the run was too long, the provider is not at fault")
}
