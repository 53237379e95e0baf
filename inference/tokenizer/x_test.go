package x

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer/codec"
)

func TestX(t *testing.T) {
	s := time.Now()
	c := codec.NewO200kBase()
	fmt.Println("load", time.Since(s))
	c.SetErrorMode(codec.ErrorModeReplace)
	n := 1 << 20
	in := map[string]string{
		"a": strings.Repeat("a", n), "A": strings.Repeat("A", n), "sp": strings.Repeat(" ", n), "spx": strings.Repeat(" ", n) + "x", "nl": strings.Repeat("\n", n),
		"cjk": strings.Repeat("漢字", n/6), "ff": strings.Repeat("\xff", n), "zero": strings.Repeat("\x00", n), "Aa": strings.Repeat("Aa", n/2), "1": strings.Repeat("1", n),
		"bang": strings.Repeat("!", n), "bangslash": strings.Repeat("!/", n/2), "apos": strings.Repeat("a'", n/2), "prose": strings.Repeat("The quick brown fox jumps over the lazy dog. ", n/45),
		"spnl": strings.Repeat("  \n", n/3), "comb": strings.Repeat("\u0301", n/2), "emoji": strings.Repeat("👩‍👩‍👧", n/18), "Lm": strings.Repeat("ʰ", n/2), "Lt": strings.Repeat("ǅ", n/2), "tabs": strings.Repeat("\t ", n/2),
		"AL": strings.Repeat("A漢", n/4), "rand": rnd(n),
	}
	for k, v := range in {
		s := time.Now()
		m, err := c.Count(v)
		fmt.Println(k, len(v), m, err, time.Since(s))
	}
}

func rnd(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}
