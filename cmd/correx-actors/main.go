// Command correx-actors serves persistent conversations and talks to them.
package main

import (
	"os"

	"github.com/correx/correx-actors/cmd/correx-actors/tui"
)

func main() { os.Exit(execute()) }

// execute runs the process's command and gives its exit code.
func execute() int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	if screen := (tui.Screen{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: a.environ}); screen.Usable() {
		a.fullScreen = screen.Run
	}
	return run(os.Args[1:], a)
}
