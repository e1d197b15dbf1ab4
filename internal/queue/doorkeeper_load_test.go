package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
)

// Whatever applications do, and however promises begin and end meanwhile, all that
// was committed runs, long before the next sweep.
func TestNothingIsMissedWhilePromisesComeAndGo(t *testing.T) {
	const apps, transactions = 6, 60
	r := newDoorRig(t)
	a, recA, _ := r.start(2)
	_, recB, _ := r.start(2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := 0
	for range apps {
		c := r.connect()
		wg.Go(func() {
			for range transactions {
				level := []string{"read committed", "read committed", "repeatable read"}[rand.IntN(3)]
				n, end := 1+rand.IntN(3), "commit"
				if rand.IntN(5) == 0 {
					end = "rollback"
				}
				sql := "begin isolation level " + level + "; select 1 from jobs limit 1; "
				for range n {
					sql += fmt.Sprintf(`select pg_sleep(%f); select pawl.add_job('t'); select pg_sleep(%f); `, pause(), pause())
				}
				if _, err := c.Exec(t.Context(), sql+end); err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
				if end == "commit" {
					mu.Lock()
					committed += n
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all that was committed ran", func() bool { return len(recA.ch)+len(recB.ch) == committed })
	eventually(t, "nobody answers for the door", func() bool { node, _ := r.row(); return node == "" })
	if n := promises(t, a.db); n == 0 {
		t.Error("there was no promise at all")
	}
}

// pause is mostly none, seldom one that outlasts a promise; in seconds.
func pause() float64 {
	switch rand.IntN(40) {
	case 0:
		return 0.4
	case 1, 2, 3:
		return 0.02
	}
	return 0
}

// promises tells whether there ever was a promise.
func promises(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from door_watch`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
