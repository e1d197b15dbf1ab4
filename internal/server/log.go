package server

import (
	"context"
	"io"
	"log/slog"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/telemetry"
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

// logRun tells the log how a run begins and ends.
func (s *server) logRun(e ledger.Event, of lane.Ref) {
	level, r := slog.LevelDebug, &e.Run
	switch e.What {
	case ledger.Advanced, ledger.Resumed:
		return
	case ledger.Stopped:
		if stopsUntold(r.Kind) {
			level = slog.LevelInfo
		}
	case ledger.Begun, ledger.Started, ledger.Committed, ledger.Crashed, ledger.Cancelled:
	}
	ctx := telemetry.With(context.Background(), r.Trace)
	if !s.log.Enabled(ctx, level) {
		return
	}
	values := []any{"what", e.What, "run", r.ID, "kind", r.Kind, "lane", of.Name, "handler", r.Handler, "attempt", r.Attempt, "phase", r.Phase, "status", r.Status}
	if r.ErrorCode != "" {
		values = append(values, "code", r.ErrorCode, "error", r.ErrorMessage)
	}
	s.log.Log(ctx, level, "a run changed", values...)
}
