package store

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestBucketHasOneOwnerAndItsEpochGrows(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		first, err := db.Take(t.Context(), "n1", Bucket{ID: 0})
		if err != nil || len(first) != 1 || first[0].Epoch != 1 {
			t.Fatalf("take: %+v, %v", first, err)
		}
		if got, err := db.Take(t.Context(), "n2", Bucket{ID: 0}); err != nil || len(got) != 0 {
			t.Errorf("took what somebody else took meanwhile: %v, %v", got, err)
		}
		if gone, err := db.Release(t.Context(), Fence{0, "n1", 1}); err != nil || len(gone) != 1 {
			t.Fatalf("released %v, %v", gone, err)
		}
		second, err := db.Take(t.Context(), "n2", Bucket{ID: 0, Epoch: 2})
		if err != nil || len(second) != 1 || second[0].Epoch != 3 {
			t.Errorf("take after release: %+v, %v", second, err)
		}
	})
}

func TestBeatFailsForANodeThatWasBuried(t *testing.T) {
	db := open(t, pgtest.URL(t))
	if err := db.Join(t.Context(), Node{ID: "n1", Share: true}); err != nil {
		t.Fatal(err)
	}
	v, err := db.Beat(t.Context(), Node{ID: "n1"})
	if err != nil || len(v.Nodes) != 1 || len(v.Buckets) != db.Buckets() {
		t.Fatalf("beat: %+v, %v", v, err)
	}
	if buried, err := db.Bury(t.Context(), "n1", 0); err != nil || buried { // an old heartbeat: it lives
		t.Fatal(err)
	}
	if _, err := db.Beat(t.Context(), Node{ID: "n1"}); err != nil {
		t.Errorf("a living node was buried: %v", err)
	}
	if buried, err := db.Bury(t.Context(), "n1", 2); err != nil || !buried {
		t.Fatal(err)
	}
	if _, err := db.Beat(t.Context(), Node{ID: "n1"}); !errors.Is(err, pawl.ErrLeaseLost) {
		t.Errorf("beat of a buried node: %v", err)
	}
}

// A takeover leaves alone what the old owner has a transaction under way for,
// gets all the rest, and defeats what the old owner begins later.
func TestTakeoverLeavesTransactionsUnderWayAlone(t *testing.T) {
	db := open(t, pgtest.URL(t))
	scratch(t, db)
	taken, err := db.Take(t.Context(), "n1", Bucket{ID: 7}, Bucket{ID: 8}, Bucket{ID: 9})
	if err != nil {
		t.Fatal(err)
	}
	fence := Fence{7, "n1", taken[0].Epoch}
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		if err := tx.Fence(ctx, fence); err != nil {
			return err
		}
		if err := insert(1, 1)(ctx, tx); err != nil { // the fence travels with it
			return err
		}
		got, err := db.Take(ctx, "n2", taken...) // must not wait for this transaction
		if err != nil || len(got) != 2 || got[0].ID != 8 || got[1].ID != 9 {
			t.Errorf("took %+v, %v; want 8 and 9", got, err)
		}
		if gone, err := db.Release(ctx, fence); err != nil || len(gone) != 0 {
			t.Errorf("released %v, %v under a transaction", gone, err)
		}
		return nil
	})
	if got, err := db.Take(t.Context(), "n2", taken[0]); err != nil || len(got) != 1 {
		t.Errorf("took %+v, %v after the transaction", got, err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		if err := tx.Fence(ctx, fence); err != nil {
			return err
		}
		return insert(2, 2)(ctx, tx)
	})
	if !errors.Is(err, pawl.ErrLeaseLost) || count(t, db, `select count(*) from scratch`) != 1 {
		t.Errorf("a later transaction of the old owner: %v", err)
	}
}

// Two processes under one id: the heartbeat of the earlier one says so, and it
// cannot take the later one's things with it when it leaves.
func TestHeartbeatCountsForTheProcessThatJoinedLast(t *testing.T) {
	db := open(t, pgtest.URL(t))
	one, two := Node{ID: "n", Incarnation: "one"}, Node{ID: "n", Incarnation: "two"}
	for _, n := range []Node{one, two} {
		if err := db.Join(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Take(t.Context(), "n", Bucket{ID: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Beat(t.Context(), one); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("the earlier one: %v", err)
	}
	if err := db.Leave(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if v, err := db.Beat(t.Context(), two); err != nil || v.Buckets[1].Node != "n" && v.Buckets[1].ID == 1 {
		t.Errorf("the later one: %v", err)
	}
	if n := count(t, db, `select count(*) from buckets where node = 'n'`); n != 1 {
		t.Errorf("%d buckets are left to the later one, want 1", n)
	}
}

// A heartbeat that waits for whoever removes its row sees the row as it was. It is
// no other process that it met.
func TestHeartbeatWhileTheRowIsRemoved(t *testing.T) {
	db := open(t, pgtest.URL(t))
	n := Node{ID: "n", Incarnation: "one"}
	if err := db.Join(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	beaten := make(chan error, 1)
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.Exec(ctx, `delete from nodes where id = 'n'`); err != nil {
			return err
		}
		go func() {
			_, err := db.Beat(t.Context(), n)
			beaten <- err
		}()
		for count(t, db, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0 {
			runtime.Gosched()
		}
		return nil
	})
	if err := <-beaten; !errors.Is(err, pawl.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// A name belongs to one link at a time, and to nobody once that is closed.
func TestNameIsClaimedByOneLink(t *testing.T) {
	url := pgtest.URL(t)
	one, two := open(t, url), open(t, url)
	first, err := one.OpenLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := two.OpenLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for i, s := range []*Link{first, second} {
		if mine, err := s.Claim(t.Context(), "n"); err != nil || mine != (i == 0) {
			t.Fatalf("link %d: %v, %v", i, mine, err)
		}
	}
	_ = one.Close() // as the end of its process would
	for mine := false; !mine; {
		if mine, err = second.Claim(t.Context(), "n"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHintsReachListeners(t *testing.T) {
	db := open(t, pgtest.URL(t))
	ready, got := make(chan struct{}), make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s, err := db.OpenLink(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		done <- s.Listen(ctx, "pawl_test", 50*time.Millisecond, func() { close(ready) }, func(m string) { got <- m })
	}()
	<-ready
	if err := db.Notify(t.Context(), "pawl_test", "hello"); err != nil {
		t.Fatal(err)
	}
	if m := <-got; m != "hello" {
		t.Errorf("heard %q", m)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("listen ended with %v", err)
	}
}
