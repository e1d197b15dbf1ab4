package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// EnvURL names the environment variable with the URL of a running server, as
// a user who may create databases. It spares a test run a cluster per package.
const EnvURL = "PAWL_TEST_POSTGRES"

// dropTimeout bounds the removal of a database after its test.
const dropTimeout = 30 * time.Second

// shared is the one server of this process. Tests that never meet must still
// find the same one, which is what a package variable is for.
var shared sharedServer //nolint:gochecknoglobals // see above

// URL returns the URL of a fresh, empty database for this test alone. It is
// dropped, and whoever is still connected to it thrown out, when the test
// ends. Safe in parallel tests and inside a synctest bubble.
func URL(t testing.TB) string {
	t.Helper()
	admin, err := shared.url(t.Context())
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	return createDatabase(t, admin)
}

// Both runs a test on SQLite and on PostgreSQL, as subtests of these names.
// The SQLite file does not exist yet; the PostgreSQL database is empty.
func Both(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, URL(t))
	})
}

// Main runs the tests of a package, removes the private cluster if one was
// started, and exits. A package that calls it from TestMain has nothing left
// running when it ends; without it the watcher does the same a moment later.
func Main(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
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

// createDatabase makes a database on the server of the admin URL and returns
// its URL.
func createDatabase(t testing.TB, admin string) string {
	t.Helper()
	address, err := url.Parse(admin)
	if err != nil || address.Scheme == "" {
		t.Fatalf("%s must be a URL such as postgres://user@host:5432/postgres", EnvURL)
	}
	name := "test_" + strings.ToLower(rand.Text())
	// template0, because nobody can be connected to it: a template in use
	// cannot be copied.
	if err := execute(t.Context(), admin, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropTimeout)
		defer cancel()
		if err := execute(ctx, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	address.Path = "/" + name
	return address.String()
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, address, statement string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
