package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/correx/correx-actors/wiring"
)

const (
	// Below littleDisk a warning is given, below noDisk the check fails.
	littleDisk = 1 << 30
	noDisk     = 100 << 20
	// clockWatch is how long the clocks are watched at least, clockDrift what they may differ by.
	clockWatch = 200 * time.Millisecond
	clockDrift = 50 * time.Millisecond
)

func (c *checkup) configuration(loaded wiring.Loaded, err error) finding {
	var found finding
	switch {
	case err != nil:
		found = failed("correct it; correx-actors config schema describes all settings", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(loaded.Warnings) > 0:
		found = warned("", "%s", strings.Join(loaded.Warnings, "; "))
	case len(loaded.Origins) == 0:
		found = passed("all settings have their defaults")
	default:
		found = passed("%s, the rest are defaults; correx-actors config show prints all", number(len(loaded.Origins), "own setting"))
	}
	c.cfg = loaded.Config
	found.Check = "configuration"
	return found
}

func (c *checkup) dataFolder(context.Context) finding {
	if c.cfg.Journal.Driver == wiring.DriverMemory {
		return warned("", "the journal is in memory: everything is forgotten at the end")
	}
	folder, missing := existing(c.cfg.DataDir)
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return failed("set data_dir to another folder", "%v", err)
	case !info.IsDir():
		return failed("set data_dir to another folder", "%s is no folder", folder)
	}
	if err := writable(folder); err != nil {
		return failed("give the server's user the right to write there, or set data_dir to another folder", "%s cannot be written to: %v", folder, err)
	}
	if network(folder) {
		return failed("set data_dir to a local disk: the journal needs locks and mapped memory that hold", "%s is on a network file system", folder)
	}
	if missing {
		return passed("%s, which the first start makes", c.cfg.DataDir)
	}
	return passed("%s", c.cfg.DataDir)
}

// existing gives path, or where it does not exist the nearest folder above it that does.
func existing(path string) (folder string, missing bool) {
	for {
		_, err := os.Stat(path)
		above := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || above == path {
			return path, missing
		}
		path, missing = above, true
	}
}

func (c *checkup) journal(context.Context) finding {
	if c.cfg.Journal.Driver == wiring.DriverMemory {
		return passed("in memory")
	}
	state, err := c.cfg.ExamineJournal()
	c.state = state
	switch {
	case err != nil && errors.Is(err, fs.ErrPermission):
		return failed("run this as the server's user", "%v", err)
	case err != nil:
		return failed("put a backup in its place, and keep the damaged file", "%v", err)
	case !state.Exists:
		return passed("none yet: the first start makes it")
	case state.Holder != "":
		return passed("in use by a running server (%s), so it was not looked into", state.Holder)
	}
	detail := fmt.Sprintf("%s in %s, %s, %s, sound", number(int(state.Events), "event"), number(int(state.Sessions), "session"), //nolint:gosec // for people
		size(uint64(state.Size)), number(int(state.Boots), "start")) //nolint:gosec // not negative; for people
	if state.OldMeta {
		return warned("nothing to do: this is how a power cut looks", "%s; its last commit may be missing", detail)
	}
	return passed("%s", detail)
}

func (c *checkup) disk(context.Context) finding {
	if c.cfg.Journal.Driver == wiring.DriverMemory {
		return passed("not needed")
	}
	folder, _ := existing(c.cfg.DataDir)
	free, err := freeBytes(folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return warned("", "not measured on this system")
	case err != nil:
		return failed("", "%v", err)
	case free < noDisk:
		return failed("free some space: without it turns are refused", "%s free", size(free))
	case free < littleDisk:
		return warned("free some space: when it is used up turns are refused", "%s free", size(free))
	}
	return passed("%s free", size(free))
}

func (c *checkup) provider(context.Context) finding {
	name := c.cfg.Answering()
	if name == wiring.ProviderOffline {
		return passed("offline: no model, an embedded engine answers by rules; set OPENAI_API_KEY or OPENAI_BASE_URL for one")
	}
	if name != wiring.ProviderOpenAI {
		return passed("%s; correx-actors doctor provider URL examines it", name)
	}
	base := "OpenAI's own endpoint"
	if c.cfg.OpenAI.BaseURL != "" {
		base = c.cfg.OpenAI.BaseURL.String()
	}
	key := "with a key"
	if c.cfg.OpenAI.APIKey == "" {
		key = "without a key"
	}
	return passed("openai, model %s at %s, %s; correx-actors doctor provider examines it", c.cfg.OpenAI.Model, base, key)
}

// toolServers adds a line for each MCP server. One that is away stops nothing, so it is no failure.
func (c *checkup) toolServers(ctx context.Context) {
	for _, s := range c.cfg.ExamineMCP(ctx, slog.New(slog.DiscardHandler)) {
		found := passed("%s, offered as %s__…", number(s.Tools, "tool"), s.Name)
		if s.Trouble != "" {
			found = warned("correct its entry in mcp.servers, or start it; until then models cannot call its tools", "%s", s.Trouble)
		}
		found.Check = "mcp " + s.Name
		c.add(found)
	}
}

func (c *checkup) port(ctx context.Context) finding {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.cfg.Listen)
	if err == nil {
		address := listener.Addr().String()
		if err := listener.Close(); err != nil {
			return failed("", "%v", err)
		}
		if host, port, _ := net.SplitHostPort(c.cfg.Listen); port == "0" {
			return passed("any free port of %s", host)
		}
		return passed("%s is free", address)
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return failed("set listen to another address", "%v", err)
	}
	switch state := ask(ctx, "http://"+c.cfg.Listen); state {
	case serverReady:
		return passed("a correx-actors server serves at %s", c.cfg.Listen)
	case serverBusy:
		return warned("wait until its drain is over, or look into its log", "the correx-actors server at %s takes no new turns", c.cfg.Listen)
	case serverOther:
	}
	return failed("stop it, or set listen to another address", "another program holds %s", c.cfg.Listen)
}

// clock watches the clocks for a moment.
func (c *checkup) clock(ctx context.Context) finding {
	if left := clockWatch - time.Since(c.started); left > 0 {
		_ = pause(ctx, left) // whoever stops it gets a shorter watch
	}
	now := time.Now()
	return clockReading{
		now: now, built: builtAt(), changed: c.state.Modified, steady: now.Sub(c.started), wall: now.Round(0).Sub(c.started.Round(0)),
	}.judged()
}

// clockReading is what is known of the clocks: the time, that of this program's build and of the journal's last change, and
// how far the monotonic and the wall clock went meanwhile.
type clockReading struct {
	now, built, changed time.Time
	steady, wall        time.Duration
}

func (c clockReading) judged() finding {
	const advice = "set it, best by NTP: ids, expiries and the order of events need it"
	shown := c.now.UTC().Format(time.RFC3339)
	switch jump := c.wall - c.steady; {
	case c.now.Before(c.built):
		return failed(advice, "%s is before this program was built, %s", shown, c.built.UTC().Format(time.RFC3339))
	case c.changed.Sub(c.now) > time.Minute:
		return failed(advice, "%s is before the journal's last change, %s", shown, c.changed.UTC().Format(time.RFC3339))
	case jump.Abs() > clockDrift:
		return warned("find out what sets it in steps", "%s, but it jumped by %s within %s",
			shown, jump.Round(time.Millisecond), c.steady.Round(time.Millisecond))
	}
	return passed("%s, steady", shown)
}

// builtAt is the time of the commit that this program was built from; zero if it is not known.
func builtAt() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			built, err := time.Parse(time.RFC3339, s.Value)
			if err == nil {
				return built
			}
		}
	}
	return time.Time{}
}

// size gives bytes as people read them.
func size(bytes uint64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
