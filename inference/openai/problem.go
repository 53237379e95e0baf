package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// problem is what a server says of a failure, freed of the many shapes in which servers say it.
type problem struct {
	message string
	// code and kind are the server's "code" and "type".
	code, kind string
	// param is the field of the request that it is about.
	param string
	// status stands in the body; 0 if it does not. Routers of models send 200 and put the upstream's status there.
	status int
}

// problemIn finds an error in a JSON object: {"error": object, text or true}, whatever stands before it, or an object that
// calls itself an error.
func problemIn(data []byte) (problem, bool) {
	data = bytes.TrimSpace(data)
	var top map[string]any
	if len(data) > 0 && data[0] == '[' {
		// Google's compatible endpoint puts its error into a list.
		var list []map[string]any
		if json.Unmarshal(data, &list) == nil && len(list) > 0 {
			top = list[0]
		}
	} else if len(data) == 0 || json.Unmarshal(data, &top) != nil {
		return problem{}, false
	}
	switch e := top["error"].(type) {
	case map[string]any:
		return problemOf(e), true
	case string:
		if e != "" {
			p := problemOf(top)
			p.message = strings.Join(slices.Compact([]string{e, p.message}), ": ")
			return p, true
		}
	case []any:
		if len(e) > 0 {
			p, _ := e[0].(map[string]any)
			return problemOf(p), true
		}
	case bool:
		if e {
			return problemOf(top), true
		}
	}
	if top["object"] == "error" || top["type"] == "error" {
		return problemOf(top), true
	}
	return problem{}, false
}

func problemOf(object map[string]any) problem {
	p := problem{kind: text(object["type"]), param: text(object["param"])}
	for _, key := range []string{"message", "detail", "error_description", "msg", "error"} {
		if p.message = text(object[key]); p.message != "" {
			break
		}
	}
	for _, key := range []string{"code", "status", "http_code"} {
		if number, ok := object[key].(float64); ok && p.status == 0 && number >= 400 && number < 600 {
			p.status = int(number)
		}
	}
	if p.code = text(object["code"]); p.status == 0 {
		p.status = statusIn(p.code)
	}
	if inner, ok := object["innererror"].(map[string]any); ok && text(inner["code"]) != "" {
		p.code = text(inner["code"])
	}
	return p
}

func statusIn(code string) int {
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
		return status
	}
	return 0
}

// text gives a JSON value that should be a text as one.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, item := range v {
			if part := text(item); part != "" {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		for _, key := range []string{"message", "msg"} {
			if inner := text(v[key]); inner != "" {
				return inner
			}
		}
	}
	return ""
}

// unknownResume says whether it is about a token that the server does not know. Servers that keep nothing refuse the field.
func (p problem) unknownResume(status int, token string) bool {
	switch {
	case p.code == "previous_response_not_found":
		return true
	case status != http.StatusBadRequest && status != http.StatusNotFound:
		return false
	}
	return p.param == previousField || strings.Contains(p.message, previousField) || strings.Contains(p.message, token)
}

// String gives what people should read.
func (p problem) String() string {
	switch {
	case p.message == "" && p.code == "":
		return p.kind
	case p.message == "":
		return p.code
	case p.code == "" || strings.Contains(p.message, p.code):
		return p.message
	}
	return p.code + ": " + p.message
}
