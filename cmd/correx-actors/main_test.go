package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// raceOptions let children that are built with the race detector end at once; it would wait a second for late reports.
const raceOptions = "atexit_sleep_ms=10"

// TestMain lets the test binary be the program itself: scripts and tests start it as a child under its own name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"correx-actors": main, "weather-station": serveWeather})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/share")
			env.Setenv("GORACE", raceOptions)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":  exits,
			"ready":  ready,
			"within": within,
			"until":  until,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command and wants its exit code: exits CODE PROGRAM ARGS….
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits code program args…")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// ready waits for a server's ready file and makes the server the one to talk to: ready FILE.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: ready file")
	}
	url, err := readReady(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Setenv("CORREX_SERVER", url)
	ts.Setenv("ADDRESS", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/v1")) // of a fake provider, too
}

// within runs a command, which must succeed, or with ! fail, within a duration: within DURATION PROGRAM ARGS…. What starting
// the program takes does not count: the race detector and busy machines slow it.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: within duration program args…")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	started := time.Now()
	ts.Check(ts.Exec(args[1], "version"))
	limit += time.Since(started)
	started = time.Now()
	err = ts.Exec(args[1], args[2:]...)
	if (err != nil) != neg {
		ts.Fatalf("ended with %v", err)
	}
	if took := time.Since(started); took > limit {
		ts.Fatalf("took %s, at most %s are allowed", took, limit)
	}
}

// until waits for a word in what the server answers: until PATH WORD.
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: until path word")
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		body, err := get(ts.Getenv("CORREX_SERVER") + args[0])
		if err == nil && strings.Contains(body, args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s answers %q, %v", args[0], body, err)
		}
	}
}

func get(url string) (string, error) {
	resp, err := http.Get(url) //nolint:noctx // a script has none
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

// readReady waits for a ready file.
func readReady(path string) (string, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(b)), nil
		}
		if time.Now().After(deadline) {
			return "", err
		}
	}
}
