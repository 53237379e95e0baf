package inference_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

func TestCleanMessageHidesSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Incorrect API key provided: sk-abcd1234efgh5678.": "Incorrect API key provided: [redacted]",
		"key my-own-secret-key refused":                    "key [redacted] refused",
		"Authorization: Bearer abcdefghijklmnop1234":       "[redacted]",
		"got Bearer abcdefghijklmnop1234":                  "got [redacted]",
		"https://user:pass@proxy.invalid/v1":               "https:[redacted]proxy.invalid/v1",
		"api_key=0123456789&model=x":                       "[redacted]&model=x",
		"jwt eyJhbGciOiJI.eyJzdWIiOiIx.abc":                "jwt [redacted]",
		"maximum context length is 4096 tokens":            "maximum context length is 4096 tokens",
		"bearer authentication required":                   "bearer authentication required",
	} {
		require.Equal(t, want, inference.CleanMessage(text, "my-own-secret-key"), text)
	}
	require.Equal(t, "ollama is not running", inference.CleanMessage("ollama is not running", "ollama"), "a dummy key is no secret")
}

func TestCleanMessageIsOneBoundedLineOfText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b c", inference.CleanMessage("  a\r\nb\t\x1b\u202ec\x00 "))
	require.True(t, utf8.ValidString(inference.CleanMessage("a\xffb")))
	long := inference.CleanMessage(strings.Repeat("日", 1000))
	require.LessOrEqual(t, len(long), inference.MessageLimit)
	require.True(t, utf8.ValidString(long))
	require.True(t, strings.HasSuffix(long, "日…"))
	require.NotContains(t, inference.CleanMessage(strings.Repeat("x ", 240)+"sk-abcdefghijklmnopqrstuvwxyz0123456789"), "sk-")
}

func TestBoundCutsOnARuneBorder(t *testing.T) {
	t.Parallel()
	for limit := range 20 {
		cut := inference.Bound("äöü日本👍", limit)
		require.True(t, utf8.ValidString(cut), limit)
		require.LessOrEqual(t, len(cut), max(limit, len("…")))
	}
	require.Equal(t, "äöü", inference.Bound("äöü", 6))
}

func TestCleanMessageFindsSecretsThatAreBrokenUpOrCut(t *testing.T) {
	t.Parallel()
	const secret = "plain0key1of2no3shape"
	shaped := "sk-" + strings.Repeat("a", 7*inference.MessageLimit)
	for name, text := range map[string]string{
		"control characters":   "bad " + strings.Join(strings.Split(secret, ""), "\u0001"),
		"invisible":            "bad " + secret[:6] + "\u200b" + secret[6:],
		"a bound in its midst": "bad " + strings.Repeat(" ", 8*inference.MessageLimit-15) + secret,
		"after much that goes": shaped + strings.Repeat(" x", 240) + " " + secret,
	} {
		clean := inference.CleanMessage(text, secret)
		require.NotContains(t, clean, secret[:4], name)
	}
	// One of a known shape that the bound on the work cuts, behind words of which little remains.
	for pad := range 40 {
		cut := inference.CleanMessage("sk-" + strings.Repeat("a", 8*inference.MessageLimit-3-pad) + " hf_0123456789abcdef0123456789")
		require.NotContains(t, cut, "hf_", pad)
	}
}
