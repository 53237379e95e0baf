package telemetry

// The names of OpenTelemetry's conventions for generative AI that are used, as of their version 1.41. Their status is Development:
// they have changed before, and a change of them is one of this file alone.
const (
	metricDuration   = "gen_ai.client.operation.duration"
	metricFirstChunk = "gen_ai.client.operation.time_to_first_chunk"
	metricTokens     = "gen_ai.client.token.usage" //nolint:gosec // a name, no credential

	attrOperation      = "gen_ai.operation.name"
	attrRequestModel   = "gen_ai.request.model"
	attrMaxTokens      = "gen_ai.request.max_tokens"
	attrStream         = "gen_ai.request.stream"
	attrResponseModel  = "gen_ai.response.model"
	attrFinishReasons  = "gen_ai.response.finish_reasons"
	attrFirstChunk     = "gen_ai.response.time_to_first_chunk"
	attrInputTokens    = "gen_ai.usage.input_tokens"
	attrOutputTokens   = "gen_ai.usage.output_tokens"
	attrTokenType      = "gen_ai.token.type"
	attrConversation   = "gen_ai.conversation.id"
	attrInputMessages  = "gen_ai.input.messages"
	attrOutputMessages = "gen_ai.output.messages"
	attrErrorType      = "error.type"

	// attrRun is our own.
	attrRun = "correx.run.id"

	operationChat = "chat"
	tokensInput   = "input"
	tokensOutput  = "output"
	// other stands for a name beyond the bound.
	other = "_OTHER"
)

// AttrProvider is the key of a provider's name, for metrics of others that are to be joined with those of calls.
const AttrProvider = "gen_ai.provider.name"

// Bounds of histograms. An answer may take many minutes, so there are three more than the conventions name.
var (
	secondBounds = []float64{
		0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36,
	}
	tokenBounds = []float64{
		1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
	}
)
