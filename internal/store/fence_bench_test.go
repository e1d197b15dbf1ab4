package store

import (
	"context"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// BenchmarkFence compares the two ways in which a holder's transaction can
// keep a takeover out on PostgreSQL: a shared advisory lock, which is what
// Tx.Fence takes, and a shared lock on the bucket's row, which leaves a
// multixact on a hot row. Sixteen connections write small transactions for one
// bucket.
func BenchmarkFence(b *testing.B) {
	fences := map[string]Func{
		"none": func(context.Context, *Tx) error { return nil },
		"advisory": func(ctx context.Context, tx *Tx) error {
			return tx.Fence(ctx, Fence{3, "n1", 1})
		},
		"row": func(ctx context.Context, tx *Tx) error {
			var one int
			return tx.QueryRow(ctx, `select 1 from buckets where id = $1 and node = $2 and epoch = $3 for share`, 3, "n1", 1).Scan(&one)
		},
	}
	for _, name := range []string{"none", "advisory", "row"} {
		b.Run(name, func(b *testing.B) {
			db := open(b, pgtest.URL(b))
			scratch(b, db)
			if _, err := db.Take(b.Context(), "n1", Bucket{ID: 3}); err != nil {
				b.Fatal(err)
			}
			next := make(chan int, 1024)
			go func() {
				defer close(next)
				for i := 0; b.Loop(); i++ {
					next <- i
				}
			}()
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for i := range next {
						err := db.Write(b.Context(), func(ctx context.Context, tx *Tx) error {
							if err := fences[name](ctx, tx); err != nil {
								return err
							}
							return insert(i, i)(ctx, tx)
						})
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
