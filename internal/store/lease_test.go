package store

import (
	"context"
	"errors"
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
		if err := db.Release(t.Context(), Fence{0, "n1", 1}); err != nil {
			t.Fatal(err)
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
	v, err := db.Beat(t.Context(), "n1")
	if err != nil || len(v.Nodes) != 1 || len(v.Buckets) != db.Buckets() {
		t.Fatalf("beat: %+v, %v", v, err)
	}
	if err := db.Bury(t.Context(), "n1", 0); err != nil { // an old heartbeat: it lives
		t.Fatal(err)
	}
	if _, err := db.Beat(t.Context(), "n1"); err != nil {
		t.Errorf("a living node was buried: %v", err)
	}
	if err := db.Bury(t.Context(), "n1", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Beat(t.Context(), "n1"); !errors.Is(err, pawl.ErrLeaseLost) {
		t.Errorf("beat of a buried node: %v", err)
	}
}

// A takeover waits for what the old owner has under way, and defeats what it
// begins later.
func TestTakeoverWaitsForTransactionsUnderWay(t *testing.T) {
	db := open(t, pgtest.URL(t))
	scratch(t, db)
	taken, err := db.Take(t.Context(), "n1", Bucket{ID: 7})
	if err != nil {
		t.Fatal(err)
	}
	b := taken[0]
	inside, leave, written := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		written <- db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.Fence(ctx, Fence{7, "n1", b.Epoch}); err != nil {
				return err
			}
			close(inside)
			<-leave
			return insert(1, 1)(ctx, tx)
		})
	}()
	<-inside
	takeover := make(chan error, 1)
	go func() {
		_, err := db.Take(t.Context(), "n2", b)
		takeover <- err
	}()
	select {
	case err := <-takeover:
		t.Errorf("the takeover did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	close(leave)
	if err := <-written; err != nil {
		t.Errorf("the transaction under way failed: %v", err)
	}
	if err := <-takeover; err != nil {
		t.Errorf("takeover: %v", err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		if err := tx.Fence(ctx, Fence{7, "n1", b.Epoch}); err != nil {
			return err
		}
		return insert(2, 2)(ctx, tx)
	})
	if !errors.Is(err, pawl.ErrLeaseLost) || count(t, db, `select count(*) from scratch`) != 1 {
		t.Errorf("a later transaction of the old owner: %v", err)
	}
}

func TestHintsReachListeners(t *testing.T) {
	db := open(t, pgtest.URL(t))
	ready, got := make(chan struct{}), make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- db.Listen(ctx, "pawl_test", func() { close(ready) }, func(m string) { got <- m })
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
