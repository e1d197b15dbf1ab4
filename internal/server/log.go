package server

import (
	"io"
	"log/slog"
)

func logLevel(name string) (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(name))
	return l, err
}

// newLogger writes structured lines, as text or JSON.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	l, err := logLevel(level)
	if err != nil {
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
