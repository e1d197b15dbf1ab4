package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// noTriage is what a workflow that is not there says.
func noTriage() *pawl.Error {
	return &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no workflow \"triage\""}
}

// retries are the jobs that see to pending deliveries.
func (k *kit) retries() (list []store.Job) {
	k.t.Helper()
	var ids []int64
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, `select id from jobs where task = $1 order by id`, TaskName)
		ids, err = store.ScanAll(rows, err, "read jobs", store.ScanID)
		return err
	})
	if err == nil {
		list, err = k.db.FetchJobs(k.t.Context(), ids)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// run lets the queue run until a delivery is no more pending, as a server does. Its
// job is due at once.
func (k *kit) run(id int64) hookstore.Delivery {
	k.t.Helper()
	changed := make(chan struct{}, 100)
	k.s.cfg.Changed = func(string) { changed <- struct{}{} }
	tasks := k.s.Tasks()
	task := tasks[TaskName]
	task.Backoff = func(int64, int) time.Duration { return 0 }
	tasks[TaskName] = task
	q, err := queue.New(queue.Config{DB: k.db, Log: k.s.log, Tasks: tasks, Workers: 1, Node: store.Node{ID: store.NewID(), Share: true}})
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(k.t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for {
		var d hookstore.Delivery
		err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			d, err = hookstore.In(tx).FindDelivery(ctx, "github", fmt.Sprint(id))
			return err
		})
		if err != nil {
			k.t.Fatal(err)
		}
		if d.Outcome != hookstore.Pending {
			return d
		}
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			k.t.Fatalf("it is still pending: %+v", d)
		}
	}
}

// due makes the jobs of pending deliveries due now.
func (k *kit) due() {
	k.t.Helper()
	err := k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update jobs set run_at = $1 where task = $2`, store.Millis(tx.Now), TaskName)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// What a delivery becomes may not be possible yet. It is kept, and somebody sees to
// it.
func TestAPendingDeliveryIsTriedAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.refusal.Store(noTriage())
		k.expect("refused", http.StatusAccepted, request("d1", opened))
		k.expect("the same again", http.StatusOK, request("d1", opened))
		d := k.one(hookstore.Pending)
		if d.Reason != "there is no workflow \"triage\"" || d.Attempts != 1 || d.Effects != 0 {
			t.Errorf("it is %+v", d)
		}
		if jobs := k.retries(); len(jobs) != 1 || jobs[0].Owner != "" || !jobs[0].RunAt.After(d.ReceivedAt) || jobs[0].MaxAttempts != mostAttempts {
			t.Errorf("the jobs are %+v", jobs)
		}
		k.refusal.Store(nil)
		k.due()
		d = k.run(d.ID)
		if d.Outcome != hookstore.Delivered || d.Reason != "" || d.Attempts != 2 || d.Effects != 1 || d.Effect == "" {
			t.Errorf("it is %+v", d)
		}
		if list := k.effects(); len(list) != 1 || list[0].Key != "hook/github/d1" {
			t.Errorf("it became %+v", list)
		}
	})
}

func TestAPendingDeliveryIsGivenUp(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.refusal.Store(noTriage())
		k.expect("refused", http.StatusAccepted, request("d1", opened))
		k.due()
		d := k.run(k.one(hookstore.Pending).ID)
		if d.Outcome != hookstore.Failed || d.Attempts != mostAttempts+1 || d.Reason == "" {
			t.Errorf("it is %+v", d)
		}
		// It can still be delivered by hand.
		if _, err := k.redeliver("d1"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("while it is refused: %v", err)
		}
		k.refusal.Store(nil)
		if d, err := k.redeliver("d1"); err != nil || d.Outcome != hookstore.Delivered || d.Effects != 1 {
			t.Errorf("by hand: %+v, %v", d, err)
		}
		if list := k.effects(); len(list) != 1 || list[0].Key != "hook/github/d1" {
			t.Errorf("it became %+v", list)
		}
	})
}

// A process that dies while it tries again leaves the delivery pending, with its job.
func TestKilledWhileTryingAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.refusal.Store(noTriage())
		k.expect("refused", http.StatusAccepted, request("d1", opened))
		k.refusal.Store(nil)
		k.due()
		kills := 0
		k.fault = func(string) error {
			if kills++; kills <= 3 {
				return errKilled // the effect was written, and nothing is committed
			}
			return nil
		}
		d := k.run(k.one(hookstore.Pending).ID)
		if d.Outcome != hookstore.Delivered || d.Effects != 1 {
			t.Errorf("it is %+v", d)
		}
		if list := k.effects(); len(list) != 1 {
			t.Errorf("there are %d effects", len(list))
		}
	})
}

// A delivery that a person saw to is left alone by its job.
func TestDeliveredByHandBeforeItsJob(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.refusal.Store(noTriage())
		k.expect("refused", http.StatusAccepted, request("d1", opened))
		k.expect("another", http.StatusAccepted, request("d2", opened))
		k.refusal.Store(nil)
		if _, err := k.redeliver("d1"); err != nil {
			t.Fatal(err)
		}
		k.due()
		k.run(k.deliveries("github", hookstore.Pending)[0].ID) // behind that of the first
		if list := k.effects(); len(list) != 2 {
			t.Errorf("there are %d effects", len(list))
		}
	})
}

// Whoever delivers again by hand means it: the effect takes place once more, as
// another one.
func TestDeliverAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.expect("a delivery", http.StatusAccepted, request("d1", opened))
		id := k.one(hookstore.Delivered).ID
		for want := 2; want <= 3; want++ {
			d, err := k.redeliver("d1")
			if err != nil || d.ID != id || d.Effects != want || d.Attempts != want {
				t.Errorf("it is %+v, %v", d, err)
			}
		}
		var keys []string
		for _, j := range k.effects() {
			keys = append(keys, j.Key)
		}
		if got := strings.Join(keys, " "); got != "hook/github/d1 hook/github/d1#2 hook/github/d1#3" {
			t.Errorf("the events are %s", got)
		}
		if _, err := k.redeliver("d2"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("another one: %v", err)
		}
		audited := 0
		entries, err := k.db.AuditLog(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Action == "hook.redeliver" && e.Actor == "ada" && e.Subject == "hook:github" {
				audited++
			}
		}
		if audited != 2 {
			t.Errorf("the audit log has %d lines of it", audited)
		}
	})
}

func TestWhatCannotBeDeliveredAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.expect("filtered", http.StatusAccepted, request("d1", `{"action":"closed"}`))
		_, err := k.redeliver("d1")
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Reason != hookstore.Filtered {
			t.Errorf("filtered: %v", err)
		}
		// Once the hook is for it, it is delivered.
		k.apply(strings.ReplaceAll(github, "[opened, reopened]", "closed"))
		if d, err := k.redeliver("d1"); err != nil || d.Outcome != hookstore.Delivered || d.Effects != 1 {
			t.Errorf("after the change: %+v, %v", d, err)
		}
		k.expect("forged", http.StatusUnauthorized, signed(request("d2", opened), "guess", opened))
		refused := k.deliveries("github", hookstore.Refused)
		_, err = k.redeliver(fmt.Sprint(refused[0].ID))
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Reason != hookstore.Refused {
			t.Errorf("refused: %v", err)
		}
	})
}

func TestOldDeliveriesAreForgotten(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.expect("a delivery", http.StatusAccepted, request("d1", opened))
		for _, c := range []struct {
			before time.Time
			want   int64
		}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}} {
			n, err := hookstore.PruneDeliveries(t.Context(), k.db, c.before, 100)
			if err != nil || n != c.want {
				t.Errorf("before %s %d are forgotten, want %d: %v", c.before, n, c.want, err)
			}
		}
	})
}
