package coalesce_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/correx/correx-actors/core/coalesce"
	"github.com/correx/correx-actors/core/media"
)

// stream gives an answer of size bytes in pieces as models send them, with lines and, at its end, a directive.
func stream(size int) []string {
	var pieces []string
	for n := 0; n < size; {
		piece := "word "
		if len(pieces)%20 == 19 {
			piece = "end.\n"
		}
		pieces, n = append(pieces, piece), n+len(piece)
	}
	return append(pieces, "\nMEDIA:out/plot.png")
}

// BenchmarkAnswer coalesces whole answers of 4-byte tokens; a linear one costs the same for each byte, whatever its size.
func BenchmarkAnswer(b *testing.B) {
	cfg := coalesce.DefaultConfig()
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		pieces := stream(size)
		b.Run(fmt.Sprintf("%dkB", size/1000), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				coalesced(cfg, pieces)
			}
		})
	}
}

// coalesced runs an answer through, a piece each 10 ms, with timers, and counts what was published.
func coalesced(cfg coalesce.Config, pieces []string) int {
	var answer coalesce.Answer
	var step coalesce.Step
	published, now := 0, start
	var timer coalesce.Timer
	var at time.Time
	for _, piece := range pieces {
		now = now.Add(10 * time.Millisecond)
		if timer.Generation != 0 && !at.After(now) {
			generation := timer.Generation
			timer = coalesce.Timer{}
			if answer, step = answer.Timer(cfg, generation, now); step.Timer.Generation != 0 {
				timer, at = step.Timer, now.Add(step.Timer.After)
			}
			published += len(step.Text)
		}
		if answer, step = answer.Delta(cfg, piece, now); step.Timer.Generation != 0 {
			timer, at = step.Timer, now.Add(step.Timer.After)
		}
		published += len(step.Text)
	}
	_, final := answer.Final("")
	return published + len(final.Text)
}

// BenchmarkStrip strips whole answers, of text with a directive and of directives alone.
func BenchmarkStrip(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		for name, text := range map[string]string{
			"text": strings.Join(stream(size), ""), "directives": strings.Repeat("MEDIA:a\n", size/8), "blanks": strings.Repeat(" \n", size/2) + "MEDIA:",
		} {
			b.Run(fmt.Sprintf("%s/%dkB", name, size/1000), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					media.Strip(text)
				}
			})
		}
	}
}

// BenchmarkSnapshot costs what it gives, and nothing for what stands before it.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		for name, text := range map[string]string{"ascii": "word ", "japanese": "図書館", "marks": "\u0301"} {
			var answer coalesce.Answer
			for range size / len(text) {
				answer, _ = answer.Delta(coalesce.Config{}, text, start)
			}
			b.Run(fmt.Sprintf("%s/%dkB", name, size/1000), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					answer.Snapshot(coalesce.SnapshotBytes / 2)
				}
			})
		}
	}
}

// BenchmarkTools takes the reports of a run whose actions are many and say much.
func BenchmarkTools(b *testing.B) {
	cfg := coalesce.DefaultConfig()
	for _, count := range []int{100, 1000, 10_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var tools coalesce.Tools
				for i := range count {
					now := start.Add(time.Duration(i) * 50 * time.Millisecond)
					id := strconv.Itoa(i)
					tools, _ = tools.Action(cfg, coalesce.Action{ID: id, Kind: coalesce.KindTool, Phase: coalesce.PhaseStarted}, now)
					tools, _ = tools.Action(cfg, coalesce.Action{ID: id, Kind: coalesce.KindTool, Phase: coalesce.PhaseCompleted, OK: true}, now)
				}
			}
		})
	}
}
