package telemetry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/telemetry"
	"github.com/correx/correx-actors/testkit"
)

const marker = "tangerine-7731"

func secretive() (inference.Request, []testkit.Step, []testkit.Step) {
	req := inference.Request{Model: "m", SessionID: "s1", Resume: marker, Pack: contextpack.Pack{
		Entries: []contextpack.Entry{
			{Role: contextpack.RoleSystem, Content: "be terse " + marker, Kept: true},
			{Role: contextpack.RoleUser, Content: "dropped " + marker},
			{Role: contextpack.RoleUser, Content: "hi " + marker, Kept: true},
		},
		Brief: contextpack.Brief{Status: marker, CurrentStage: marker},
	}}
	// A provider quotes what it refuses.
	refused := testkit.Script(testkit.Stream(marker), testkit.FailWith(&inference.Error{
		Kind: inference.KindContentFiltered, Message: "not allowed: hi " + marker, RequestID: marker, Err: fmt.Errorf("hi %s", marker),
	}))
	return req, testkit.Script(testkit.Stream("well ", marker), testkit.Usage(2, 3)), refused
}

// exported is everything that leaves: all of the metrics, all of the spans.
func (w *watcher) exported() string {
	w.t.Helper()
	var all strings.Builder
	fmt.Fprintf(&all, "%+v\n", w.collect())
	for _, span := range w.spans.Ended() {
		fmt.Fprintf(&all, "%s %+v %+v %+v %+v %+v\n",
			span.Name(), span.Attributes(), span.Events(), span.Status(), span.Links(), span.Resource())
	}
	return all.String()
}

func TestNoTextLeavesUnlessItIsSwitchedOn(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		w := watch(t, content)
		req, good, bad := secretive()
		model := w.around(testkit.NewProvider(t, good, bad))
		_, err := w.infer(t.Context(), model, req)
		require.NoError(t, err)
		_, err = w.infer(t.Context(), model, req)
		require.ErrorContains(t, err, marker)
		require.Equal(t, content, strings.Contains(w.exported(), marker))
		require.NotContains(t, fmt.Sprintf("%+v", w.collect()), marker, "metrics never hold text")
		require.Contains(t, w.exported(), "content_filtered")
		require.NotContains(t, w.exported(), "not allowed", "nor what a provider says of it")
		require.NotContains(t, w.exported(), "dropped")
	}
}

func TestContentIsWrittenAsTheConventionsSay(t *testing.T) {
	t.Parallel()
	w := watch(t, true)
	req, good, _ := secretive()
	_, err := w.infer(t.Context(), w.around(testkit.NewProvider(t, good)), req)
	require.NoError(t, err)
	require.JSONEq(t, `[{"role":"system","parts":[{"type":"text","content":"be terse tangerine-7731"}]},
		{"role":"user","parts":[{"type":"text","content":"hi tangerine-7731"}]}]`, w.content("gen_ai.input.messages"))
	require.JSONEq(t, `[{"role":"assistant","finish_reason":"stop","parts":[{"type":"text","content":"well tangerine-7731"}]}]`,
		w.content("gen_ai.output.messages"))
}

// The newest of the prompt and the beginning of the answer are kept, in whole characters.
func TestContentIsBounded(t *testing.T) {
	t.Parallel()
	w := watch(t, true)
	long := strings.Repeat("ö", telemetry.ContentLimit)
	req := inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{
		{Role: contextpack.RoleSystem, Content: "gone", Kept: true},
		{Role: contextpack.RoleUser, Content: long, Kept: true},
		{Role: contextpack.RoleUser, Content: "newest", Kept: true},
	}}}
	_, err := w.infer(t.Context(), w.around(testkit.NewProvider(t, testkit.Script(testkit.Stream("a"+long, long, "end")))), req)
	require.NoError(t, err)
	for key, first := range map[string]string{"gen_ai.input.messages": "ö", "gen_ai.output.messages": "aö"} {
		text := w.content(key)
		require.NotContains(t, text, "gone")
		require.NotContains(t, text, "\uFFFD")
		var list []struct{ Parts []struct{ Content string } }
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		size := 0
		for _, m := range list {
			size += len(m.Parts[0].Content)
		}
		require.LessOrEqual(t, size, telemetry.ContentLimit)
		require.Greater(t, size, telemetry.ContentLimit-8)
		require.True(t, strings.HasPrefix(list[0].Parts[0].Content, first), key)
		require.True(t, strings.HasSuffix(list[0].Parts[0].Content, "ö…"), key)
	}
	require.Contains(t, w.content("gen_ai.input.messages"), "newest")
}

func (w *watcher) content(key string) string {
	w.t.Helper()
	for _, attr := range w.span().Attributes() {
		if string(attr.Key) == key {
			return attr.Value.AsString()
		}
	}
	require.FailNow(w.t, "no such attribute", key)
	return ""
}
