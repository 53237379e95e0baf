package inference

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MessageLimit is the length in bytes that an Error's Message does not exceed.
const MessageLimit = 500

const redacted = "[redacted]"

// secretShapes are texts that look like a credential, whoever's it is: providers quote the key that they refuse, and
// proxies quote whole requests. A false hit costs a word of an error text, a miss puts a key into logs and clients.
var secretShapes = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho)[-_][A-Za-z0-9*._-]{8,}`),
	regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{16,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`),
	regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[A-Za-z0-9*._~+/=-]{16,}`),
	regexp.MustCompile(`(?i)\b(?:api[-_ ]?key|access[-_]?token|token|secret|password|authorization)["']?\s*[:=]\s*["']?[^\s"'&,;}]{6,}`),
	regexp.MustCompile(`//[^/\s:@]+:[^/\s@]+@`),
}

// CleanMessage makes a provider's text fit for an Error: without the given secrets and without anything that looks like
// one, on one line, without control characters (it is shown on terminals), valid UTF-8 and at most MessageLimit bytes.
//
// The order matters: what is invisible would hide a secret from the search for it, and a cut would leave a part of one.
func CleanMessage(text string, secrets ...string) string {
	text = oneLine(text)
	for _, secret := range secrets {
		// Local servers get dummies such as "none" or "ollama": as secrets they would only mangle the text.
		if secret = oneLine(secret); len(secret) >= 8 {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	// Bounded before the patterns run: a body may be large. The cut word goes as a whole, since it may be a part of a key.
	if bound := 8 * MessageLimit; len(text) > bound {
		text = strings.ToValidUTF8(text[:bound], "")
		if end := strings.LastIndexByte(text, ' '); end >= bound/2 {
			text = text[:end]
		}
		text += "…"
	}
	for _, shape := range secretShapes {
		text = shape.ReplaceAllString(text, redacted)
	}
	return Bound(strings.ToValidUTF8(text, ""), MessageLimit)
}

// oneLine drops what is not to be seen and folds white space.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

// Bound cuts text to at most limit bytes on a rune border; a cut text ends in an ellipsis.
func Bound(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
