package route

import "strings"

// windows are the context windows of model families, in tokens. A name belongs to the longest family that it begins with.
// Where a family's members differ, or a provider serves less than the model can, the smaller number stands here: a prompt
// that is too short costs memory of the conversation, one that is too long costs the answer.
var windows = map[string]int{
	"gpt-3.5-turbo":        16_385,
	"gpt-4":                8_192,
	"gpt-4-turbo":          128_000,
	"gpt-4.1":              1_047_576,
	"gpt-4.5":              128_000,
	"gpt-4o":               128_000,
	"chatgpt-4o":           128_000,
	"gpt-5":                272_000,
	"gpt-5-chat":           128_000,
	"gpt-oss":              131_072,
	"codex-mini":           200_000,
	"computer-use-preview": 8_192,
	"o1":                   200_000,
	"o1-mini":              128_000,
	"o1-preview":           128_000,
	"o3":                   200_000,
	"o4-mini":              200_000,
	"claude":               200_000,
	"claude-2":             100_000,
	"gemini-1.5":           1_048_576,
	"gemini-2":             1_048_576,
	"gemini-3":             1_048_576,
	"deepseek":             65_536,
	"llama-2":              4_096,
	"llama2":               4_096,
	"llama-3":              8_192,
	"llama3":               8_192,
	"llama-3.1":            131_072,
	"llama-3.2":            131_072,
	"llama-3.3":            131_072,
	"mistral-7b":           32_768,
	"mistral-large":        131_072,
	"mistral-medium":       131_072,
	"mistral-nemo":         131_072,
	"mistral-small":        32_768,
	"ministral":            131_072,
	"mixtral-8x7b":         32_768,
	"mixtral-8x22b":        65_536,
	"qwen2.5":              32_768,
	"qwen3":                32_768,
	"gemma-2":              8_192,
	"gemma2":               8_192,
	"gemma-3":              32_768,
	"gemma3":               32_768,
	"command-a":            256_000,
	"command-r":            128_000,
	"phi-3":                4_096,
	"phi-3.5":              131_072,
	"phi-4":                16_384,
	"glm-4.5":              131_072,
	"glm-4.6":              131_072,
	"kimi-k2":              131_072,
	"grok-3":               131_072,
	"grok-4":               256_000,
	"moonshot-v1-8k":       8_192,
	"moonshot-v1-32k":      32_768,
	"moonshot-v1-128k":     131_072,
	"sonar":                127_072,
}

// Window tells the context window of a model by its name, in tokens; 0 = unknown. The name may have a path or a fine-tuning
// mark around it ("openai/gpt-4o", "ft:gpt-4o-mini:acme").
func Window(model string) int {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	window, longest := 0, 0
	for family, tokens := range windows {
		if rest, ok := strings.CutPrefix(name, family); ok && len(family) > longest && goesOn(rest) {
			window, longest = tokens, len(family)
		}
	}
	return window
}

// goesOn says whether a family's name ends here: gpt-4o is no gpt-4, and o10 no o1.
func goesOn(rest string) bool {
	return rest == "" || strings.ContainsRune("-:@._", rune(rest[0]))
}
