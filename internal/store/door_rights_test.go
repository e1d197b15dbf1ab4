package store

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// The role of applications can do what the door offers, and nothing else.
func TestDoorOpensNothingElse(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `create table public.applications_own (id int)`)
	list := func(sql string) []string {
		rows, err := k.admin.Query(k.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", sql, names, err)
		}
		return names
	}
	for _, c := range []struct{ what, sql, want string }{
		{"tables, views and sequences", `select c.oid::regclass::text || ' ' || p from pg_class c join pg_namespace n on n.oid = c.relnamespace, unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p
			where c.relkind in ('r', 'v', 'm', 'p', 'f') and n.nspname in ('public', 'pawl') and has_table_privilege('pawl_app', c.oid, p) order by 1`, "pawl.job_state select"},
		{"columns", `select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where c.relkind in ('r', 'v') and n.nspname in ('public', 'pawl') and has_any_column_privilege('pawl_app', c.oid, 'select, insert, update') order by 1`, "pawl.job_state"},
		{"functions", `select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
			where n.nspname in ('public', 'pawl') and has_function_privilege('pawl_app', p.oid, 'execute') order by 1`, "add_job add_jobs cancel_job publish"},
		{"schemas", `select n.nspname || ' ' || p from pg_namespace n, unnest(array['create', 'usage']) p
			where n.nspname in ('public', 'pawl') and has_schema_privilege('pawl_app', n.oid, p) order by 1`, "pawl usage public usage"},
		{"attributes", `select concat_ws(' ', rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls) from pg_roles where rolname = 'pawl_app'`, "f f f f f f"},
	} {
		if got := strings.Join(list(c.sql), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	if n := one[int](k, k.admin, `select count(*) from pg_sequences where schemaname = 'pawl' and has_sequence_privilege('pawl_app', schemaname || '.' || sequencename, 'usage, select, update')`); n != 0 {
		t.Errorf("%d sequences can be used", n)
	}
	for _, sql := range []string{
		`select * from jobs`, `insert into jobs select * from jobs`, `update users set role = 'admin'`, `delete from audit_log`, `select * from tokens`, `truncate jobs`,
		`select pawl._owner()`, `select pawl._put('', 'pawl.prune', '{}', null, null, null, 'replace', 0, 1, null, false)`, `select * from pawl._live`, `select nextval('pawl._ids')`,
		`select * from pawl._known`, `update pawl._known set users = '{}'`, `delete from pawl._known`,
		`create table pawl.mine (id int)`, `create function pawl._owner() returns text language sql as 'select 1'`, `drop view pawl.job_state`,
		`alter function pawl.add_job(text, jsonb, timestamptz, text, text, text, int, int) set search_path = public`, `set role postgres`, `set session authorization postgres`,
		`grant pawl_app to pawl_app`, `update pawl.job_state set state = 'x'`, `delete from pawl.job_state`,
	} {
		if fault := k.refused(k.app, sql); fault.Code != "42501" && fault.Code != "55000" && fault.Code != "0LP01" {
			t.Errorf("%s: %s %s", sql, fault.Code, fault.Message)
		}
	}
	for _, call := range []string{`add_job(text, jsonb, timestamptz, text, text, text, int, int)`, `add_jobs(jsonb)`, `publish(text, text, text, jsonb, jsonb)`, `cancel_job(uuid)`} {
		if !one[bool](k, k.admin, `select prosecdef and proconfig = array['search_path=pg_catalog, pg_temp'] from pg_proc where oid = ('pawl.' || $1)::regprocedure`, call) {
			t.Errorf("%s has no fixed search path", call)
		}
	}
	stranger := "stranger_" + k.role
	k.exec(k.admin, `create role `+stranger+` login`)
	defer k.exec(k.admin, `drop role `+stranger)
	c := k.connectAs(stranger)
	for _, sql := range []string{`select pawl.add_job('log')`, `select * from pawl.job_state`} {
		if fault := k.refused(c, sql); fault.Code != "42501" {
			t.Errorf("a stranger's %s: %s %s", sql, fault.Code, fault.Message)
		}
	}
	_ = c.Close(k.Context())
}

// What a session does to names and settings changes nothing of what the functions
// do.
func TestDoorIsNotDeceived(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `create schema playground`)
	k.exec(k.admin, `grant all on schema playground to `+k.role)
	for _, sql := range []string{
		`create temp table jobs (like pg_class)`, `create temp table users (id text, name text)`, `insert into users values ('', 'admin')`,
		`create temp table served_tasks (name text, max_payload bigint)`, `insert into served_tasks values ('pawl.prune', 1000000)`,
		`create function playground.floor(numeric) returns numeric language sql as 'select 0::numeric'`,
		`create function playground.session_user() returns text language sql as $$ select 'nobody' $$`,
		`create function playground.eq(text, text) returns boolean language sql as 'select true'`,
		`create operator playground.= (leftarg = text, rightarg = text, function = playground.eq)`,
		`create function playground.notify(text, text) returns void language sql as ''`,
		`set search_path = playground, pg_temp, pg_catalog, public`,
		`set standard_conforming_strings = off`, `set DateStyle = 'SQL, DMY'`, `set timezone = 'Asia/Tokyo'`, `set extra_float_digits = -15`, `set bytea_output = 'escape'`,
	} {
		k.exec(k.app, sql)
	}
	if fault := k.refused(k.app, `select pawl.add_job('pawl.prune')`); !strings.Contains(fault.Message, "is not a task") {
		t.Errorf("an internal task: %s", fault.Message)
	}
	odd := `x'); delete from jobs; select ('$$ \' "; %s`
	id := k.add(`'log', to_jsonb($1::text), lane => $1, key => $1, run_at => '2033-01-02T03:04:05+00:00'`, odd)
	if got := one[string](k, k.admin, `select concat_ws(' ', bucket, owner, run_at, lane = key and payload::jsonb = to_jsonb(lane)) from public.jobs where id = $1`, id); got != fmt.Sprintf("%d %s 1988247845000 t", k.db.BucketOf(odd, ""), k.owner) {
		t.Errorf("the row is %s", got)
	}
	if n := one[int](k, k.app, `select count(*) from pg_temp.jobs`); n != 0 {
		t.Errorf("%d rows in the temporary table", n)
	}
}

// A role that is called like a user has that user's keys, lanes and jobs, others
// those of the first user; nobody has Pawl's.
func TestDoorKeepsOwnersApart(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `insert into jobs (id, bucket, run_at, max_attempts, task, owner, lane, key, payload, created_at) values
		(300000000000000001, 1, 1950000000000, 0, 'pawl.prune', '', 'l', 'k', '{}', 0), (300000000000000002, 1, 1950000000000, 0, 'log', 'somebody', 'l', 'k', '{}', 0)`)
	for _, id := range []int64{300000000000000001, 300000000000000002} {
		if one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(id)) {
			t.Errorf("job %d was cancelled", id)
		}
	}
	if one[bool](k, k.app, `select pawl.cancel_job(gen_random_uuid())`) || one[bool](k, k.app, `select pawl.cancel_job(null)`) {
		t.Error("nothing was cancelled")
	}
	first := k.add(`'log', key => 'k', lane => 'l'`)
	k.exec(k.admin, `insert into users (id, name, role, created_at) values ('user-of-app', $1, 'operator', 0)`, k.role)
	second := k.add(`'log', key => 'k', lane => 'l'`)
	if first == second {
		t.Error("two users share a key")
	}
	if got := one[string](k, k.app, `select string_agg(id::text, ' ') from pawl.job_state`); got != JobUUID(second) {
		t.Errorf("it sees %s", got)
	}
	if one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(first)) || !one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(second)) {
		t.Error("it cancels what is its own")
	}
	if n := one[int](k, k.admin, `select count(*) from jobs where owner in ('', 'somebody') and rev = 0`); n != 2 {
		t.Errorf("%d of two jobs of others are as they were", n)
	}
}

// job_state tells what became of a job.
func TestDoorTellsStates(t *testing.T) {
	k := newDoor(t)
	later := k.add(`'log', run_at => now() + interval '1 hour'`)
	due := k.add(`'http'`)
	running, failed, again, gone := k.add(`'log'`), k.add(`'log'`), k.add(`'log'`), k.add(`'log'`)
	k.exec(k.admin, `update jobs set started_at = 5, node = 'n', attempt = 1 where id = $1`, running)
	k.exec(k.admin, `update jobs set state = 1, attempt = 3, last_error = 'no' where id = $1`, failed)
	k.exec(k.admin, `insert into job_history (id, task, owner, state, run_at, finished_at, attempt, error) values
		($1, 'log', $4, 'failed', 0, 1988247845678, 3, 'no'), ($2, 'log', $4, 'failed', 0, 7, 3, 'no'), ($3, 'log', $4, 'succeeded', 0, 1988247845678, 1, null)`, failed, again, gone, k.owner)
	k.exec(k.admin, `delete from jobs where id = $1`, gone)
	cancelled := k.add(`'log'`)
	if !one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(cancelled)) {
		t.Fatal("it was not cancelled")
	}
	k.exec(k.app, `set timezone = 'UTC'`)
	for _, c := range []struct {
		id   int64
		want string
	}{
		{later, "log scheduled 0"}, {due, "http pending 0"}, {running, "log running 1"}, {failed, "log failed 3 no 2033-01-02 03:04:05.678+00"},
		{again, "log pending 0"}, {gone, "log succeeded 1 2033-01-02 03:04:05.678+00"},
	} {
		if got := one[string](k, k.app, `select concat_ws(' ', task, state, attempts, result, error, finished_at) from pawl.job_state where id = $1`, JobUUID(c.id)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if !one[bool](k, k.app, `select state = 'cancelled' and now() - finished_at < interval '1 minute' from pawl.job_state where id = $1`, JobUUID(cancelled)) {
		t.Error("it is not told that it was cancelled")
	}
	if n := one[int](k, k.app, `select count(*) from pawl.job_state`); n != 7 {
		t.Errorf("%d jobs are told of 7", n)
	}
}

// Whatever a worker answered, the others' answers can be read. What jsonb cannot hold is
// shown as its text.
func TestDoorShowsEveryResult(t *testing.T) {
	k := newDoor(t)
	digits := strings.Repeat("1", 17_000)
	kept := []string{
		`7`, `-0.5e-300`, `12345678901234567890.5`, `"5e12345 and \\"`, `"\\u0000"`, `"\\\\ud800"`, `"\ud83d\ude00\uD83D\uDE00"`, `{"a":"` + digits + `\"","b":[1e5]}`,
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	}
	shown := []string{`"\u0000"`, `"\\\u0000"`, `{"\u0000":1}`, `"\ud800"`, `"\uD83D\ud83d\ude00"`, `"\ude00\ud83d"`, `1e-16390`, `0E+99999`, `{"a":0.` + digits + `}`}
	ids := map[string]int64{}
	for _, result := range append(slices.Clone(kept), shown...) {
		id := k.add(`'log'`)
		ids[result] = id
		k.exec(k.admin, `delete from jobs where id = $1`, id)
		k.exec(k.admin, `insert into job_history (id, task, owner, state, run_at, finished_at, attempt) values ($1, 'log', $2, 'succeeded', 0, 7, 1)`, id, k.owner)
		k.exec(k.admin, `insert into job_results (job_id, token, result, keep_until) values ($1, 't', $2, 9e15)`, id, result)
	}
	if n := one[int](k, k.app, `select count(result::text) from pawl.job_state`); n != len(ids) {
		t.Errorf("%d of %d results", n, len(ids))
	}
	for _, c := range []struct {
		results []string
		want    string
	}{{kept, `result = $2::text::jsonb`}, {shown, `result = to_jsonb($2::text)`}} {
		for _, result := range c.results {
			if !one[bool](k, k.app, `select `+c.want+` from pawl.job_state where id = $1`, JobUUID(ids[result]), result) {
				t.Errorf("%.80s is not what is shown", result)
			}
		}
	}
}

// A function that tells what it is given, and is cheaper than any other, is given
// nothing that the view does not show; neither is an operator or a cast that fails.
func TestDoorViewDoesNotLeak(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `insert into jobs (id, bucket, run_at, max_attempts, task, owner, payload, created_at, last_error)
		select 300000000000000000 + n, n % 64, 1950000000000, 0, 'hidden', case when n % 2 = 0 then '' else 'somebody' end, '{}', 0, 'hidden' from generate_series(1, 200) n`)
	k.exec(k.admin, `insert into job_history (id, task, owner, state, run_at, finished_at, attempt, error)
		select 200000000000000000 + n, 'hidden', case when n % 2 = 0 then '' else 'somebody' end, 'failed', 0, 0, 1, 'hidden' from generate_series(1, 200) n`)
	k.exec(k.admin, `analyze`)
	k.add(`'log'`)
	app, said := k.notices(k.role)
	for _, sql := range []string{
		`create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0000001 as $$ begin raise notice 'saw %', $1; return true; end $$`,
		`create function pg_temp.leak(uuid) returns boolean language plpgsql cost 0.0000001 as $$ begin raise notice 'saw %', $1; return true; end $$`,
		`create function pg_temp.leak(text, text) returns boolean language plpgsql cost 0.0000001 as $$ begin raise notice 'saw % %', $1, $2; return true; end $$`,
		`create operator pg_temp.<<>> (leftarg = text, rightarg = text, function = pg_temp.leak)`,
		`set enable_seqscan = on`, `set plan_cache_mode = force_generic_plan`,
	} {
		k.exec(app, sql)
	}
	for _, sql := range []string{
		`select count(*) from pawl.job_state where pg_temp.leak(task)`, `select count(*) from pawl.job_state where pg_temp.leak(id)`,
		`select count(*) from pawl.job_state where pg_temp.leak(error) or pg_temp.leak(state)`, `select count(*) from pawl.job_state where task operator(pg_temp.<<>>) state`,
		`select count(*) from (select * from pawl.job_state offset 0) s where pg_temp.leak(task)`, `select count(*) from pawl.job_state a join pawl.job_state b on pg_temp.leak(a.task, b.task)`,
		`select count(*) from pawl.job_state where 1 / (case when task = 'hidden' then 0 else 1 end) = 1`, `select count(*) from pawl.job_state group by pg_temp.leak(task)`,
		`select count(*) from pawl.job_state where task = 'log' and pg_temp.leak(id)`, `select pg_temp.leak(task) from pawl.job_state where attempts = 0 order by pg_temp.leak(id)`,
		`select count(*) from pawl.job_state where (id, task) > ('00000000-0000-0000-0000-000000000000'::uuid, '') and pg_temp.leak(task)`,
	} {
		k.exec(app, sql)
	}
	told := said.String()
	if !strings.Contains(told, "saw log") || strings.Contains(told, "hidden") || strings.Contains(told, JobUUID(300000000000000001)) || strings.Contains(told, JobUUID(200000000000000002)) {
		t.Errorf("it saw %.300s", told)
	}
}

// The state of one job is looked up, however many there are.
func TestDoorLooksUpOneJob(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `insert into jobs (id, bucket, run_at, max_attempts, task, owner, payload, created_at)
		select 300000000000000000 + n, n % 64, 1950000000000, 0, 'log', $1, '{}', 0 from generate_series(1, 50000) n`, k.owner)
	k.exec(k.admin, `insert into job_history (id, task, owner, state, run_at, finished_at, attempt)
		select 200000000000000000 + n, 'log', $1, 'failed', 0, 0, 1 from generate_series(1, 50000) n`, k.owner)
	k.exec(k.admin, `analyze`)
	k.exec(k.app, `set plan_cache_mode = force_generic_plan`)
	k.exec(k.app, `prepare look (uuid) as select * from pawl.job_state where id = $1`)
	rows, err := k.app.Query(k.Context(), `explain (analyze, costs off, timing off) execute look('`+JobUUID(300000000000000777)+`')`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	plan := strings.Join(lines, "\n")
	// A table of one row, such as the users of a test, is read whole.
	if err != nil || strings.Contains(plan, "Seq Scan on jobs") || strings.Contains(plan, "Seq Scan on job_history") || !strings.Contains(plan, "jobs_uuid") || !strings.Contains(plan, "job_history_uuid") {
		t.Errorf("%v\n%s", err, plan)
	}
}

// poor opens the database as a user who owns a schema and may do little else.
func poor(t *testing.T, admin *pgx.Conn, at, options string) (as string, log *strings.Builder, role string) {
	t.Helper()
	role = fmt.Sprintf("poor_%x", rand.Uint64())
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	for _, sql := range []string{`create role ` + role + ` login ` + options, `create schema ` + role + ` authorization ` + role, `alter role ` + role + ` set search_path = ` + role} {
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
	})
	return u.String(), &strings.Builder{}, role
}

// A user who may not make the schema or the role still runs Pawl, and is told what
// somebody else has to run; after that it works.
func TestDoorNeedsRightsThatPawlDoesNot(t *testing.T) {
	at := pgtest.EmptyURL(t)
	admin, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	as, said, role := poor(t, admin, at, "")
	start := func() string {
		said.Reset()
		db, err := Open(t.Context(), as, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		return said.String()
	}
	if told := start(); !strings.Contains(told, "create schema pawl authorization USER") {
		t.Errorf("without rights: %s", told)
	}
	if _, err := admin.Exec(t.Context(), `create schema pawl authorization `+role); err != nil {
		t.Fatal(err)
	}
	if told := start(); strings.Contains(told, "create schema") { // the role may be there, from another database of the server
		t.Errorf("with the schema: %s", told)
	}
	if told := start(); told != "" {
		t.Errorf("once more: %s", told)
	}
	var def string
	if err := admin.QueryRow(t.Context(), `select pg_get_functiondef('pawl._known_task(text)'::regprocedure)`).Scan(&def); err != nil || !strings.Contains(def, role+".served_tasks") {
		t.Errorf("it reads %s, %v", def, err)
	}
	// A second Pawl in a schema of its own leaves the door to the first.
	second, err := Open(t.Context(), at, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close() //nolint:errcheck // it was only opened
	if told := said.String(); !strings.Contains(told, "are for another one in this database") {
		t.Errorf("the second was told %s", told)
	}
	var after string
	if err := admin.QueryRow(t.Context(), `select pg_get_functiondef('pawl._known_task(text)'::regprocedure)`).Scan(&after); err != nil || after != def {
		t.Errorf("the second made it read %s, %v", after, err)
	}
}

// What docs/applications.md says to run can be run.
func TestDoorDocumentsWhatRuns(t *testing.T) {
	k := newDoor(t)
	page, err := os.ReadFile("../../docs/applications.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	k.exec(k.admin, `begin`) // a role is the whole server's, where others may run this test
	for i, b := range blocks {
		for sql := range strings.SplitSeq(strings.NewReplacer("begin;", "savepoint s;", "commit;", "release savepoint s;").Replace(b[1]), ";") {
			k.exec(k.admin, sql)
		}
		if i == 0 {
			k.exec(k.admin, `set local role shop`)
		}
	}
	if got := one[string](k, k.admin, `select string_agg(task || ' ' || state, ', ' order by task, state) from pawl.job_state`); got != "http pending, log cancelled, log pending, log scheduled, log scheduled" {
		t.Errorf("it made %s", got)
	}
	k.exec(k.admin, `rollback`)
}
