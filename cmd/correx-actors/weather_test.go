package main

import (
	"context"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveWeather makes the test binary an MCP server over its standard streams, with the tool forecast.
func serveWeather() {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "forecast", Description: "Tells tomorrow's weather."},
		func(_ context.Context, _ *sdk.CallToolRequest, in place) (*sdk.CallToolResult, any, error) {
			text := "rain in " + in.City + os.Getenv("WEATHER_UNIT") + os.Getenv("OPENAI_API_KEY")
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	_ = server.Run(context.Background(), &sdk.StdioTransport{}) // it ends with its input
}
