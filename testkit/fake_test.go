package testkit_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fakeTB is a testing.TB whose failures a test can look at.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	log      strings.Builder
	cleanups []func()
}

func newFakeTB(tb testing.TB) *fakeTB {
	tb.Helper()
	return &fakeTB{TB: tb}
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fakeTB) cleanup() {
	for _, c := range f.cleanups {
		c()
	}
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(&f.log, format+"\n", args...)
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) FailNow() { runtime.Goexit() }

func (f *fakeTB) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// fails runs do, which may end the test that it believes to be in, and gives what it said.
func (f *fakeTB) fails(do func()) string {
	before := len(f.text())
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	return f.text()[before:]
}
