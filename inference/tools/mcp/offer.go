package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/messages"
)

const (
	// maxDescription and maxSchema bound what is told of a tool: it goes into every model call.
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
	// maxName is what tools.NameRule allows.
	maxName = 64
)

// toolsOf makes tools of what a server offers, by name: a server may list them in another order each time, and a prompt that changes
// is a prompt that no provider has cached. What cannot be offered is left out, and logged.
func (s *Source) toolsOf(offers []*sdk.Tool) []*tools.Tool {
	list := make([]*tools.Tool, 0, len(offers))
	for _, offer := range offers {
		tool, err := s.toolOf(offer)
		if err != nil {
			s.log.LogAttrs(context.Background(), slog.LevelWarn, "mcp tool left out",
				slog.String(messages.AttrTool, inference.CleanMessage(offer.Name)), slog.String(messages.AttrReason, safe(err)))
			continue
		}
		list = append(list, tool)
	}
	slices.SortStableFunc(list, func(a, b *tools.Tool) int { return cmp.Compare(a.Spec().Name, b.Spec().Name) })
	return slices.CompactFunc(list, func(a, b *tools.Tool) bool { return a.Spec().Name == b.Spec().Name })
}

func (s *Source) toolOf(offer *sdk.Tool) (*tools.Tool, error) {
	input, err := json.Marshal(offer.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("encode its schema: %w", err)
	}
	if len(input) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes", len(input))
	}
	name := offer.Name
	spec := tools.Spec{
		Name: qualified(s.server.Name, name), Input: input,
		Description: inference.Bound(strings.ToValidUTF8(cmp.Or(offer.Description, offer.Title), "\uFFFD"), maxDescription),
	}
	call := func(ctx context.Context, arguments json.RawMessage, report func(tools.Progress)) (tools.Result, error) {
		return s.call(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments}, report)
	}
	tool, err := tools.New(spec, call)
	if err == nil {
		return tool, nil
	}
	// A schema that is not understood here is still one that the server and the model understand.
	return tools.NewUnchecked(spec, call)
}

// qualified is the name that a tool is offered by. What chat APIs do not accept is replaced, and then a hash tells apart what has become
// the same; it does not depend on what else is offered.
func qualified(server, tool string) string {
	name := server + "__" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, tool)
	if name == server+"__"+tool && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(mark))] + mark
}

// call carries out a call of a tool.
func (s *Source) call(ctx context.Context, params *sdk.CallToolParams, report func(tools.Progress)) (tools.Result, error) {
	conn, away := s.connected()
	if away != nil {
		return tools.Result{}, away
	}
	result, err := conn.call(ctx, params, report)
	var said *jsonrpc.Error
	switch {
	case err == nil:
		text := textOf(result)
		if result.IsError {
			return tools.Result{Text: text}, &tools.Failure{Type: tools.ErrorFailed, Message: text}
		}
		return tools.Result{Text: text}, nil
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case errors.As(err, &said):
		return tools.Result{}, &tools.Failure{Type: tools.ErrorFailed, Message: said.Message}
	}
	return tools.Result{}, s.unavailable("it went away during the call, whose effects are unknown")
}

// textOf is what a result says. What is no text is named, not shown.
func textOf(result *sdk.CallToolResult) string {
	var parts []string
	for _, content := range result.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[image %.80s, %d bytes, not shown]", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio %.80s, %d bytes, not shown]", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource %s %s]", c.Name, c.URI))
		case *sdk.EmbeddedResource:
			parts = append(parts, resourceText(c.Resource))
		default:
			parts = append(parts, fmt.Sprintf("[%T, not shown]", content))
		}
	}
	if len(parts) == 0 && result.StructuredContent != nil {
		if text, err := json.Marshal(result.StructuredContent); err == nil {
			return string(text)
		}
	}
	return strings.Join(parts, "\n")
}

func resourceText(resource *sdk.ResourceContents) string {
	switch {
	case resource == nil:
		return "[resource, empty]"
	case resource.Text != "":
		return resource.Text
	}
	return fmt.Sprintf("[resource %s %.80s, %d bytes, not shown]", resource.URI, resource.MIMEType, len(resource.Blob))
}
