// Command correx-actors serves persistent conversations and talks to them.
package main

import (
	"os"
)

func main() { os.Exit(execute()) }

// execute runs the process's command and gives its exit code.
func execute() int {
	return run(os.Args[1:], &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()})
}
