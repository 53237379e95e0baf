package coalesce

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// SnapshotBytes is how much of an answer a channel's snapshot holds.
const SnapshotBytes = 100_000

// reach is how far from the cut a border is looked for, in bytes. What people take for one character is far shorter; one that is
// made to be longer is cut.
const reach = 4 << 10

// Tail gives the end of a text, at most limit bytes of UTF-8, beginning where a reader sees a character begin: an emoji of many
// code points or a letter with its accents is in it whole or not at all. It looks at no more than the text around the cut.
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := len(text) - max(limit, 0)
	at := anchor(text, cut)
	for at < cut {
		cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(text[at:min(len(text), cut+reach)], -1)
		at += len(cluster)
	}
	if at >= cut+reach {
		at = runeStart(text, cut)
	}
	return text[at:]
}

// anchor finds a place at or before cut, and near it, where a character surely begins, whatever stands before.
func anchor(text string, cut int) int {
	least := runeStart(text, max(cut-reach, 0))
	at := runeStart(text, cut)
	for right := utf8.RuneError; at > least; {
		if at < len(text) {
			right, _ = utf8.DecodeRuneInString(text[at:])
		}
		left, size := utf8.DecodeLastRuneInString(text[:at])
		if at <= cut && apart(left, right) {
			return at
		}
		at -= size
	}
	return least
}

// runeStart is the first place at or behind at where a code point begins.
func runeStart(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// apart says whether two neighbors surely belong to two characters. What joins depends on more than two of them only behind
// joiners and marks (emoji of many parts, conjuncts of Indic scripts), so nothing is sure behind those.
func apart(left, right rune) bool {
	if left < utf8.RuneSelf && right < utf8.RuneSelf {
		return left != '\r' || right != '\n'
	}
	if unicode.In(left, unicode.M, unicode.Cf) {
		return false
	}
	return uniseg.GraphemeClusterCount(string([]rune{left, right})) == 2
}
