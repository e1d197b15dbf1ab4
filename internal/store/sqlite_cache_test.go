package store

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// What a server keeps of a file in memory is bounded, however large the file is:
// 8 MB for its writer, and 2 MB for each reader, who forgets it with every write.
func TestCachesOfAFileAreBounded(t *testing.T) {
	db := open(t, pgtest.SQLite(t))
	for name, c := range map[string]struct {
		in   func(context.Context, Func) error
		want int
	}{
		"writer": {func(ctx context.Context, fn Func) error { return db.Write(ctx, fn) }, -8000},
		"reader": {db.Read, -2000},
	} {
		size := 0
		if err := c.in(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.QueryRow(ctx, `pragma cache_size`).Scan(&size) }); err != nil || size != c.want {
			t.Errorf("%s: %d, %v", name, size, err)
		}
	}
}
