package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What functions look up in one row is what the tables say, whoever changes them.
func TestDoorKnowsTasksAndUsersAtOnce(t *testing.T) {
	k := newDoor(t)
	declare := `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ($1, '{}', 'u', 0, 0, '')`
	if fault := k.refused(k.app, `select pawl.add_job('mail')`); fault.Code != "22023" {
		t.Errorf("an unknown task: %s %s", fault.Code, fault.Message)
	}
	k.exec(k.admin, declare, "mail")
	if got := one[int](k, k.admin, `select state from jobs where id = $1`, k.add(`'mail'`)); got != 2 {
		t.Errorf("a job of a worker's task has the state %d", got)
	}
	if fault := k.refused(k.app, `select pawl.add_job('mail', to_jsonb(repeat('x', 999)))`); fault.Code != "54000" {
		t.Errorf("a large payload: %s %s", fault.Code, fault.Message)
	}
	k.exec(k.admin, `update served_tasks set max_payload = 2000`)
	k.add(`'mail', to_jsonb(repeat('x', 999))`)
	k.exec(k.admin, `delete from worker_tasks`)
	for _, call := range []string{`select pawl.add_job('mail')`, `select pawl.add_jobs('[{"task": "mail"}]')`} {
		if fault := k.refused(k.app, call); fault.Code != "22023" {
			t.Errorf("%s after the task is gone: %s %s", call, fault.Code, fault.Message)
		}
	}
	k.exec(k.admin, `insert into users (id, name, role, created_at) values ('mine', $1, 'operator', 0)`, k.role)
	if got := one[string](k, k.admin, `select owner from jobs where id = $1`, k.add(`'log'`)); got != "mine" {
		t.Errorf("a job is of %s", got)
	}
}

// Two transactions that change what is known learn of each other.
func TestDoorForgetsNobodysChange(t *testing.T) {
	k := newDoor(t)
	other := k.connect(k.url)
	declare := `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ($1, '{}', 'u', 0, 0, '')`
	k.exec(k.admin, `begin`)
	k.exec(k.admin, declare, "first")
	ended := make(chan error, 1)
	go func() {
		_, err := other.Exec(t.Context(), declare, "second")
		ended <- err
	}()
	for one[int](k, k.admin, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0 {
		k.exec(k.admin, `select pg_sleep(0.01), pg_stat_clear_snapshot()`)
	}
	k.exec(k.admin, `commit`)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := one[string](k, k.admin, `select string_agg(n, ' ' order by n) from pawl._known k, jsonb_object_keys(k.tasks) n`); got != "first http log second" {
		t.Errorf("it knows %s", got)
	}
}

// With more users than are known in one row, jobs are still those of the right one.
func TestDoorKeepsOwnersApartAmongVeryMany(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `insert into users (id, name, role, created_at) values ('mine', $1, 'operator', 0)`, k.role)
	k.exec(k.admin, `insert into users (id, name, role, created_at) select 'id' || i, 'a' || i, 'operator', 0 from generate_series(1, 1500) i`)
	k.add(`'log'`)
	k.exec(k.app, `select pawl.add_jobs('[{"task": "log"}]')`)
	if got := one[string](k, k.admin, `select string_agg(owner, ' ') from jobs where owner <> ''`); got != "mine mine" {
		t.Errorf("jobs are of %s", got)
	}
}

// A server with another text, earlier or later, replaces this one beneath the triggers.
func TestDoorIsReplacedBeneathItsTriggers(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `update pawl._known set tasks = '{}', users = '{}'`)
	k.exec(k.admin, `comment on schema pawl is 'the door for applications to the Pawl in schema public, 0'`)
	open(t, k.url)
	if got := one[string](k, k.admin, `select string_agg(n, ' ' order by n) from pawl._known k, jsonb_object_keys(k.tasks || k.users) n`); got != "admin http log" {
		t.Errorf("it knows %s", got)
	}
}

// What docs/jobs.md says about debounce: however often it is called, one job waits, with the
// newest payload, and each call moves it.
func TestDoorDebounces(t *testing.T) {
	k := newDoor(t)
	page, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, call, _ := strings.Cut(string(page), "```sql\n")
	call, _, _ = strings.Cut(call, "```")
	k.exec(k.admin, `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ('send-digest', '{}', 'u', 0, 0, '')`)
	last := int64(0)
	for i := range 5 {
		k.exec(k.app, strings.Replace(call, `"user": 17`, fmt.Sprintf(`"user": 17, "call": %d`, i), 1))
		at := one[int64](k, k.admin, `select run_at from jobs where key = 'digest-17'`)
		if at <= last {
			t.Errorf("call %d moved it from %d to %d", i, last, at)
		}
		last = at
		k.exec(k.admin, `select pg_sleep(0.005)`)
	}
	if got := one[string](k, k.admin, `select string_agg(payload, ' ') from jobs where task = 'send-digest'`); !strings.Contains(got, `"call": 4`) || strings.Count(got, "call") != 1 {
		t.Errorf("there are %s", got)
	}
}
