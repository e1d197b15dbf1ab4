package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// canaries is a queue whose canary is due every 300 ms.
func canaries(t *testing.T, db *store.DB, change func(*Config)) (q *Queue, stop func()) {
	t.Helper()
	cfg := Config{Canary: true, limits: defaultLimits()}
	cfg.limits.canary = 300 * time.Millisecond
	if change != nil {
		change(&cfg)
	}
	return startQueue(t, db, cfg)
}

func (q *Queue) rounds() (last Round, well bool) {
	last, _, err := q.Canary()
	return last, err == nil
}

func canaryRows(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from jobs where task = $1`, CanaryName).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A node proves again and again that jobs run, leaves one row and no history, and
// tells nobody of it but its gauges.
func TestTheCanaryComesRound(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, heard, reg := openDB(t, url), make(chan Event, 100), prometheus.NewRegistry()
		q, stop := canaries(t, db, func(c *Config) {
			c.Observe = func(e Event) { heard <- e }
			c.Metrics = NewMetrics(reg)
		})
		var before Round
		for range 3 {
			eventually(t, "a round ends", func() bool { last, well := q.rounds(); return well && last.Ended.After(before.Ended) })
			before, _ = q.rounds()
			if before.Took < 0 || before.Took > time.Minute {
				t.Errorf("it took %s", before.Took)
			}
		}
		if n := canaryRows(t, db); n != 1 {
			t.Errorf("%d rows", n)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		gauges := map[string]bool{}
		for _, f := range families {
			gauges[f.GetName()] = true
			if strings.Contains(f.String(), CanaryName) {
				t.Errorf("it is counted among jobs: %s", f.GetName())
			}
		}
		if !gauges["pawl_canary_round_trip_seconds"] || !gauges["pawl_canary_last_round_timestamp_seconds"] {
			t.Errorf("%v", gauges)
		}
		stop()
		if len(heard) > 0 {
			t.Errorf("whoever watches heard of %+v", <-heard)
		}
	})
}

// A node whose timer does not fire, or whose jobs nobody takes, is not ready although
// the database answers and every loop of the queue is well.
func TestACanaryThatDoesNotComeRoundIsTold(t *testing.T) {
	for name, breakIt := range map[string]func(b *board){
		"timer": func(b *board) { b.timer.Stop(); b.timer = time.AfterFunc(time.Hour, func() {}) },
		"claim": func(b *board) { b.poolOf[CanaryName] = b.addPool(1) },
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := canaries(t, openDB(t, "sqlite:"+t.TempDir()+"/pawl.db"), nil)
			eventually(t, "a round ends", func() bool { last, well := q.rounds(); return well && !last.Ended.IsZero() })
			q.board.mu.Lock()
			breakIt(q.board)
			q.board.mu.Unlock()
			eventually(t, "it is told", func() bool { _, well := q.rounds(); return !well })
			_, _, err := q.Canary()
			if !strings.Contains(err.Error(), "no job has come round for") || !strings.Contains(err.Error(), "the last one did at") || q.Health() != nil {
				t.Errorf("%v, the queue says %v", err, q.Health())
			}
		})
	}
}

// A canary whose bucket another node takes over goes to one of the node's own, and what
// it leaves behind goes away.
func TestACanaryFollowsItsNode(t *testing.T) {
	url := pgtest.URL(t)
	db := openDB(t, url)
	one, _ := canaries(t, db, nil)
	eventually(t, "a round ends", func() bool { last, well := one.rounds(); return well && !last.Ended.IsZero() })
	two, _ := canaries(t, openDB(t, url), nil)
	eventually(t, "both have their share", func() bool { return owned(one) == 32 && owned(two) == 32 })
	began := time.Now()
	eventually(t, "rounds end at both", func() bool {
		a, well := one.rounds()
		b, fine := two.rounds()
		return well && fine && a.Ended.After(began) && b.Ended.After(began)
	})
	eventually(t, "each has one row", func() bool { return canaryRows(t, db) == 2 })
}

// Without workers, and where it is turned off, there is none.
func TestNoCanaryWithoutWorkers(t *testing.T) {
	db := openDB(t, "sqlite:"+t.TempDir()+"/pawl.db")
	for _, cfg := range []Config{{DB: db, Node: store.Node{ID: "n"}, Canary: true}, {DB: db, Node: store.Node{ID: "n"}, Workers: 1}} {
		q, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, on, err := q.Canary(); on || err != nil || len(q.Tasks()) > 0 {
			t.Errorf("on: %v, %v, %v", on, err, q.Tasks())
		}
	}
}
