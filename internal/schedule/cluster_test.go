package schedule

import (
	"context"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// node is a server with its queue, in real time.
type node struct {
	db   *store.DB
	s    *Service
	q    *queue.Queue
	stop func()
}

func startNode(t *testing.T, url string, graph *fakeGraph) *node {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{db: db}
	if n.s, err = New(Options{DB: db, Ledger: ledger.New(ledger.Config{}), Executions: graph, Grants: grant.Service{}}); err != nil {
		t.Fatal(err)
	}
	n.q, err = queue.New(queue.Config{
		DB: db, Node: store.Node{ID: store.NewID(), Share: true}, Workers: 4, Pools: map[string]int{PoolName: 64}, Drain: time.Millisecond,
		Tasks: n.s.Tasks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.s.Attach(n.q)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.q.Run(ctx) }()
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run queue: %v", err)
		}
		_ = db.Close()
	}
	t.Cleanup(n.stop)
	return n
}

// C-06, C-09, C-52, X-52, X-65: two workers on one PostgreSQL, whose jobs are
// armed again and again by both, of which one stops in the middle: every slot
// is executed once and gets its outcome.
func TestTwoWorkersExecuteEverySlotOnce(t *testing.T) {
	url, graph := pgtest.URL(t), newFakeGraph()
	graph.takes = 700 * time.Millisecond
	a, b := startNode(t, url, graph), startNode(t, url, graph)
	const schedules = 24
	slots := make([]schedulestore.Slot, schedules)
	for i := range schedules {
		err := b.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			user, err := userstore.In(tx).EnsureUser(ctx, "ada", userstore.RoleOperator)
			if err != nil {
				return err
			}
			in := ask(fmt.Sprintf("s%d", i), policies()[i%4])
			in.Cron = "0 0 1 1 *"
			sch, err := b.s.Create(ctx, tx, user.ID, in, "t")
			if err != nil {
				return err
			}
			slots[i], err = b.s.RunNow(ctx, tx, user.ID, sch.ID, "t")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	deadline, tick := time.After(60*time.Second), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for round := 0; ; round++ {
		open := 0
		for i, slot := range slots {
			err := b.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				if slots[i], err = schedulestore.In(tx).GetSlot(ctx, slot.ScheduleID, slot.ScheduledFor); err != nil {
					return err
				}
				sch, err := schedulestore.In(tx).GetSchedule(ctx, slot.ScheduleID)
				if err != nil || round > 20 {
					return err
				}
				return b.s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now)
			})
			if err != nil {
				t.Fatal(err)
			}
			if slots[i].Disposition == "" {
				open++
			}
		}
		if round == 3 {
			a.stop()
		}
		if open == 0 && round > 25 {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d slots are still open", open)
		}
	}
	for _, slot := range slots {
		key := pawl.SlotKey(slot.ScheduleID, slot.ScheduledFor)
		if r := graph.seen(key); slot.Status != "success" || slot.Attempts != 1 || r == nil || len(r.begun) != 1 {
			t.Errorf("%+v ran %+v", slot, r)
		}
	}
}
