package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/correx/correx-actors/messages"
)

// route is one method of one path.
type route struct {
	method string
	path   string
	serve  http.HandlerFunc
}

// routes makes the gateway's whole HTTP side.
func (g *Gateway) routes() http.Handler {
	table := []route{
		{http.MethodGet, "/v1/ws", g.serveSocket},
		{http.MethodGet, "/v1/sessions", g.listSessions},
		{http.MethodGet, "/v1/sessions/{id}", g.showSession},
		{http.MethodGet, "/v1/sessions/{id}/context", g.explainContext},
		{http.MethodGet, "/v1/sessions/{id}/stages", g.listStages},
		{http.MethodGet, "/v1/sessions/{id}/output", g.streamOutput},
		{http.MethodGet, "/v1/sessions/{id}/events", g.readEvents},
		{http.MethodPost, "/v1/sessions/{id}/events", g.recordEvents},
		{http.MethodPost, "/v1/sessions/{id}/turns", g.submitTurn},
		{http.MethodGet, "/v1/sessions/{id}/turns/{turn}", g.showTurn},
		{http.MethodDelete, "/v1/sessions/{id}/turns/{turn}", g.withdraw},
		{http.MethodPost, "/v1/sessions/{id}/explain", g.explain},
		{http.MethodPost, "/v1/sessions/{id}/abort", g.abort},
		{http.MethodGet, "/healthz", g.healthz},
		{http.MethodGet, "/readyz", g.readyz},
	}
	if g.deps.Metrics != nil {
		table = append(table, route{http.MethodGet, "/metrics", g.deps.Metrics.ServeHTTP})
	}
	mux := http.NewServeMux()
	methods := make(map[string][]string)
	for _, r := range table {
		mux.HandleFunc(r.method+" "+r.path, r.serve)
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, wrongMethod(allowed))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		respondStatus(w, http.StatusNotFound, messages.Fail(messages.CodeUnknownType, fmt.Sprintf("no route %.200q", r.URL.Path)))
	})
	return g.observed(g.guarded(mux))
}

// wrongMethod answers what no route of a path serves: OPTIONS with the methods that are, and all others with a refusal.
func wrongMethod(allowed []string) http.HandlerFunc {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	names := strings.Join(append(allowed, http.MethodOptions), ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", names)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		respondStatus(w, http.StatusMethodNotAllowed,
			messages.Fail(messages.CodeUnknownType, fmt.Sprintf("%.20s is not served here, only %s", r.Method, names)))
	}
}

func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) { respondOK(w) }

func (g *Gateway) readyz(w http.ResponseWriter, _ *http.Request) {
	if f := g.refusing(); f != nil {
		respondError(w, f)
		return
	}
	respondOK(w)
}
