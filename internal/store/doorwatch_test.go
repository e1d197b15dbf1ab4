package store

import (
	"testing"
	"time"
)

// wakes runs statements as the application, and tells whether they woke anybody.
func (k *doorKit) wakes(statements ...string) bool {
	k.Helper()
	for _, sql := range statements {
		k.exec(k.app, sql)
	}
	k.exec(k.app, `select pg_notify('pawl_jobs', 'end')`)
	n, err := k.admin.WaitForNotification(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	if n.Payload == "end" {
		return false
	}
	for n.Payload != "end" {
		if n, err = k.admin.WaitForNotification(k.Context()); err != nil {
			k.Fatal(err)
		}
	}
	return true
}

// Who adds a job wakes the nodes, unless one has promised to look and is going to
// find it.
func TestDoorWakesUnlessANodeLooks(t *testing.T) {
	k := newDoor(t)
	k.exec(k.admin, `listen pawl_jobs`)
	k.exec(k.admin, `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ('mail', '{}', 'u', 0, 0, '')`)
	found := []string{
		`select pawl.add_job('log')`,
		`select pawl.add_job('mail', lane => 'l')`,
		`select pawl.add_jobs('[{"task": "log"}, {"task": "mail", "lane": "l", "run_at": "2020-01-01T00:00:00Z"}]')`,
	}
	others := []string{
		`select pawl.add_job('log', key => 'k')`, // may change a job of before
		`select pawl.add_job('log', run_at => now() + interval '1 minute')`,
		`select pawl.add_jobs('[{"task": "log"}, {"task": "log", "run_at": "2031-01-01T00:00:00Z"}]')`,
		`select pawl.add_jobs('[{"task": "log"}, {"task": "log", "key": "k"}]')`,
	}
	for _, sql := range append(found, others...) {
		if !k.wakes(sql) {
			t.Errorf("%s wakes nobody, and nobody looks", sql)
		}
	}
	until, ok, err := k.db.PromiseDoor(t.Context(), "n", time.Hour)
	if err != nil || !ok || until < Millis(time.Now().Add(time.Minute)) {
		t.Fatalf("promise until %d, %v, %v", until, ok, err)
	}
	for _, sql := range found {
		if k.wakes(sql) {
			t.Errorf("%s wakes, and somebody looks", sql)
		}
		// A promise that it sees may have ended.
		for _, level := range []string{"repeatable read", "serializable"} {
			if !k.wakes(`begin isolation level `+level, sql, `commit`) {
				t.Errorf("%s in a transaction that is %s wakes nobody", sql, level)
			}
		}
	}
	for _, sql := range others {
		if !k.wakes(sql) {
			t.Errorf("%s wakes nobody, and a look does not find it", sql)
		}
	}
	if _, ok, err := k.db.PromiseDoor(t.Context(), "m", time.Hour); ok || err != nil {
		t.Errorf("a second node promised the same: %v", err)
	}
	if err := k.db.WithdrawDoor(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range found {
		if !k.wakes(sql) {
			t.Errorf("%s wakes nobody, and the promise was withdrawn", sql)
		}
	}
	// It still answers for what was added before.
	if _, ok, err := k.db.PromiseDoor(t.Context(), "m", time.Hour); ok || err != nil {
		t.Errorf("a second node promised before the first one was done: %v", err)
	}
	if err := k.db.LeaveDoor(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := k.db.PromiseDoor(t.Context(), "m", time.Millisecond); !ok || err != nil {
		t.Errorf("a second node could not promise: %v", err)
	}
	k.exec(k.admin, `select pg_sleep(0.01)`)
	if !k.wakes(found[0]) {
		t.Error("wakes nobody after a promise whose time is over")
	}
}

// A look shows what applications added, from an instant on, and which transactions
// may still add something.
func TestLookAtTheDoor(t *testing.T) {
	k := newDoor(t)
	look := func(from int64) DoorLook {
		t.Helper()
		l, err := k.db.LookAtDoor(t.Context(), from, int64(1)<<41)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// Transactions of other databases count as well, and end some time.
	lookAfter := func(xid int64) DoorLook {
		t.Helper()
		for end := time.Now().Add(90 * time.Second); ; {
			if l := look(0); l.Xmin > xid || time.Now().After(end) {
				return l
			}
		}
	}
	first := look(0)
	if len(first.Jobs) != 0 || first.Xid == 0 {
		t.Errorf("an empty table: %+v", first)
	}
	k.exec(k.app, `begin`)
	id := k.add(`'log', '{}', priority => 1`)
	if l := lookAfter(first.Xid); len(l.Jobs) != 0 || l.Xmin <= first.Xid || l.Xmin >= l.Xid {
		t.Errorf("an open transaction, and the look before was %+v: %+v", first, l)
	}
	k.exec(k.app, `commit`)
	last := lookAfter(first.Xid + 1)
	if len(last.Jobs) != 1 || last.Jobs[0].ID != id || last.Jobs[0].Priority != 1 || last.Jobs[0].Task != "log" || last.Xmin <= first.Xid+1 {
		t.Errorf("after the commit: %+v", last)
	}
	if at := DoorTime(id); at < first.At || at > last.At || len(look(at).Jobs) != 1 || len(look(at+1).Jobs) != 0 {
		t.Errorf("a job of %d between %d and %d", at, first.At, last.At)
	}
	if _, err := k.db.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "log"}}); err != nil {
		t.Fatal(err)
	}
	if l := look(0); len(l.Jobs) != 1 {
		t.Errorf("a job that a node added is shown: %+v", l)
	}
}
