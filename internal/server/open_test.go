package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// lines gathers what a server logs.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// A server that is started while PostgreSQL is away lives, says that it is not
// ready, and works once the database is there.
func TestServerWaitsForItsDatabase(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	p.Refuse()
	log := &lines{}
	cfg := Default()
	cfg.Addr, cfg.Data, cfg.Database, cfg.Logs = freeAddr(t), t.TempDir(), p.URL(), log
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	started, done := make(chan Started, 1), make(chan error, 1)
	go func() { done <- Run(ctx, cfg, func(s Started) { started <- s }) }()
	client := &http.Client{Timeout: 5 * time.Second}
	get := func(path string) (int, string) {
		resp, err := client.Get("http://" + cfg.Addr + path)
		if err != nil {
			return 0, ""
		}
		defer resp.Body.Close() //nolint:errcheck // a test
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	eventually(t, "it says that it is not ready", func() bool {
		status, body := get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "the database cannot be reached")
	})
	if status, _ := get("/healthz"); status != http.StatusOK {
		t.Errorf("health %d", status)
	}
	if !log.has("the database is waited for") {
		t.Error("the log does not say why")
	}
	p.Resume()
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("it ended: %v", err)
	case <-time.After(60 * time.Second):
		t.Fatal("it did not start")
	}
	eventually(t, "it is ready", func() bool { status, _ := get("/readyz"); return status == http.StatusOK })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What does not get better by waiting is an error at once.
func TestServerDoesNotWaitForADatabaseThatRefusesIt(t *testing.T) {
	url := pgtest.URL(t)
	cfg := Default()
	cfg.Addr, cfg.Data, cfg.Logs = "127.0.0.1:0", t.TempDir(), io.Discard
	cfg.Database = strings.Replace(url, "/test_", "/gone_", 1)
	if err := Run(t.Context(), cfg, func(Started) { t.Error("it started") }); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a database that does not exist: %v", err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test
	return l.Addr().String()
}

// A job of a user that takes long keeps nothing else waiting: every task that
// calls the outside for others has workers of its own.
func TestUsersTasksHaveWorkersOfTheirOwn(t *testing.T) {
	cfg := Default()
	cfg.Addr, cfg.Data, cfg.Workers, cfg.Logs = "127.0.0.1:0", t.TempDir(), 3, io.Discard
	cfg.Database = "sqlite:" + filepath.Join(cfg.Data, "pawl.db")
	s := &server{cfg: cfg, log: newLogger(cfg.Logs, "text", "error")}
	defer s.close()
	if err := s.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	pools := s.pools()
	for name, task := range s.queue.Tasks() {
		if !task.Internal && (task.Pool != userPool || pools[userPool] != 3) {
			t.Errorf("%s is for users and runs in the pool %q of %d", name, task.Pool, pools[task.Pool])
		}
		if task.Internal && task.Pool == userPool {
			t.Errorf("%s is no task of users", name)
		}
	}
	for _, name := range []string{"pawl.notify", "pawl.heartbeat"} {
		if s.queue.Tasks()[name].Pool != noticePool {
			t.Errorf("%s has no workers of its own", name)
		}
	}
}

// A data folder that was copied while its node lives gets an id of its own, for
// good; the node keeps its own.
func TestCopiedDataFolderGetsAnIdForGood(t *testing.T) {
	database := pgtest.URL(t)
	run := func(dir string) (stop func()) {
		cfg := Default()
		cfg.Addr, cfg.Data, cfg.Database, cfg.Logs = "127.0.0.1:0", dir, database, io.Discard
		ctx, cancel := context.WithCancel(context.Background())
		started, done := make(chan Started, 1), make(chan error, 1)
		go func() { done <- Run(ctx, cfg, func(s Started) { started <- s }) }()
		stop = sync.OnceFunc(func() { cancel(); <-done })
		t.Cleanup(stop)
		url := (<-started).URL
		eventually(t, "it is ready", func() bool {
			resp, err := http.Get(url + "/readyz")
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
		return stop
	}
	id := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "node.id"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	original, clone := t.TempDir(), t.TempDir()
	stop := run(original)
	first := id(original)
	if err := os.WriteFile(filepath.Join(clone, "node.id"), []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	run(clone)
	if id(original) != first || id(clone) == first {
		t.Errorf("they are %s and %s, the original was %s", id(original), id(clone), first)
	}
	stop()
	run(original)
	if id(original) != first {
		t.Error("the original lost its id at a restart")
	}
}
