package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextOfOthersCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a[31mred]0;title\tb\nnext \u05d0 abc é 🙂",
		visible("a\x1b[31mred\x1b]0;title\a\tb\r\n\u009bnext \u05d0\u202e a\u2066bc\x00 é 🙂"))
}
