package workflow

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
)

// Each sort of partitions is listed whole and once, page by page, with the oldest trouble
// first, also where several have the same instant.
func TestPartitionsAreListedBySort(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKit(t, url)
		w := k.deploy("shop", "1", shopDefinition())
		var want [4][]string
		for i := range 40 {
			sort := i % 4
			id := fmt.Sprintf("%024d", (i*7)%40)
			issue, since, place := "", any(nil), 0
			switch sort {
			case 0, 1:
				issue, since = "failed", 1000+i/12
			default:
				place = map[int]int{2: 2, 3: 1}[sort]
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `insert into partitions (workflow_id, id, handler, name, news, place, place_since, open, issue, attention, issue_since, created_at, updated_at)
					values ($1, $2, 'order', $2, 1, $3, $4, 1, $5, $6, $7, 1, 1)`, w.ID, id, place, 2000+i/12, issue, map[bool]int{true: 1}[sort == 0], since)
				return err
			})
			want[sort] = append(want[sort], id)
		}
		for sort, name := range []string{partitionstore.SortAttention, partitionstore.SortHeld, partitionstore.SortWorking, partitionstore.SortWaiting} {
			var got []string
			var after partitionstore.Cursor
			last := int64(0)
			for {
				var page []PartitionNow
				k.read(func(ctx context.Context, tx *store.Tx) (err error) {
					page, err = k.s.Partitions(ctx, tx, w, name, after, 3)
					return err
				})
				if len(page) == 0 {
					break
				}
				for _, p := range page {
					got = append(got, p.ID)
					if at := partitionstore.CursorOf(name, p.Partition).Since.UnixMilli(); name != partitionstore.SortWorking && at < last {
						t.Errorf("%s: one since %d comes after %d", name, at, last)
					} else {
						last = at
					}
				}
				after = partitionstore.CursorOf(name, page[len(page)-1].Partition)
			}
			slices.Sort(got)
			slices.Sort(want[sort])
			if !slices.Equal(got, want[sort]) {
				t.Errorf("%s: %v, want %v", name, got, want[sort])
			}
		}
	})
}
