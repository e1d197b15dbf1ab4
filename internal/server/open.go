package server

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// openAgain is how long to wait before a database that is away is tried again.
const openAgain = 2 * time.Second

// openDatabase opens the database. A PostgreSQL that is away is waited for, as
// long as it takes: machines come up in any order. Meanwhile whoever watches is
// told that the process lives and is not ready, and the log says why. What does
// not get better by waiting, such as a wrong password, is an error at once.
func (s *server) openDatabase(ctx context.Context, holder string) (*store.DB, error) {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for {
		db, err := store.Open(ctx, s.cfg.Database, store.Options{Log: s.log, Holder: holder, Trace: s.cfg.Trace})
		if err == nil || !store.IsAway(err) {
			return db, err
		}
		s.log.Warn("the database is waited for", "err", err)
		if stop == nil {
			stop = serveWaiting(s.listen)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(openAgain):
		}
	}
}

// serveWaiting answers probes until it is told to stop; the listener stays open.
func serveWaiting(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	say := func(path string, status int, words any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(words)
		})
	}
	say("/healthz", http.StatusOK, map[string]string{"status": "ok"})
	away := map[string]any{"status": "unavailable", "checks": map[string]string{"database": "the database cannot be reached"}}
	say("/readyz", http.StatusServiceUnavailable, away)
	say("/", http.StatusServiceUnavailable, map[string]any{
		"title": http.StatusText(http.StatusServiceUnavailable), "status": http.StatusServiceUnavailable, "code": pawl.CodeUnavailable,
		"detail": "The database cannot be reached.",
	})
	probes := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	probes.SetKeepAlivesEnabled(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = probes.Serve(borrowed{l})
	}()
	return func() {
		_ = probes.Close()
		<-done
		_ = setDeadline(l, time.Time{})
	}
}

// borrowed is a listener that somebody else goes on with: closing it only ends
// the wait for connections.
type borrowed struct{ net.Listener }

func (b borrowed) Close() error { return setDeadline(b.Listener, time.Unix(1, 0)) }

func setDeadline(l net.Listener, t time.Time) error {
	if d, ok := l.(interface{ SetDeadline(t time.Time) error }); ok {
		return d.SetDeadline(t)
	}
	return errors.ErrUnsupported
}
