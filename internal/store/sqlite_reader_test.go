package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

// fleeting is a context that ends a moment after it was asked so many times
// whether it has: in the middle of a statement, if that asks last.
type fleeting struct {
	context.Context
	mu    sync.Mutex
	left  int // guarded by mu
	ended chan struct{}
}

func (f *fleeting) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left == 0 {
		go close(f.ended)
	}
	return f.ended
}

func (f *fleeting) Err() error {
	select {
	case <-f.ended:
		return context.Canceled
	default:
		return nil
	}
}

// A caller that goes away at whatever moment of a read leaves the reader to
// others as it was: no transaction stays open in it.
func TestACallerThatGoesAwayLeavesTheReaderUsable(t *testing.T) {
	db, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	look := func(ctx context.Context) error {
		return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
			var one int
			return tx.QueryRow(ctx, `select 1 from buckets limit 1`).Scan(&one)
		})
	}
	for i := range 20_000 { // few of them go away in the middle of a statement
		_ = look(&fleeting{Context: t.Context(), left: 2 + i%3, ended: make(chan struct{})})
	}
	for range liteReaders { // they take turns
		if err := look(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
