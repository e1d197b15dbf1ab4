package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// shopRole makes a role that may use the functions of the schema pawl, with a schema of
// its own, and returns how it logs in.
func shopRole(t *testing.T, database string) string {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf("shop_%x", rand.Uint64())
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	for _, sql := range []string{
		`create role ` + role + ` login in role pawl_app`, `create schema shop authorization ` + role, `alter role ` + role + ` set search_path = shop`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{`drop owned by ` + role + ` cascade`, `drop role ` + role} {
			if _, err := admin.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		_ = admin.Close(context.Background())
	})
	return at.String()
}

// application is a program with tables of its own and such a role.
func application(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	app, err := pgx.Connect(t.Context(), shopRole(t, database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	if _, err := app.Exec(t.Context(), `create table orders (id int primary key)`); err != nil {
		t.Fatal(err)
	}
	return app
}

// order commits, or not, an order together with the job that tells the world of
// it, and returns the job's id.
func order(t *testing.T, app *pgx.Conn, n int, to string, commit bool) (id string) {
	t.Helper()
	tx, err := app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into orders values ($1)`, n); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), `select pawl.add_job('http', jsonb_build_object('url', $1::text))::text`, to).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if !commit {
		err = tx.Rollback(t.Context())
	} else {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A job that an application committed with its own data runs once, at once, when
// the server is there, when it dies right after, and when it comes later; one that
// was rolled back never does.
func TestApplicationsCommitJobsWithTheirData(t *testing.T) {
	database := pgtest.URL(t)
	u := newUpstream(t)
	s := serve(t, database)
	app := application(t, database)
	began := time.Now()
	ids := []string{order(t, app, 1, u.URL+"/1", true)}
	s.eventually("the job succeeded", func() bool { return s.job(ids[0]).State == "succeeded" })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	order(t, app, 2, u.URL+"/never", false)
	ids = append(ids, order(t, app, 2, u.URL+"/2", true))
	s.kill()
	order(t, app, 3, u.URL+"/never", false)
	ids = append(ids, order(t, app, 3, u.URL+"/3", true))
	s.start()
	for _, id := range ids {
		s.eventually("job "+id+" succeeded", func() bool { return s.job(id).State == "succeeded" })
		if n := u.got(s.job(id).ID); n != 1 && (id != ids[1] || n != 2) { // the one that was killed with the server may have been sent
			t.Errorf("job %s was sent %d times", id, n)
		}
		var told string
		if err := app.QueryRow(t.Context(), `select state from pawl.job_state where id = $1`, id).Scan(&told); err != nil || told != "succeeded" {
			t.Errorf("the application is told %q, %v", told, err)
		}
	}
	if n := u.total(); n > 4 {
		t.Errorf("%d calls", n)
	}
}
