package telemetry

import (
	"strings"
	"sync"

	"github.com/correx/correx-actors/inference"
)

const (
	// maxNames bounds the names of models of one provider that become labels.
	maxNames = 64
	// nameLimit bounds a name, in bytes.
	nameLimit = 128
)

// names are the models that become labels. Clients may ask for any name where a provider takes all, and a provider may answer
// under any: a name counts when the configuration lists it or a call with it has succeeded, and only so many do. Safe for
// concurrent use.
type names struct {
	mu    sync.Mutex
	known map[string]struct{}
}

func newNames(configured []string) *names {
	n := &names{known: make(map[string]struct{}, len(configured))}
	for _, name := range configured {
		n.known[label(name)] = struct{}{}
	}
	return n
}

// label gives the name as a label; answered: a call with it has just succeeded.
func (n *names) label(name string, answered bool) string {
	name = label(name)
	if name == "" {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.known[name]; known {
		return name
	}
	if !answered || len(n.known) >= maxNames {
		return other
	}
	n.known[name] = struct{}{}
	return name
}

// label makes a text fit for a label: what is no UTF-8 would make a whole exposition fail.
func label(text string) string {
	return inference.Bound(strings.ToValidUTF8(text, "\uFFFD"), nameLimit)
}
