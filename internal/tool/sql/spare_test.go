package sqltool

import (
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func backend(t *testing.T, d *Database) float64 {
	t.Helper()
	return query(t, d, "select pg_backend_pid() as pid")[0].(object)["pid"].(float64)
}

func TestReadsInARowShareASession(t *testing.T) {
	d := open(t, pgtest.URL(t))
	first := backend(t, d)
	same(t, first, backend(t, d))
	// What a read left behind is gone.
	query(t, d, "select pg_advisory_lock(7)::text, set_config('search_path', 'elsewhere', false) as path, set_config('x.y', 'z', false) as xy")
	same(t, first, backend(t, d))
	same(t, []any{object{"locks": 0.0, "path": `"$user", public`, "xy": ""}},
		query(t, d, "select (select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())) as locks, current_setting('search_path') as path, current_setting('x.y', true) as xy"))
	// A change has a session of its own.
	if pid := do(t, d, callOf(t, "exec", "k", "select pg_backend_pid() as pid"))["rows"].([]any)[0].(object)["pid"]; pid == first {
		t.Error("a change uses the session of a read")
	}
}

func TestABrokenSpareIsNoticed(t *testing.T) {
	address := pgtest.URL(t)
	d, admin := open(t, address), open(t, address)
	first := backend(t, d)
	query(t, admin, "select pg_terminate_backend($1, 5000) as gone", first)
	if second := backend(t, d); second == first {
		t.Error("the session is still there")
	}
	// One that failed or was cut short is not used again.
	second := backend(t, d)
	_ = fail(t, d, callOf(t, "query", "", "select 1 / 0"))
	third := backend(t, d)
	if third == second {
		t.Error("a session is used again after an error")
	}
	d.limit.rows = 1
	query(t, d, "select * from generate_series(1, 1000000) as n")
	if backend(t, d) == third {
		t.Error("a session is used again in the middle of an answer")
	}
}

func TestCloseLetsSparesGo(t *testing.T) {
	address := pgtest.URL(t)
	d, admin := open(t, address), open(t, address)
	pid := backend(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if rows := query(t, admin, "select pg_sleep(0.01)::text from pg_stat_activity where pid = $1", pid); len(rows) == 0 {
			backend(t, d) // calls stay possible, and leave nothing
			same(t, 0, len(d.engine.(*postgres).spares.idle))
			return
		}
	}
	t.Error("the session is still there")
}
