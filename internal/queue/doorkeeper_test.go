package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// doorRig is a database with an application beside the queue.
type doorRig struct {
	*testing.T
	url   string
	app   *pgx.Conn
	other *pgx.Conn // hears and asks
}

func newDoorRig(t *testing.T) *doorRig {
	t.Helper()
	r := &doorRig{T: t, url: pgtest.URL(t)}
	err := openDB(t, r.url).Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `insert into users (id, name, role, created_at) values ('u', 'admin', 'admin', 0)`); err != nil {
			return err
		}
		return tx.ServeTasks(ctx, []string{"t"}, 1000)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.app, r.other = r.connect(), r.connect()
	r.exec(r.other, `listen `+channel)
	return r
}

func (r *doorRig) connect() *pgx.Conn {
	r.Helper()
	c, err := pgx.Connect(r.Context(), r.url)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (r *doorRig) exec(c *pgx.Conn, sql string, args ...any) {
	r.Helper()
	if _, err := c.Exec(r.Context(), sql, args...); err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
}

func (r *doorRig) add(n int) { r.exec(r.app, fmt.Sprintf(`select pawl.add_job('t', '{"n": %d}')`, n)) }

// start runs a node. It makes promises only when it is told to, and then keeps on
// making them.
func (r *doorRig) start(often int, changes ...func(*doorLimits)) (*Queue, *recorder, func()) {
	r.Helper()
	rec := newRecorder()
	l := defaultLimits()
	l.door.often = often
	for _, change := range changes {
		change(&l.door)
	}
	q, stop := startQueue(r.T, openDB(r, r.url), Config{Tasks: map[string]Task{"t": rec.task()}, limits: l})
	eventually(r, "the node is ready", func() bool { return owned(q) > 0 && q.Health() == nil })
	return q, rec, stop
}

// lasting makes promises hold, however slow the machine is and whatever else the server
// does.
func lasting(l *doorLimits) { l.promise, l.back = time.Minute, time.Minute }

// row is who answers for the door, and whether nobody needs to be woken.
func (r *doorRig) row() (node string, holds bool) {
	r.Helper()
	err := r.other.QueryRow(r.Context(), `select coalesce(max(node), ''), coalesce(max(until_at), 0) > extract(epoch from clock_timestamp()) * 1000 from door_watch`).Scan(&node, &holds)
	if err != nil {
		r.Fatal(err)
	}
	return node, holds
}

func (r *doorRig) promised(q *Queue) {
	r.Helper()
	eventually(r, "the node promises to look", func() bool {
		signal(q.keeper.busy)
		node, holds := r.row()
		return node == q.Node().ID && holds
	})
}

func (r *doorRig) withdrawn(by string) {
	r.Helper()
	eventually(r, "the promise is withdrawn", func() bool { node, holds := r.row(); return node == by && !holds })
}

// wakeUps are those that came from the door so far.
func (r *doorRig) wakeUps() (n int) {
	r.Helper()
	r.exec(r.app, `select pg_notify($1, 'end')`, channel)
	for {
		heard, err := r.other.WaitForNotification(r.Context())
		switch {
		case err != nil:
			r.Fatal(err)
		case heard.Payload == "end":
			return n
		case strings.HasSuffix(heard.Payload, msgDoor):
			n++
		}
	}
}

// numbers waits for so many jobs.
func (r *doorRig) numbers(rec *recorder, count int) (out []int) {
	r.Helper()
	for range count {
		var p struct{ N int }
		if err := json.Unmarshal(rec.wait(r).Payload, &p); err != nil {
			r.Fatal(err)
		}
		out = append(out, p.N)
	}
	slices.Sort(out)
	return out
}

// While applications come often they need not wake anybody, and when they have gone
// nobody looks any more.
func TestNodeLooksByItselfWhileApplicationsComeOften(t *testing.T) {
	r := newDoorRig(t)
	q, rec, _ := r.start(2)
	n := 0
	for _, holds := r.row(); !holds; _, holds = r.row() {
		r.add(n)
		n++
	}
	r.numbers(rec, n)
	before := r.wakeUps()
	if before == 0 {
		t.Error("nobody was woken before there was a promise")
	}
	eventually(t, "nobody answers for the door", func() bool { node, _ := r.row(); return node == "" })
	eventually(t, "what was heard meanwhile is over", q.keeper.rests)
	r.add(n) // wakes again
	r.numbers(rec, 1)
	if r.wakeUps() == 0 {
		t.Error("nobody was woken after the promise")
	}
	if len(q.keeper.busy) > 0 {
		t.Error("one wake-up made it look")
	}
}

// rests reports whether the next wake-up is counted as the first.
func (k *doorkeeper) rests() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.busy) == 0 && time.Since(k.since) > k.limit.span
}

func TestNodeFindsWhatWasAddedUnderAPromise(t *testing.T) {
	r := newDoorRig(t)
	q, rec, _ := r.start(0, lasting)
	r.promised(q)
	r.wakeUps()
	for i := range 50 {
		r.add(i)
	}
	r.exec(r.app, `select pawl.add_jobs('[{"task": "t", "payload": {"n": 50}}, {"task": "t", "payload": {"n": 51}, "lane": "l"}]')`)
	if got := r.numbers(rec, 52); got[0] != 0 || got[51] != 51 {
		t.Errorf("ran %v", got)
	}
	if _, holds := r.row(); !holds {
		t.Error("the promise did not last")
	}
	if n := r.wakeUps(); n != 0 {
		t.Errorf("%d wake-ups under a promise", n)
	}
}

// A transaction that lasts longer than the promise it took part in is waited for.
func TestSlowTransactionsAreWaitedFor(t *testing.T) {
	r := newDoorRig(t)
	q, rec, _ := r.start(0, func(l *doorLimits) { l.promise = time.Minute })
	r.promised(q)
	r.wakeUps()
	r.exec(r.app, `begin`)
	r.add(1)
	r.withdrawn(q.Node().ID)
	r.exec(r.app, `commit`)
	if got := r.numbers(rec, 1); got[0] != 1 {
		t.Errorf("ran %v", got)
	}
	eventually(t, "nobody answers for the door", func() bool { node, _ := r.row(); return node == "" })
	if n := r.wakeUps(); n != 0 {
		t.Errorf("%d wake-ups: it took no part in the promise", n)
	}
}

func TestRolledBackJobsAreNotFound(t *testing.T) {
	r := newDoorRig(t)
	q, rec, _ := r.start(0)
	r.promised(q)
	r.exec(r.app, `begin`)
	r.add(1)
	r.exec(r.app, `savepoint s`)
	r.add(2)
	r.exec(r.app, `rollback to s`)
	r.add(3)
	r.exec(r.app, `commit`)
	r.exec(r.app, `begin`)
	r.add(4)
	r.exec(r.app, `rollback`)
	r.add(5)
	if got := r.numbers(rec, 3); !slices.Equal(got, []int{1, 3, 5}) {
		t.Errorf("ran %v, want 1, 3 and 5", got)
	}
	eventually(t, "nothing is left", func() bool { return countJobs(t, q.db) == 0 })
}

// A node that died after its promise is answered for by the next one, also for
// transactions that were open all the time.
func TestPromiseOfADeadNodeIsInherited(t *testing.T) {
	r := newDoorRig(t)
	r.exec(r.other, `insert into door_watch (id, node, until_at) values (1, 'dead', 4000000000000)`)
	r.exec(r.app, `begin`)
	r.add(1)
	q, rec, _ := r.start(0)
	r.withdrawn(q.Node().ID)
	r.exec(r.app, `commit`)
	r.numbers(rec, 1)
	eventually(t, "nobody answers for the door", func() bool { node, _ := r.row(); return node == "" })
	if n := r.wakeUps(); n != 0 {
		t.Errorf("%d wake-ups: it took no part in the promise", n)
	}
}

// Nothing is inherited from a node that lives.
func TestPromiseOfALivingNodeIsLeftAlone(t *testing.T) {
	r := newDoorRig(t)
	a, _, _ := r.start(0)
	b, _, _ := r.start(0)
	r.promised(a)
	b.sweep()
	signal(b.keeper.busy)
	eventually(t, "the other node looked", func() bool { return len(b.keeper.check) == 0 && len(b.keeper.busy) == 0 })
	r.promised(a)
}

// A look serves the buckets of all nodes.
func TestLookTellsTheOwnersAtOtherNodes(t *testing.T) {
	r := newDoorRig(t)
	a, recA, _ := r.start(0, lasting)
	b, recB, _ := r.start(0, lasting)
	eventually(t, "they share", func() bool { return owned(a) == 32 && owned(b) == 32 })
	r.promised(a)
	r.wakeUps()
	for i := range 200 {
		r.add(i)
	}
	eventually(t, "all ran", func() bool { return len(recA.ch)+len(recB.ch) == 200 })
	if len(recA.ch) == 0 || len(recB.ch) == 0 {
		t.Errorf("%d and %d ran", len(recA.ch), len(recB.ch))
	}
	if n := r.wakeUps(); n != 0 {
		t.Errorf("%d wake-ups under a promise", n)
	}
}

// A node that leaves has another one answer for what is still open, and give its
// buckets' jobs their turn.
func TestPromiseOfANodeThatLeavesIsInherited(t *testing.T) {
	r := newDoorRig(t)
	a, _, stop := r.start(0)
	b, rec, _ := r.start(0)
	r.promised(a)
	r.exec(r.app, `begin`)
	for i := range 100 {
		r.add(i)
	}
	stop()
	r.withdrawn(b.Node().ID)
	eventually(t, "the other node has all buckets", func() bool { return owned(b) == 64 })
	r.exec(r.app, `commit`)
	r.numbers(rec, 100)
	eventually(t, "nobody answers for the door", func() bool { node, _ := r.row(); return node == "" })
}

// Where a look begins follows the transactions that are open, and a clock that is
// set back.
func TestLookBeginsWhereOpenTransactionsMayHaveWritten(t *testing.T) {
	w := &doorWatch{from: 1000, seen: map[int64]bool{}}
	steps := []struct {
		at, xmin, xid, want int64
		why                 string
	}{
		{2000, 10, 20, 1000, "nothing is known yet"},
		{2100, 19, 30, 1000, "a transaction is open that was so at the first look"},
		{2200, 20, 40, 2000 - doorSlack, "all that were open at the first look have ended"},
		{2300, 35, 50, 2100 - doorSlack, "and at the second"},
		{1500, 36, 60, 1500 - doorSlack, "the clock was set back"},
		{1600, 60, 70, 1500 - doorSlack, "and goes on from there"},
		{1700, 70, 80, 1600 - doorSlack, "and goes on from there"},
	}
	for _, s := range steps {
		w.move(store.DoorLook{At: s.at, Xmin: s.xmin, Xid: s.xid})
		if w.from != s.want {
			t.Errorf("after a look at %d: begins at %d, want %d: %s", s.at, w.from, s.want, s.why)
		}
	}
}
