package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/need/needtest"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// kit is a service on a database in simulated time. Its jobs are rows of the
// real table; they run when the test lets time pass (pass), each lane one at a
// time, like the queue runs them.
type kit struct {
	t     testing.TB
	db    *store.DB
	s     *Service
	fence store.Fence
	graph *fakeGraph
	poet  *poet  // if there is one, the execution service is part of the process
	owner string // a user
	node  int

	needs  *need.Book // of the process
	source bool       // there is one, which prices are fetched with

	record int // how many slots that do not run have a row each; 0: as usual

	statements atomic.Int64
	trace      func(sql string, args []any) // set while nothing goes on; may be nil
	dead       chan struct{}                // closed when the test is over: what a dead process would do waits for it

	halt atomic.Pointer[store.HaltMark] // what the process knows; nil: nothing
	held map[int64]int64                // the jobs that wait for the end of a halt, with their times; guarded by mu

	fault   func(place string) error
	changes []lane.Change
	notices []lane.Notice
	mu      sync.Mutex // guards what follows

	process context.Context // of the jobs under way
	end     context.CancelCauseFunc
	crashed bool
	busy    map[string]bool // lanes and jobs
	jobs    sync.WaitGroup
}

// errCrash is the end of a process.
var errCrash = errors.New("crash")

// inTime runs a test in simulated time, on both databases.
func inTime(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		synctest.Test(t, func(t *testing.T) { test(t, newKit(t, url)) })
	})
}

// onSQLite runs a test in simulated time, where what happens in the database is
// not the question.
func onSQLite(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pawl.db")
	synctest.Test(t, func(t *testing.T) { test(t, newKit(t, "sqlite:"+file)) })
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	return newKitWith(t, url, nil)
}

func newKitWith(t testing.TB, url string, p *poet) *kit {
	t.Helper()
	k := &kit{t: t, graph: newFakeGraph(), poet: p, dead: make(chan struct{})}
	db, err := store.Open(t.Context(), url, store.Options{Trace: k.asked})
	if err != nil {
		t.Fatal(err)
	}
	k.db = db
	t.Cleanup(func() { _ = db.Close() })
	k.start()
	t.Cleanup(func() {
		close(k.dead)
		k.kill()
		if p != nil {
			p.end()
		}
	})
	k.owner = k.user("ada")
	return k
}

// asked counts the statements, and tells who wants to know.
func (k *kit) asked(sql string, args []any) {
	k.statements.Add(1)
	if k.trace != nil {
		k.trace(sql, args)
	}
}

func (k *kit) user(name string) (id string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		u, err := userstore.In(tx).EnsureUser(ctx, name, userstore.RoleOperator)
		id = u.ID
		return err
	})
	return id
}

// start makes a new process, which takes the lanes over. Like a server, it
// closes what was missed before it claims anything.
func (k *kit) start() {
	k.t.Helper()
	k.node++
	node := fmt.Sprintf("n%d", k.node)
	taken, err := k.db.Take(k.t.Context(), node, store.Bucket{ID: k.fence.Bucket, Node: k.fence.Node, Epoch: k.fence.Epoch})
	if err != nil || len(taken) != 1 {
		k.t.Fatalf("take bucket: %v, %v", taken, err)
	}
	k.fence = store.Fence{Bucket: taken[0].ID, Node: node, Epoch: taken[0].Epoch}
	var executions execution.API = k.graph
	if k.poet != nil {
		executions = k.poet.service(k)
	}
	k.needs = &need.Book{}
	if k.source {
		k.needs.Provide(needtest.Source{})
	}
	k.s, err = New(Options{
		Needs: k.needs,
		DB:    k.db, Ledger: ledger.New(ledger.Config{}), Executions: executions, Grants: grant.Service{},
		Host: lane.Host{
			Halt:    k.halted,
			Observe: func(c lane.Change) { k.mu.Lock(); k.changes = append(k.changes, c); k.mu.Unlock() },
			Notify: func(_ context.Context, _ *store.Tx, n lane.Notice) error {
				k.mu.Lock()
				k.notices = append(k.notices, n)
				k.mu.Unlock()
				return nil
			},
		},
		record: k.record,
		fault: func(place string) error {
			k.mu.Lock()
			fault := k.fault
			k.mu.Unlock()
			if fault == nil {
				return nil
			}
			return fault(place)
		},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.s.Attach(table{})
	k.letGo()
	k.busy, k.crashed = map[string]bool{}, false
	k.process, k.end = context.WithCancelCause(context.Background())
	if err := k.s.Start(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// kill ends the process at once; what it did not write is lost. stop is the
// graceful end.
func (k *kit) kill() { k.end(errCrash); k.jobs.Wait() }
func (k *kit) stop() { k.end(queue.ErrShutdown); k.jobs.Wait() }

// restart is a new process after a time in which nobody was there.
func (k *kit) restart(after time.Duration) {
	k.kill()
	k.nobody(after)
	k.start()
}

// nobody lets time pass in which no job runs and no worker beats.
func (k *kit) nobody(d time.Duration) { time.Sleep(d) }

// table arms jobs by rows alone.
type table struct{}

func (table) EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	return tx.Enqueue(ctx, specs)
}

// turn is one run of a job: a claim.
type turn struct {
	store.Job
	fence store.Fence
}

func (c *turn) Fence() store.Fence { return c.fence }
func (c *turn) Stopping() bool     { return false }
func (c *turn) StillOwned() error  { return nil }

// pass lets time pass. Jobs run when they are due, and workers note every
// twenty seconds that they are there.
func (k *kit) pass(d time.Duration) {
	k.t.Helper()
	for until := time.Now().Add(d); ; {
		news := false
		for k.runDue() {
			news = true
			synctest.Wait()
		}
		k.mu.Lock()
		crashed := k.crashed
		k.mu.Unlock()
		if crashed {
			k.kill()
			k.start()
			continue
		}
		if time.Now().Unix()%20 == 0 && time.Now().Nanosecond() == 0 {
			if err := k.s.beat(k.t.Context()); err != nil {
				k.t.Fatal(err)
			}
		}
		if news {
			k.checkRows()
		}
		if !time.Now().Before(until) {
			return
		}
		time.Sleep(min(k.quiet(), time.Until(until)))
	}
}

// checkRows holds that every schedule is found by how it stands.
func (k *kit) checkRows() {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		all, err := schedulestore.In(tx).FindSchedules(ctx, runstore.LaneFilter{}, "", "", 100)
		if err != nil {
			return err
		}
		for _, sch := range all {
			d, err := k.s.details(ctx, tx, sch, 1, run.Workforce{})
			if err != nil {
				return err
			}
			found, err := schedulestore.In(tx).FindSchedules(ctx, runstore.LaneFilter{State: string(d.State)}, "", "", 100)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(found, func(f schedulestore.Schedule) bool { return f.ID == sch.ID }) {
				k.t.Errorf("at %s the schedule is %s (%s), and is not found by it", time.Now().UTC().Format(time.TimeOnly), d.State, d.Sentence)
			}
		}
		return nil
	})
}

// quiet is for how long nothing can happen.
func (k *kit) quiet() time.Duration {
	k.t.Helper()
	now := time.Now()
	k.mu.Lock()
	busy := len(k.busy) > 0
	k.mu.Unlock()
	if busy {
		return now.Truncate(time.Second).Add(time.Second).Sub(now)
	}
	next := now.Truncate(20 * time.Second).Add(20 * time.Second)
	for _, text := range k.column(`select run_at || '' from jobs where state = 0 order by run_at limit 1`) {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			k.t.Fatal(err)
		}
		if due := time.UnixMilli(ms); due.Before(next) {
			next = due
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// runDue starts the jobs that are due and whose lanes are free.
func (k *kit) runDue() (some bool) {
	k.t.Helper()
	for _, j := range k.due() {
		k.mu.Lock()
		free := !k.busy[j.Lane] && !k.busy[j.Key] && !k.crashed
		if free {
			k.busy[j.Lane], k.busy[j.Key] = true, true
		}
		k.mu.Unlock()
		if free {
			some = true
			k.jobs.Go(func() { k.runJob(j, k.process, k.fence) })
		}
	}
	return some
}

func (k *kit) due() (list []store.Job) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list = nil
		rows, err := tx.Query(ctx, `select id, rev, run_at, task, coalesce(lane, ''), coalesce(key, ''), payload from jobs where state = 0 and run_at <= $1 order by run_at, id`, time.Now().UnixMilli())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var j store.Job
			var payload string
			var at int64
			if err := rows.Scan(&j.ID, &j.Rev, &at, &j.Task, &j.Lane, &j.Key, &payload); err != nil {
				return err
			}
			j.RunAt, j.Payload = store.FromMillis(at), json.RawMessage(payload)
			list = append(list, j)
		}
		return rows.Err()
	})
	return list
}

// runJob runs a job and writes how it ended, unless its process is dead.
func (k *kit) runJob(j store.Job, process context.Context, fence store.Fence) {
	again, err := k.work(process, j, fence)
	cause := context.Cause(process)
	if errors.Is(err, errCrash) {
		k.mu.Lock()
		k.crashed = true
		k.mu.Unlock()
	}
	if errors.Is(err, errCrash) || errors.Is(cause, errCrash) {
		return
	}
	switch {
	case cause != nil:
		again = time.Now()
	case errors.Is(err, queue.ErrHalted):
		again = k.hold(j)
	case err != nil:
		k.t.Errorf("job %s: %v", j.Key, err)
		again = time.Now().Add(time.Second)
	}
	_ = k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		if again.IsZero() {
			_, err := tx.Exec(ctx, `delete from jobs where id = $1 and rev = $2`, j.ID, j.Rev)
			return err
		}
		_, err := tx.Exec(ctx, `update jobs set run_at = $3 where id = $1 and rev = $2`, j.ID, j.Rev, again.UnixMilli())
		return err
	})
	k.mu.Lock()
	delete(k.busy, j.Lane)
	delete(k.busy, j.Key)
	k.mu.Unlock()
}

func (k *kit) work(ctx context.Context, j store.Job, fence store.Fence) (again time.Time, err error) {
	if j.Task == BackfillName {
		var p backfillPayload
		if err := json.Unmarshal(j.Payload, &p); err != nil {
			return again, err
		}
		err = k.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			again, err = k.s.startNext(ctx, tx, p.Backfill)
			return err
		})
		return again, err
	}
	if j.Task == ContinueName {
		return k.s.proceed(ctx, j.Key[len(j.Task)+1:])
	}
	p, err := parsePayload(j.Payload)
	if err != nil {
		return again, err
	}
	return k.s.work(ctx, &turn{j, fence}, p.ScheduleID, p.ScheduledFor.Time)
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(context.Background(), fn); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) read(fn store.Func) {
	k.t.Helper()
	if err := k.db.Read(context.Background(), fn); err != nil {
		k.t.Fatal(err)
	}
}

// change runs a statement.
func (k *kit) change(sql string, args ...any) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, sql, args...); return err })
}

// column reads one column.
func (k *kit) column(sql string, args ...any) (out []string) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				return err
			}
			out = append(out, v)
		}
		return rows.Err()
	})
	return out
}

// ask is a schedule of every minute.
func ask(name string, policy pawl.ConcurrencyPolicy) client.ScheduleRequest {
	return client.ScheduleRequest{Name: name, GraphID: "x:poet", Cron: "* * * * *", Input: json.RawMessage(`{"n":1}`), ConcurrencyPolicy: policy}
}

func (k *kit) create(in client.ScheduleRequest) (sch schedulestore.Schedule) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		sch, err = k.s.Create(ctx, tx, k.owner, in, "tester")
		return err
	})
	return sch
}

func (k *kit) update(sch schedulestore.Schedule, in client.SchedulePatch) (now schedulestore.Schedule) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		now, err = k.s.Update(ctx, tx, k.owner, sch.ID, in, "tester")
		return err
	})
	return now
}

func (k *kit) schedule(id string) (sch schedulestore.Schedule) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		sch, err = schedulestore.In(tx).GetSchedule(ctx, id)
		return err
	})
	return sch
}

// try runs something that is to be refused, and returns why.
func (k *kit) try(fn store.Func) *pawl.Error {
	k.t.Helper()
	err := k.db.Write(context.Background(), fn)
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		k.t.Fatalf("it was not refused: %v", err)
	}
	return e
}

// crashAt sets where the process dies; nil: nowhere.
func (k *kit) crashAt(fault func(place string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = fault
}
