package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// addJobs adds jobs as the application, and tells what came of it: the rows in the order
// of the ids but for what chance and the clock decide, or the fault.
func (k *doorKit) addJobs(items []string) string {
	k.Helper()
	rows, err := k.app.Query(k.Context(), `select pawl.add_jobs($1)::text`, "["+strings.Join(items, ",")+"]")
	if err != nil {
		k.Fatal(err)
	}
	uuids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err.Error()
	}
	ids := make([]int64, len(uuids))
	for i, text := range uuids {
		ids[i], _ = ParseJobID(text)
	}
	return one[string](k, k.admin, `select coalesce(string_agg(concat_ws(' ', case when lane is not null or bucket < 0 then bucket else bucket / 64 end, state, priority, max_attempts, task, lane, payload, owner, created_by,
			case when abs(run_at - extract(epoch from clock_timestamp()) * 1000) < 600000 then 'now' else run_at::text end), chr(10) order by place), '')
		from unnest($1::bigint[]) with ordinality u (id, place) join jobs using (id) where key is null`, ids)
}

// What add_jobs writes by one statement is what it writes one by one, and it takes
// and refuses the same with the same words.
func TestDoorAddsPlainJobsAsItAddsOthers(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ('served', '{}', 'user-of-admin', 0, 0, '')`)
	fields := map[string][]string{
		"task":         {`"log"`, `"http"`, `"served"`, `"lgo"`, `"pawl.prune"`, `null`, `7`, `["log"]`},
		"payload":      {`{"a": [1, "x"]}`, `null`, `"text"`, `[]`, `"` + strings.Repeat("x", 998) + `"`, `"` + strings.Repeat("x", 999) + `"`},
		"lane":         {`"l"`, `"Ünï 中"`, `null`, `""`, `" a"`, `"a\tb"`, `"a\u202eb"`, `7`, `{}`, `"` + strings.Repeat("x", 256) + `"`, `"` + strings.Repeat("x", 257) + `"`},
		"priority":     {`0`, `1`, `-1`, `null`, `2`, `0.5`, `1.0`, `"1"`, `-0`, `1e0`, `true`},
		"max_attempts": {`1`, `1000`, `10`, `null`, `0`, `1001`, `10.0`, `99999999999999`, `"3"`, `-1`},
		"run_at": {
			`"2033-01-01T02:00:00+02:00"`, `"2032-02-29T23:59:59.999999999Z"`, `"2033-02-29T00:00:00Z"`, `"2033-04-31T00:00:00Z"`, `"2033-12-31T00:00:00.0899999-14:59"`, `null`, `"soon"`, `"now"`,
			`"2033-01-01"`, `"2033-01-01 00:00:00+00"`, `"2033-13-01T00:00:00Z"`, `"2033-01-01T24:00:00Z"`, `"2000-01-01T00:00:00+01:00"`, `"2000-01-01T00:00:00Z"`, `"2099-01-01T00:00:00Z"`, `"infinity"`, `7`,
			`"2033-01-01T00:00:00"`, `"2033-01-01T00:00:60Z"`, `"2033-01-01T00:00:00Z\n"`,
		},
		"runAt":       {`"2034-01-01T02:00:00+02:00"`, `null`, `"soon"`, `"1999-01-01T00:00:00Z"`},
		"maxAttempts": {`5`, `null`, `0`, `"3"`},
		"key_mode":    {`"replace"`, `null`, `"keep"`, `"x"`},
		"key":         {`null`},
		"runat":       {`null`, `"x"`},
	}
	check := func(items ...string) {
		t.Helper()
		got, want := k.addJobs(items), k.addJobs(append(slices.Clip(items), `{"task": "log", "key": "one by one"}`))
		if got != want {
			t.Errorf("add_jobs([%s]) comes to\n%s\none by one to\n%s", strings.Join(items, ", "), got, want)
		}
	}
	for name, values := range fields {
		for _, value := range values {
			if name == "task" {
				check(`{"task": ` + value + `}`)
				continue
			}
			check(fmt.Sprintf(`{"task": "log", %q: %s}`, name, value))
			for other, more := range fields {
				if other != name && other != "task" {
					check(fmt.Sprintf(`{"task": "log", %q: %s, %q: %s}`, name, value, other, more[rand.IntN(len(more))]), `{"task": "served", "lane": "l"}`)
				}
			}
		}
	}
	for _, item := range []string{`7`, `null`, `"log"`, `[]`, `[{"task": "log"}]`, `{}`, `[[{"key": 1}]]`} {
		check(item)
		check(`{"task": "log"}`, item, `{"task": "lgo"}`)
	}
	for range 300 { // a few at a time: the first fault is the one that is told
		items := make([]string, rand.IntN(4)+1)
		for i := range items {
			list := []string{`"task": ` + fields["task"][rand.IntN(3+rand.IntN(2))]}
			for name, values := range fields {
				if name != "task" && rand.IntN(6) == 0 {
					list = append(list, fmt.Sprintf("%q: %s", name, values[rand.IntN(min(len(values), 3+rand.IntN(2)))]))
				}
			}
			items[i] = "{" + strings.Join(list, ", ") + "}"
		}
		check(items...)
	}
}

// Ids and dates of one call grow in the order of its jobs, wherever the counter is.
func TestDoorKeepsTheOrderOfPlainJobs(t *testing.T) {
	k := newDoor(t)
	for range 5 {
		wrong := one[int](k, k.app, `select count(*) from (select id, lag(id) over (order by place) as before from pawl.add_jobs((select jsonb_agg('{"task": "log", "lane": "l"}'::jsonb) from generate_series(1, 5000))) with ordinality a (id, place)) x where id <= before`)
		if wrong != 0 {
			t.Errorf("%d jobs come before the one that was asked for earlier", wrong)
		}
	}
	late := one[int](k, k.admin, `select count(*) from (select run_at, lag(run_at) over (order by id) as before from jobs) x where run_at < before`)
	if late != 0 {
		t.Errorf("%d jobs are due before the one that was asked for earlier", late)
	}
}

// One call wakes once, each place once, however many jobs there are: those of a
// minute to come are one.
func TestDoorWakesOnceForManyJobs(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `listen pawl_jobs`)
	minute := time.Now().UTC().AddDate(1, 0, 0).Truncate(time.Minute)
	for want, item := range map[time.Time]string{
		time.Now(): `jsonb_build_object('task', 'log')`,
		minute:     `jsonb_build_object('task', 'log', 'run_at', '` + minute.Format("2006-01-02T15:04:") + `' || 10 + g % 50 || 'Z')`,
	} {
		k.exec(k.app, `select pawl.add_jobs((select jsonb_agg(`+item+`) from generate_series(1, 3000) g))`)
		k.exec(k.admin, `select 1`)
		n, err := k.admin.WaitForNotification(k.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int64]bool{}
		lines := strings.Split(strings.TrimSuffix(n.Payload, "\nq\n"), "\n")
		for _, line := range lines {
			var bucket, priority, at int64
			if _, err := fmt.Sscanf(line, "d %d %d %d", &bucket, &priority, &at); err != nil || priority != 0 || want.Sub(time.UnixMilli(at)).Abs() > time.Minute || want.Equal(minute) && at != minute.UnixMilli() {
				t.Errorf("said %q: %v", line, err)
			}
			seen[bucket] = true
		}
		if len(lines) != 64 || len(seen) != 64 {
			t.Errorf("%d lines for %d buckets, want 64", len(lines), len(seen))
		}
	}
}
