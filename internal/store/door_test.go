package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/store/door"
)

// A job that an application adds in the database is the one that Go would have
// added, in every mode of a key and whatever was there.
func TestDoorWritesTheJobsThatGoWrites(t *testing.T) {
	k := newDoor(t)
	type want struct {
		args string
		spec JobSpec
	}
	at := time.Date(2033, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	const when = "run_at => '2033-03-04 05:06:07.089999+00'"
	cases := []want{
		{`'log', '{"a": [1, "x"]}', lane => 'l'`, JobSpec{Task: "log", Payload: json.RawMessage(`{"a": [1, "x"]}`), Lane: "l", MaxAttempts: 10}},
		{`'http', lane => 'Ünï', priority => 1, max_attempts => 1000, ` + when, JobSpec{Task: "http", Lane: "Ünï", Priority: 1, MaxAttempts: 1000, RunAt: at}},
		{`task => 'log', payload => '"text"', key => 'k', priority => -1`, JobSpec{Task: "log", Payload: json.RawMessage(`"text"`), Key: "k", Priority: -1, MaxAttempts: 10}},
		{`'log', 'null', null, null, 'k', null, null, null`, JobSpec{Task: "log", Payload: json.RawMessage(`null`), Key: "k", MaxAttempts: 10}},
	}
	for _, mode := range []KeyMode{Replace, PreserveRunAt, Keep} {
		args := fmt.Sprintf(`'log', '{"n": 1}', key => 'again', key_mode => '%s'`, mode)
		cases = append(cases,
			want{args + ", " + when, JobSpec{Task: "log", Payload: json.RawMessage(`{"n": 1}`), Key: "again", KeyMode: mode, MaxAttempts: 10, RunAt: at}},
			want{args + ", lane => 'x', run_at => '2031-01-01Z'", JobSpec{Task: "log", Payload: json.RawMessage(`{"n": 1}`), Key: "again", KeyMode: mode, Lane: "x", MaxAttempts: 10, RunAt: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)}})
	}
	for _, before := range []string{
		`delete from jobs`,
		`insert into jobs (id, bucket, run_at, max_attempts, task, owner, key, payload, created_at, attempt, started_at, node, last_error) values
			(300000000000000007, 3, 1950000000000, 5, 'log', 'user-of-admin', 'again', '{"n":0}', 0, 2, 5, 'n', 'e'), (300000000000000008, 3, 1950000000000, 5, 'log', 'user-of-admin', 'k', '{"n":0}', 0, 2, 5, 'n', 'e')`,
		`insert into jobs (id, bucket, run_at, max_attempts, task, owner, key, payload, created_at, attempt, state) values
			(300000000000000007, 3, 1950000000000, 5, 'log', 'user-of-admin', 'again', '{"n":0}', 0, 2, 1), (300000000000000008, 3, 1950000000000, 5, 'log', 'user-of-admin', 'k', '{"n":0}', 0, 2, 1)`,
		`insert into jobs (id, bucket, run_at, max_attempts, task, owner, key, payload, created_at) values
			(300000000000000007, 3, 1950000000000, 5, 'pawl.x', '', 'again', '{"n":0}', 0), (300000000000000008, 3, 1950000000000, 5, 'pawl.x', '', 'k', '{"n":0}', 0)`,
	} {
		for _, c := range cases {
			c.spec.Owner = k.owner
			now := time.Now().UTC().Truncate(time.Millisecond)
			if c.spec.RunAt.IsZero() {
				c.args += fmt.Sprintf(", run_at => '%s'", now.Format(time.RFC3339Nano))
				if strings.Contains(c.args, "null, null, null, run_at") {
					c.args = strings.Replace(strings.Split(c.args, ", run_at")[0], "'null', null", "'null', '"+now.Format(time.RFC3339Nano)+"'", 1)
				}
				c.spec.RunAt = now
			}
			reset := func() {
				k.exec(k.admin, `delete from jobs`)
				k.exec(k.admin, before)
			}
			reset()
			got := k.add(c.args)
			row := k.jobRow(got)
			reset()
			made := enqueue(t, k.db, c.spec)[0]
			if own := k.jobRow(made.ID); own != row {
				t.Errorf("add_job(%s) wrote\n%s, Go\n%s", c.args, row, own)
			}
			if (got%10 > 6) != (made.ID%10 > 6) && min(got, made.ID) < 300000000000000009 {
				t.Errorf("add_job(%s) gave %d, Go %d", c.args, got, made.ID)
			}
		}
	}
}

// The bucket of a million keys and lanes is the same in Go and in SQL.
func TestDoorHashesAsGoDoes(t *testing.T) {
	k := newDoor(t)
	const n = 1_000_000
	names := make([]string, n)
	letters := []rune("abcxyz0189-_/:. äÖßéñøæ中文字漢🙂🚀𝔘\u0301\u200d\u00a0\u0001\n")
	for i := range names {
		var b strings.Builder
		for range rand.IntN(24) + 1 {
			b.WriteRune(letters[rand.IntN(len(letters))])
		}
		names[i] = b.String()
	}
	names[0], names[1], names[2] = strings.Repeat("k", 256), strings.Repeat("🙂", 256), "x"
	rows, err := k.admin.Query(k.Context(), `select case when n % 2 = 0 then pawl._bucket(v.name, 'unused') else pawl._bucket(null, v.name) end
		from unnest($1::text[]) with ordinality v (name, n)`, names)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(found) != n {
		t.Fatalf("%d rows, %v", len(found), err)
	}
	for i, bucket := range found {
		if want := k.db.BucketOf(names[i], ""); int(bucket) != want {
			t.Fatalf("%q: bucket %d, want %d", names[i], bucket, want)
		}
	}
	seen := map[int64]bool{}
	list, err := k.admin.Query(k.Context(), `select pawl._bucket('', null) from generate_series(1, 5000)`)
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := pgx.CollectRows(list, pgx.RowTo[int64])
	for _, b := range buckets {
		seen[b] = true
	}
	if err != nil || len(seen) != 64 || !seen[0] || !seen[63] {
		t.Errorf("without a name %d buckets, %v", len(seen), err)
	}
}

// The UUID of a job is the same in Go and in SQL, and leads back to its number.
func TestDoorKnowsJobsByUUID(t *testing.T) {
	k := newDoor(t)
	ids := []int64{1 << 22, 1<<63 - 1}
	for range 50_000 {
		ids = append(ids, 1<<22+rand.Int64N(1<<62))
	}
	rows, err := k.admin.Query(k.Context(), `select pawl._uuid(id)::text, coalesce(pawl._id(pawl._uuid(id)), 0) from unnest($1::bigint[]) id`, ids)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var uuid string
		var id int64
		if err := rows.Scan(&uuid, &id); err != nil {
			t.Fatal(err)
		}
		if parsed, ok := ParseJobID(uuid); uuid != JobUUID(ids[i]) || id != ids[i] || parsed != id || !ok {
			t.Fatalf("job %d: %s and %d, want %s (%d, %t)", ids[i], uuid, id, JobUUID(ids[i]), parsed, ok)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if n := one[int](k, k.admin, `select count(pawl._id(gen_random_uuid())) from generate_series(1, 10000)`); n != 0 {
		t.Errorf("%d other UUIDs are jobs", n)
	}
}

// Ids grow, say when they were made, and are not those of a node.
func TestDoorMakesIDs(t *testing.T) {
	k := newDoor(t)
	before := time.Now().Add(-time.Second)
	list, err := k.admin.Query(k.Context(), `select pawl._new_id() from generate_series(1, 20000)`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(list, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for _, id := range ids {
		if seen[id] || id>>12&1023 != 1023 || timeOfID(id).Before(before) || timeOfID(id).After(time.Now().Add(time.Second)) {
			t.Fatalf("id %d of %s", id, timeOfID(id))
		}
		seen[id] = true
	}
	for range 10_000 {
		var s idSource
		if s.init(); s.node == 1023 {
			t.Fatal("a node has the number of the database")
		}
	}
}

// What is no id of a job is none in Go either.
func TestJobIDsAreReadStrictly(t *testing.T) {
	good := JobUUID(355813294120960001)
	if id, ok := ParseJobID(good); !ok || id != 355813294120960001 {
		t.Errorf("%s is %d, %t", good, id, ok)
	}
	for _, bad := range []string{"", "0", "-1", "01", "+1", "1.0", "9223372036854775808", strings.ToUpper(good), "{" + good + "}", "urn:uuid:" + good,
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-8fff-bff0-00007061776c", strings.Replace(good, "7061776c", "7061776d", 1), good[:14] + "7" + good[15:]} {
		if id, ok := ParseJobID(bad); ok {
			t.Errorf("%q is job %d", bad, id)
		}
	}
}

// What the API refuses is refused here, with a hint, and nothing is written.
func TestDoorRefusesWhatTheAPIRefuses(t *testing.T) {
	k := newDoor(t)
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ call, says string }{
		{`pawl.add_job('lgo')`, `task "lgo" is not a task of this server`},
		{`pawl.add_job('pawl.prune')`, `task "pawl.prune" is not a task of this server`},
		{`pawl.add_job('pawl.workflow')`, `is not a task of this server`},
		{`pawl.add_job(null)`, `task null is not a task of this server`},
		{`pawl.add_job('')`, `task "" is not`},
		{`pawl.add_job('log'' or ''1''=''1')`, `is not a task of this server`},
		{`pawl.add_job('log', to_jsonb(repeat('x', 1000)))`, `payload has 1002 bytes, more than the 1000 that are allowed`},
		{`pawl.add_job('log', run_at => '1999-12-31 23:59:59+00')`, `run_at is before the year 2000`},
		{`pawl.add_job('log', run_at => '-infinity')`, `run_at is before the year 2000`},
		{`pawl.add_job('log', run_at => 'infinity')`, `run_at is more than ten years ahead`},
		{`pawl.add_job('log', run_at => now() + interval '3654 days')`, `run_at is more than ten years ahead`},
		{`pawl.add_job('log', lane => '')`, `lane must have 1 to 256 characters`},
		{`pawl.add_job('log', lane => '` + long + `')`, `lane must have 1 to 256 characters`},
		{`pawl.add_job('log', key => '` + long + `')`, `key must have 1 to 256 characters`},
		{`pawl.add_job('log', key => ' a')`, `key must not begin or end with a space`},
		{`pawl.add_job('log', key => 'a ')`, `key must not begin or end with a space`},
		{`pawl.add_job('log', key => E'a\nb')`, `key must have printable characters only`},
		{`pawl.add_job('log', lane => U&'a\202eb')`, `lane must have printable characters only`},
		{`pawl.add_job('log', key => 'k', key_mode => 'earliest')`, `key_mode "earliest" is not known`},
		{`pawl.add_job('log', key_mode => 'keep')`, `key_mode needs a key`},
		{`pawl.add_job('log', priority => 2)`, `priority must be -1, 0 or 1`},
		{`pawl.add_job('log', priority => -2)`, `priority must be -1, 0 or 1`},
		{`pawl.add_job('log', max_attempts => 0)`, `max_attempts must be 1 to 1000`},
		{`pawl.add_job('log', max_attempts => 1001)`, `max_attempts must be 1 to 1000`},
		{`pawl.add_jobs(null)`, `jobs must be an array`},
		{`pawl.add_jobs('{}')`, `jobs must be an array`},
		{`pawl.add_jobs('[{"task": "log"}, 7]')`, `jobs[1]: is not an object`},
		{`pawl.add_jobs('[{"task": "log"}, {"task": "lgo"}]')`, `jobs[1]: task "lgo" is not a task of this server`},
		{`pawl.add_jobs('[{}]')`, `jobs[0]: task null is not`},
		{`pawl.add_jobs('[{"task": 7}]')`, `jobs[0]: task must be a string`},
		{`pawl.add_jobs('[{"task": "log", "runat": "x"}]')`, `jobs[0]: has no field "runat"`},
		{`pawl.add_jobs('[{"task": "log", "run_at": "soon"}]')`, `jobs[0]: run_at must be a date and time`},
		{`pawl.add_jobs('[{"task": "log", "priority": 0.5}]')`, `jobs[0]: priority must be a whole number`},
		{`pawl.add_jobs('[{"task": "log", "max_attempts": 99999999999999}]')`, `jobs[0]: max_attempts must be a whole number`},
		{`pawl.add_jobs('[{"task": "log", "priority": "1"}]')`, `jobs[0]: priority must be a whole number`},
		{`pawl.add_jobs('[{"task": "log", "lane": "a\tb"}]')`, `jobs[0]: lane must have printable characters only`},
		{`pawl.add_jobs((select jsonb_agg('{"task": "log"}'::jsonb) from generate_series(1, 10001)))`, `there are 10001 jobs, more than the 10000 that are allowed`},
		{`pawl.publish('nobody', 'in', 'm', '{}')`, `there is no workflow "nobody"`},
		{`pawl.publish('nobody', 'in', '', '{}')`, `message_id must have 1 to 512 bytes`},
		{`pawl.publish('nobody', 'in', repeat('ä', 257), '{}')`, `message_id must have 1 to 512 bytes`},
		{`pawl.publish('nobody', 'in', null, '{}')`, `message_id must have 1 to 512 bytes`},
	} {
		fault := k.refused(k.app, `select `+c.call)
		if !strings.Contains(fault.Message, c.says) {
			t.Errorf("%s says %q, want %q", c.call, fault.Message, c.says)
		}
		if fault.Hint == "" {
			t.Errorf("%s has no hint", c.call)
		}
		if strings.Contains(c.says, "is not a task") && fault.Hint != "Tasks: http, log." {
			t.Errorf("%s hints %q", c.call, fault.Hint)
		}
	}
	if n := one[int](k, k.admin, `select (select count(*) from jobs) + (select count(*) from audit_log)`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	k.exec(k.admin, `delete from served_tasks`)
	if fault := k.refused(k.app, `select pawl.add_job('log')`); !strings.Contains(fault.Hint, "start the server") {
		t.Errorf("before the first start: %s", fault.Hint)
	}
	k.exec(k.admin, `delete from users`)
	if fault := k.refused(k.app, `select pawl.cancel_job(gen_random_uuid())`); fault.Message != "Pawl has no user yet" {
		t.Errorf("before the first start: %s", fault.Message)
	}
}

// Names are printable as Go sees it, whatever the locale of the database.
func TestDoorKnowsPrintableCharacters(t *testing.T) {
	k := newDoor(t)
	rows, err := k.admin.Query(k.Context(), `select c from generate_series(1, 1114111) c where c not between 55296 and 57343 and pawl._name_fault('a' || chr(c) || 'b') is null`)
	if err != nil {
		t.Fatal(err)
	}
	good, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		t.Fatal(err)
	}
	sql := map[rune]bool{}
	for _, r := range good {
		sql[r] = true
	}
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if want := utf8.ValidRune(r) && door.Printable(r); sql[r] != want {
			t.Fatalf("%U is printable: %t, want %t", r, sql[r], want)
		}
	}
}

// add_jobs answers in the order of its jobs, keyed or not, and is one call.
func TestDoorAddsManyJobs(t *testing.T) {
	k := newDoor(t)
	known := k.add(`'log', key => 'known'`)
	rows, err := k.app.Query(k.Context(), `select pawl.add_jobs($1)::text`, `[
		{"task": "log", "payload": {"n": 0}, "lane": "l", "runAt": "2033-01-01T00:00:00Z", "maxAttempts": 3},
		{"task": "log", "payload": {"n": 1}, "key": "known", "key_mode": "keep"},
		{"task": "http", "payload": {"n": 2}, "key": "fresh", "keyMode": "replace", "priority": 1},
		{"task": "log", "payload": null, "run_at": "2033-01-01T02:00:00+02:00", "lane": null}]`)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(texts) != 4 {
		t.Fatalf("%v, %v", texts, err)
	}
	var told []string
	for _, text := range texts {
		id, _ := ParseJobID(text)
		told = append(told, one[string](k, k.admin, `select concat_ws(' ', task, payload, lane, key, priority, max_attempts, case when run_at > 1988000000000 then run_at end, owner, created_by) from jobs where id = $1`, id))
	}
	who := k.owner + " " + k.role
	want := []string{`log {"n": 0} l 0 3 1988150400000 ` + who, `log {} known 0 10 ` + who, `http {"n": 2} fresh 1 10 ` + who, `log null 0 10 1988150400000 ` + who}
	if strings.Join(told, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if id, _ := ParseJobID(texts[1]); id != known {
		t.Errorf("the kept job is %d, want %d", id, known)
	}
	if n := one[int](k, k.app, `select count(*) from pawl.add_jobs('[]')`); n != 0 {
		t.Errorf("%d of none", n)
	}
	if n := one[int](k, k.app, `select count(distinct a) from pawl.add_jobs((select jsonb_agg('{"task": "log"}'::jsonb) from generate_series(1, 10000))) a`); n != 10_000 {
		t.Errorf("%d jobs of 10000", n)
	}
}

// A transaction that rolls back, loses its connection or goes back to a savepoint
// leaves nothing and wakes nobody; one that commits wakes once.
func TestDoorIsPartOfTheTransaction(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `listen pawl_jobs`)
	k.exec(k.admin, `create table orders (id int primary key)`)
	k.exec(k.admin, `grant insert on orders to `+k.role)
	heard := func() (out []string) {
		for {
			ctx, cancel := context.WithTimeout(k.Context(), time.Nanosecond)
			k.exec(k.admin, `select 1`) // whatever was sent before is read with it
			n, err := k.admin.WaitForNotification(ctx)
			cancel()
			if err != nil {
				return out
			}
			out = append(out, n.Payload)
		}
	}
	rows := func() string {
		return one[string](k, k.admin, `select concat_ws(' ', (select count(*) from orders), (select count(*) from jobs), (select count(*) from audit_log), (select count(*) from job_history))`)
	}
	k.exec(k.app, `begin`)
	k.exec(k.app, `insert into orders values (1)`)
	k.add(`'log', lane => 'l'`)
	k.exec(k.app, `rollback`)
	if got := rows(); got != "0 0 0 0" || len(heard()) != 0 {
		t.Errorf("after a rollback: %s", got)
	}
	killed := k.connectAs(k.role)
	k.exec(killed, `begin`)
	k.exec(killed, `select pawl.add_job('log')`)
	k.exec(k.admin, `select pg_terminate_backend($1, 5000)`, killed.PgConn().PID())
	k.exec(k.app, `begin`)
	k.add(`'log', lane => 'l'`)
	if fault := k.refused(k.app, `select 1/0`); fault.Code != "22012" {
		t.Errorf("failed with %s", fault.Code)
	}
	k.exec(k.app, `commit`) // is a rollback
	if got := rows(); got != "0 0 0 0" || len(heard()) != 0 {
		t.Errorf("after a lost connection and a failed statement: %s", got)
	}
	k.exec(k.app, `begin`)
	k.exec(k.app, `insert into orders values (1)`)
	id := k.add(`'log', lane => 'l'`)
	k.exec(k.app, `savepoint s`)
	k.add(`'log', lane => 'other'`)
	k.exec(k.app, `rollback to savepoint s`)
	k.add(`'log', lane => 'l'`)
	k.exec(k.app, `select pawl.add_jobs('[{"task": "log", "lane": "l"}, {"task": "log", "lane": "l"}]')`)
	k.exec(k.app, `commit`)
	if got := rows(); got != "1 4 3 0" {
		t.Errorf("after a commit: %s", got)
	}
	if got := heard(); len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf("d %d 0 ", k.db.BucketOf("l", ""))) {
		t.Errorf("said %q", got)
	}
	k.exec(k.app, `begin`)
	if !one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(id)) || one[bool](k, k.app, `select pawl.cancel_job($1)`, JobUUID(id)) {
		t.Error("it is cancelled once")
	}
	k.exec(k.app, `rollback`)
	if got := rows(); got != "1 4 3 0" || len(heard()) != 0 {
		t.Errorf("after a cancel that was rolled back: %s", got)
	}
}
