package pgtest_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestURLGivesEachTestAnEmptyDatabaseOfItsOwn(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, pgtest.URL(t))
			// The same name in every database: a shared one would refuse it.
			if _, err := conn.Exec(t.Context(), "CREATE TABLE marker (id integer)"); err != nil {
				t.Fatalf("create a table in a fresh database: %v", err)
			}
		})
	}
}

func TestURLDropsTheDatabaseThatIsStillInUse(t *testing.T) {
	var url string
	t.Run("leaves a connection open", func(t *testing.T) {
		url = pgtest.URL(t)
		if _, err := pgx.Connect(t.Context(), url); err != nil {
			t.Fatalf("connect to a fresh database: %v", err)
		}
	})
	if _, err := pgx.Connect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Fatalf("connect after the test ended: %v, want that the database does not exist", err)
	}
}

func TestAServerOfItsOwnKeepsTheDurabilityOfARealOne(t *testing.T) {
	conn := connect(t, pgtest.NewServer(t).URL())
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "server_encoding": "UTF8",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil {
			t.Fatalf("read %s: %v", setting, err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
}

func TestURLWorksInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect(t, pgtest.URL(t))
	})
}

// Packages that look for leaked goroutines must not find those of pgtest.
func TestURLLeavesNoGoroutineBehind(t *testing.T) {
	existing := goleak.IgnoreCurrent()
	t.Run("uses a database", func(t *testing.T) { connect(t, pgtest.URL(t)) })
	goleak.VerifyNone(t, existing)
}

func TestBothRunsOnSQLiteAndOnPostgreSQL(t *testing.T) {
	got := map[string]string{}
	pgtest.Both(t, func(t *testing.T, url string) { got[t.Name()] = url })
	if len(got) != 2 {
		t.Fatalf("subtests %v, want sqlite and postgres", got)
	}
	path, found := strings.CutPrefix(got[t.Name()+"/sqlite"], "sqlite:")
	if !found || !filepath.IsAbs(path) {
		t.Errorf("sqlite URL %q, want sqlite: and an absolute path", got[t.Name()+"/sqlite"])
	}
	if url := got[t.Name()+"/postgres"]; !strings.HasPrefix(url, "postgres") {
		t.Errorf("postgres URL %q", url)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect to the test's database: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
