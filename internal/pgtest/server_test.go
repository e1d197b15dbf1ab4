package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestServerKeepsCommittedRowsOverStopAndKill(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	url := server.URL()
	exec(t, url, "CREATE TABLE kept (id integer)")
	for _, end := range []struct {
		name string
		do   func()
	}{{"stop", server.Stop}, {"kill", server.Kill}} {
		exec(t, url, "INSERT INTO kept VALUES (1)")
		end.do()
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Fatalf("after %s the server still answers", end.name)
		}
		server.Start()
	}
	if server.URL() != url {
		t.Errorf("URL %s after the restarts, %s before", server.URL(), url)
	}
	var rows int
	if err := connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows after the restarts (%v), want the 2 that were committed", rows, err)
	}
}

func TestServersOfTwoTestsAreApart(t *testing.T) {
	t.Parallel()
	one, two := pgtest.NewServer(t), pgtest.NewServer(t)
	one.Stop()
	exec(t, two.URL(), "SELECT 1")
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
