package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestMain(m *testing.M) {
	script.WorkerMain() // the tests' own program is what their pools start
	migrated.Main(m)
}

// A data folder has one identity: a second living process gets another, and
// the successor of a dead one the same.
func TestIdentityBelongsToTheDataFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := identify(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := identify(dir)
	if err != nil || second.id == first.id {
		t.Errorf("a second living process has the same identity (%v)", err)
	}
	first.close() // as the kernel does when a process dies
	heir, err := identify(dir)
	if err != nil || heir.id != first.id {
		t.Errorf("the successor is %s, want %s (%v)", heir.id, first.id, err)
	}
	heir.close()
	if err := os.WriteFile(filepath.Join(dir, "node.id"), []byte("garbage that is longer than an id would ever be, by far"), 0o600); err != nil {
		t.Fatal(err)
	}
	healed, err := identify(dir)
	if err != nil || healed.id == "" {
		t.Fatalf("damaged file: %v", err)
	}
	healed.close()
	again, err := identify(dir)
	if err != nil || again.id != healed.id {
		t.Errorf("a damaged id was not replaced for good: %s, then %s (%v)", healed.id, again.id, err)
	}
	again.close()
}

func TestAdminTokenIsKeptLearnedAndStaysRevoked(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		log := slog.New(slog.DiscardHandler)
		dir := t.TempDir()
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // a test
		path, err := ensureAdminToken(t.Context(), db, dir, log)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(path)
		if _, err := ensureAdminToken(t.Context(), db, dir, log); err != nil {
			t.Fatal(err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(text) {
			t.Error("the token changed at the second start")
		}
		token, err := readToken(path)
		if err != nil {
			t.Fatal(err)
		}
		known, err := userstore.On(db).TokenByText(t.Context(), token)
		if err != nil {
			t.Fatalf("the token does not work: %v", err)
		}
		other, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "other.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close() //nolint:errcheck // a test
		if _, err := ensureAdminToken(t.Context(), other, dir, log); err != nil {
			t.Fatal(err)
		}
		if _, err := userstore.On(other).TokenByText(t.Context(), token); err != nil {
			t.Errorf("another database did not learn the token: %v", err)
		}
		err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := userstore.In(tx).RevokeToken(ctx, known.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ensureAdminToken(t.Context(), db, dir, log); err != nil {
			t.Fatal(err)
		}
		if got, err := userstore.On(db).TokenByText(t.Context(), token); err == nil && got.RevokedAt.IsZero() {
			t.Error("a restart brought a revoked token back")
		}
	})
}

func TestConfigurationIsCheckedBeforeAnythingStarts(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"addr":        func(c *Config) { c.Addr = "nowhere" },
		"database":    func(c *Config) { c.Database = "mysql://x" },
		"data":        func(c *Config) { c.Data = "" },
		"workers":     func(c *Config) { c.Workers = 0 },
		"sourceQueue": func(c *Config) { c.SourceQueue = -1 },
		"no roles":    func(c *Config) { c.Roles = nil },
		"odd role":    func(c *Config) { c.Roles = []string{"leader"} },
		"logFormat":   func(c *Config) { c.LogFormat = "xml" },
		"logLevel":    func(c *Config) { c.LogLevel = "loud" },
		"payload":     func(c *Config) { c.MaxPayload = 0 },
		"definitions": func(c *Config) { c.Dirs = []string{"missing"} },
		"private":     func(c *Config) { c.AllowPrivate = []string{"300.1.1.1"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			cfg.Data = filepath.Join(t.TempDir(), "data")
			cfg.Database = "sqlite:" + filepath.Join(cfg.Data, "pawl.db")
			change(&cfg)
			err := Run(t.Context(), cfg, func(Started) { t.Error("it started") })
			e, ok := errors.AsType[*pawl.Error](err)
			if !ok || e.Hint == "" {
				t.Errorf("no hint in %v", err)
			}
			if _, err := os.Stat(cfg.Data); err == nil && cfg.Data != "" {
				t.Error("it left a data folder behind")
			}
		})
	}
}

func TestTakenPortIsExplainedAndTouchesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test
	cfg := Default()
	cfg.Addr, cfg.Data = l.Addr().String(), filepath.Join(t.TempDir(), "data")
	cfg.Database = "sqlite:" + filepath.Join(cfg.Data, "pawl.db")
	err = Run(t.Context(), cfg, func(Started) {})
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeConflict || e.Hint == "" {
		t.Errorf("taken port gave %v", err)
	}
	if _, err := os.Stat(cfg.Data); err == nil {
		t.Error("it left a data folder behind")
	}
}

// A process without the role api still answers those who watch it.
func TestWorkerRoleServesProbesOnly(t *testing.T) {
	cfg := Default()
	cfg.Addr, cfg.Data, cfg.Roles = "127.0.0.1:0", t.TempDir(), []string{RoleWorker}
	cfg.Database, cfg.Logs = "sqlite:"+filepath.Join(cfg.Data, "pawl.db"), io.Discard
	ctx, stop := context.WithCancel(t.Context())
	started := make(chan Started, 1)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, func(s Started) { started <- s }) }()
	s := <-started
	client := &http.Client{Timeout: 10 * time.Second}
	for path, want := range map[string]int{"/healthz": 200, "/api/v1/jobs": 404} {
		resp, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}
