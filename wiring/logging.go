package wiring

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"go.uber.org/fx"
)

var logging = fx.Provide(func(cfg Config) *slog.Logger { return NewLogger(cfg.Log, os.Stderr) })

// NewLogger makes the logger that cfg describes.
func NewLogger(cfg Log, w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(cfg.Level)) // Validate has seen it
	if cfg.Format == FormatJSON {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, NoColor: !isTerminal(w), TimeFormat: "15:04:05.000"}))
}

// isTerminal says whether colors would be seen.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
