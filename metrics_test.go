package correx_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/wiring"
)

// family is a metric as it is served.
type family struct{ typ, help, labels string }

// TestOperationsListsEveryMetric reads what a server serves at /metrics once a call has failed and another one has answered.
func TestOperationsListsEveryMetric(t *testing.T) {
	t.Parallel()
	found := readMetrics(t, scrapeServer(t))
	require.Greater(t, len(found), 15)
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		f := found[name]
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, f.typ, f.labels, f.help)
	}
	doc := open(t, "docs/operations.md")
	doc.part("metrics", table.String())
	doc.save()
}

// scrapeServer gives the metrics of a server whose first provider cannot be reached, so that the offline engine answers.
func scrapeServer(t *testing.T) string {
	t.Helper()
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.Journal.Driver, cfg.Log.Level, cfg.Retry.Limit = "127.0.0.1:0", wiring.DriverMemory, "error", 0
	cfg.Providers = []wiring.Provider{{
		Name: "gone", BaseURL: "http://127.0.0.1:1/v1", Models: []wiring.Model{{Name: "m"}}, Fallback: []string{wiring.ProviderOffline},
	}}
	server, err := wiring.NewServer(cfg)
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	defer func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) }()
	url := "http://" + server.Addr().String()
	require.Contains(t, fetch(t, http.MethodPost, url+"/v1/sessions/s1/turns?wait=20s", `{"text":"hi"}`), `"completed"`)
	return fetch(t, http.MethodGet, url+"/metrics", "")
}

func fetch(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Less(t, response.StatusCode, 300, string(text))
	return string(text)
}

var (
	exposedComment = regexp.MustCompile(`^# (HELP|TYPE) (\S+) (.*)$`)
	exposedSample  = regexp.MustCompile(`^([a-z_]+)\{(.*)\} `)
	exposedLabel   = regexp.MustCompile(`([a-z_]+)="`)
	partOfMetric   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// readMetrics reads the text format of Prometheus. The metrics of Go and of the process are those of everybody.
func readMetrics(t *testing.T, text string) map[string]family {
	t.Helper()
	found, labels := make(map[string]family), make(map[string][]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") {
			continue
		}
		if c := exposedComment.FindStringSubmatch(line); c != nil {
			f := found[c[2]]
			if c[1] == "HELP" {
				f.help = c[3]
			} else {
				f.typ = c[3]
			}
			found[c[2]] = f
			continue
		}
		if s := exposedSample.FindStringSubmatch(line); s != nil {
			name := partOfMetric.ReplaceAllString(s[1], "")
			for _, label := range exposedLabel.FindAllStringSubmatch(s[2], -1) {
				if label[1] != "le" && !slices.Contains(labels[name], label[1]) {
					labels[name] = append(labels[name], label[1])
				}
			}
		}
	}
	maps.DeleteFunc(found, func(name string, _ family) bool {
		return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
	})
	for name, f := range found {
		if slices.Sort(labels[name]); len(labels[name]) > 0 {
			f.labels = "`" + strings.Join(labels[name], "` `") + "`"
		}
		require.NotEmpty(t, f.help, name)
		require.NotEmpty(t, f.typ, name)
		found[name] = f
	}
	return found
}
