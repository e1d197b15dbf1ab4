package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// EnvURL names the environment variable with the URL of a running server, as
// a user who may create databases. It spares a test run a cluster per package.
const EnvURL = "PAWL_TEST_POSTGRES"

// none is the value of EnvURL with which make quick leaves out what needs
// PostgreSQL.
const none = "none"

func leaveOut(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvURL) == none {
		t.Skip("left out: " + EnvURL + " is " + none)
	}
}

// dropTimeout bounds the removal of a database after its test.
const dropTimeout = 30 * time.Second

// shared is the one server of this process. Tests that never meet must still
// find the same one, which is what a package variable is for.
var shared sharedServer //nolint:gochecknoglobals // see above

// prepared holds the databases of this process that MainPrepared prepares.
var prepared pool //nolint:gochecknoglobals // as above

// URL returns the URL of a database for this test alone: prepared, where the
// package's Main says how, else empty. When the test ends, whoever is still
// connected to it is thrown out, and nothing answers at the URL any more. Safe
// in parallel tests and inside a synctest bubble.
func URL(t testing.TB) string {
	t.Helper()
	if prepared.prepare == nil {
		return EmptyURL(t)
	}
	return prepared.lend(t, adminURL(t))
}

// EmptyURL is URL for a test that wants a database in which there is nothing,
// whatever MainPrepared says.
func EmptyURL(t testing.TB) string {
	t.Helper()
	admin, d := adminURL(t), &database{name: newName()}
	if err := d.create(t.Context(), admin, func(context.Context, string) error { return nil }); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropTimeout)
		defer cancel()
		if err := drop(ctx, admin, d.name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return addressOf(admin, d.name)
}

// SQLite returns the URL of a SQLite file for this test alone: prepared, where
// MainPrepared says how; else the file does not exist yet.
func SQLite(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pawl.db")
	if prepared.prepare != nil {
		if err := prepared.copyFile(t.Context(), path); err != nil {
			t.Fatalf("prepare a SQLite file for the test: %v", err)
		}
	}
	return "sqlite:" + path
}

// Both runs a test on SQLite and on PostgreSQL, as subtests of these names, with
// the URLs of SQLite and URL.
func Both(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, URL(t)) })
}

// BothEmpty is Both for tests that want databases in which there is nothing,
// whatever MainPrepared says.
func BothEmpty(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, EmptyURL(t)) })
}

// Main runs the tests of a package, removes the private cluster if one was
// started, and exits. A package that calls it from TestMain has nothing left
// running when it ends; without it the watcher does the same a moment later.
func Main(m *testing.M) {
	code := m.Run()
	if err := errors.Join(prepared.close(context.Background(), shared.url), shared.close()); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// MainPrepared is Main for tests whose databases are to be prepared.
func MainPrepared(m *testing.M, prepare Prepare) {
	prepared.prepare = prepare
	Main(m)
}

// adminURL returns the address of the server's administrative database.
func adminURL(t testing.TB) string {
	t.Helper()
	leaveOut(t)
	admin, err := shared.url(t.Context())
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	if address, err := url.Parse(admin); err != nil || address.Scheme == "" {
		t.Fatalf("%s must be a URL such as postgres://user@host:5432/postgres", EnvURL)
	}
	return admin
}

// sharedServer is the server of EnvURL, or a cluster started on first use.
type sharedServer struct {
	mu      sync.Mutex
	cluster *Cluster // guarded by mu
	err     error    // guarded by mu; what the one attempt to start said
}

// url returns the address of the server's administrative database.
func (s *sharedServer) url(ctx context.Context) (string, error) {
	if running := os.Getenv(EnvURL); running != "" {
		return running, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil && s.err == nil {
		s.cluster, s.err = NewFastCluster(context.WithoutCancel(ctx))
	}
	if s.err != nil {
		return "", s.err
	}
	return s.cluster.URL(), nil
}

func (s *sharedServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return nil
	}
	cluster := s.cluster
	s.cluster, s.err = nil, errors.New("the tests of this package are over")
	return cluster.Close()
}
