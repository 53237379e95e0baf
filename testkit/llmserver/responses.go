package llmserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Asked is what matters of a request to the responses endpoint; its journal entry has it as a Chat too.
type Asked struct {
	Model              string    `json:"model"`
	Instructions       string    `json:"instructions"`
	Input              []Message `json:"input"`
	PreviousResponseID string    `json:"previous_response_id"`
	MaxOutputTokens    int       `json:"max_output_tokens"`
	Stream             bool      `json:"stream"`
	Store              *bool     `json:"store"`
}

// UnmarshalJSON implements json.Unmarshaler. An input that is a text is a message of the user.
func (a *Asked) UnmarshalJSON(data []byte) error {
	type plain Asked
	var raw struct {
		plain
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*a = Asked(raw.plain)
	var text string
	if json.Unmarshal(raw.Input, &text) == nil {
		a.Input = []Message{{Role: "user", Content: text}}
		return nil
	}
	return json.Unmarshal(raw.Input, &a.Input)
}

// chat gives the request in the form of the other endpoint.
func (a Asked) chat() Chat {
	chat := Chat{Model: a.Model, Stream: a.Stream, MaxCompletionTokens: a.MaxOutputTokens}
	chat.StreamOptions.IncludeUsage = true
	if a.Instructions != "" {
		chat.Messages = append(chat.Messages, Message{Role: "system", Content: a.Instructions})
	}
	chat.Messages = append(chat.Messages, a.Input...)
	return chat
}

// Conversation gives what the server keeps under the id of a response: the messages that it was sent and its answers, without
// any instructions. Nil = it does not know the id.
func (s *Server) Conversation(id string) []Message {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	return slices.Clone(s.kept[id])
}

// Forget makes all conversations unknown, as a server does after some time.
func (s *Server) Forget() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.kept = nil
}

func (s *Server) keep(id string, conversation []Message) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if s.kept == nil {
		s.kept = make(map[string][]Message)
	}
	s.kept[id] = conversation
}

// respond renders the answer number n of the responses endpoint. It keeps the conversation unless the answer is cut short.
func (s *Server) respond(asked Asked, answer Answer, n int) Response {
	var known []Message
	if previous := asked.PreviousResponseID; previous != "" && answer.Quirk == "" {
		if known = s.Conversation(previous); known == nil {
			return unknownResponse(previous)
		}
	}
	if answer.Quirk != "" {
		return answer.respondQuirk()
	}
	if answer.Echo {
		answer = answer.echo(asked.chat())
	}
	id := fmt.Sprintf("resp_%d", n)
	text := strings.Join(answer.Deltas, "")
	if answer.CutAfter == 0 && (asked.Store == nil || *asked.Store) {
		s.keep(id, slices.Concat(known, asked.Input, []Message{{Role: "assistant", Content: text}}))
	}
	if !asked.Stream {
		return Response{
			Header: map[string]string{"Content-Type": jsonType},
			Parts:  []Part{{Delay: answer.FirstDelay, Gate: answer.Gate, Text: responseJSON(id, answer, true)}},
		}
	}
	return answer.responseStream(id)
}

// unknownResponse is how OpenAI refuses an id that it does not know.
func unknownResponse(id string) Response {
	return sends(http.StatusBadRequest, jsonType, fmt.Sprintf(
		`{"error":{"message":%s,"type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`,
		quote("Previous response with id '"+id+"' not found.")))
}

func (a Answer) responseStream(id string) Response {
	response := Response{Piece: a.Piece, Parts: []Part{{Text: typed("response.created", `"response":`+responseJSON(id, a, false))}}}
	for range a.KeepAlives {
		response.Parts = append(response.Parts, Part{Delay: a.KeepAliveEvery, Text: ": keep-alive\n\n"})
	}
	for i, text := range a.Reasoning {
		response.Parts = append(response.Parts, a.part(i, typed("response.reasoning_text.delta", `"delta":`+quote(text))))
	}
	for i, text := range a.Deltas {
		if a.CutAfter > 0 && i == a.CutAfter {
			response.End = EndCut
			return response
		}
		response.Parts = append(response.Parts, a.part(len(a.Reasoning)+i, typed("response.output_text.delta", `"delta":`+quote(text))))
	}
	last := "response.completed"
	if a.FinishReason == "length" {
		last = "response.incomplete"
	}
	response.Parts = append(response.Parts, Part{Text: typed(last, `"response":`+responseJSON(id, a, true))})
	if a.Hold {
		response.End = EndHold
	}
	return response
}

// typed is an event of the responses API, which names itself twice.
func typed(kind, rest string) string {
	return "event: " + kind + "\ndata: " + typedJSON(kind, rest) + "\n\n"
}

func typedJSON(kind, rest string) string { return `{"type":` + quote(kind) + `,` + rest + `}` }

// responseJSON is a response as it begins, or as a whole.
func responseJSON(id string, a Answer, whole bool) string {
	status, output, usage, incomplete := "in_progress", "", "null", "null"
	if whole {
		status, output = "completed", fmt.Sprintf(
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}`, quote(strings.Join(a.Deltas, "")))
		if a.FinishReason == "length" {
			status, incomplete = "incomplete", `{"reason":"max_output_tokens"}`
		}
		if a.Usage != nil {
			usage = fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}`, a.Usage.Input, a.Usage.Output, a.Usage.Input+a.Usage.Output)
		}
	}
	return fmt.Sprintf(`{"id":%s,"object":"response","status":%q,"error":null,"incomplete_details":%s,"model":%q,"output":[%s],"usage":%s}`,
		quote(id), status, incomplete, Model, output, usage)
}
