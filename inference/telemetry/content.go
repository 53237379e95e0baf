package telemetry

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// ContentLimit bounds the text of the prompt in a span, and that of the answer, in bytes each.
const ContentLimit = 16 << 10

// message is a message as the conventions write it.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason,omitempty"`
}

type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

func textPart(text string) []part { return []part{{Type: "text", Content: text}} }

// prompt writes the newest messages of a pack, as many as the limit has room for; the first of them may be cut.
func prompt(pack contextpack.Pack) string {
	room, list := ContentLimit, []message{}
	for _, entry := range slices.Backward(pack.Messages()) {
		if room <= 0 {
			break
		}
		list = append(list, message{Role: string(entry.Role), Parts: textPart(inference.Bound(entry.Content, room))})
		room -= len(entry.Content)
	}
	slices.Reverse(list)
	return written(list)
}

// clipped is the beginning of an answer.
type clipped struct {
	text strings.Builder
	// more came than is kept.
	more bool
}

func (c *clipped) add(text string) {
	if room := ContentLimit - c.text.Len(); len(text) > room {
		c.more = true
		text = text[:max(room, 0)]
	}
	c.text.WriteString(text)
}

// message writes the answer; one that was cut ends in an ellipsis.
func (c *clipped) message(finish string) string {
	text := c.text.String()
	if c.more {
		text = inference.Bound(text, len(text)-1)
	}
	return written([]message{{Role: string(contextpack.RoleAssistant), Parts: textPart(text), FinishReason: label(finish)}})
}

func written(list []message) string {
	text, _ := json.Marshal(list) //nolint:errchkjson // texts alone, which cannot fail
	return string(text)
}
