package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// Transactions that all change one row become one: nothing is lost of what each wrote,
// each is refused on its own, two that have a lane in common never share a transaction,
// and nothing is kept of a group in which nobody is.
func TestThoseThatChangeOneRowBecomeOne(t *testing.T) {
	sour := errors.New("sour")
	inCrowd(t, func(c *crowd) {
		const members, each = 64, 5
		var after atomic.Int64
		everybody(members, func(i int) {
			for k := range each {
				err := c.db.WriteTogether(t.Context(), "all", func(ctx context.Context, tx *Tx) error {
					if _, err := tx.Exec(ctx, `update crowd set n = n + 1 where lane = 'all'`); err != nil {
						return err
					}
					if k == 0 && i%16 == 3 {
						return sour
					}
					tx.AfterCommit(func() { after.Add(1) })
					return c.mark(ctx, tx, fmt.Sprintf("%d#%d-%d", i%32, i, k))
				}, laneNo(i%32), laneNo(i))
				if bad := k == 0 && i%16 == 3; bad != errors.Is(err, sour) || !bad && err != nil {
					t.Errorf("%d-%d: %v", i, k, err)
				}
			}
		})
		const good = members*each - members/16
		if n := c.count(`select n from crowd where lane = 'all'`); n != good || after.Load() != good {
			t.Errorf("the row has %d, and %d were told of their commit; want %d", n, after.Load(), good)
		}
		if n := c.count(`select count(*) from marks`); n != good {
			t.Errorf("%d marks", n)
		}
		if c.db.sqliteFile == nil {
			if n := c.count(`select count(distinct xid) from marks`); n >= good/2 {
				t.Errorf("%d transactions: they did not become one", n)
			}
			if n := c.count(`select count(*) from (select 1 from marks group by xid, split_part(mark, '#', 1) having count(*) > 1) s`); n > 0 {
				t.Errorf("%d times two of a lane shared a transaction", n)
			}
		}
		if n := len(c.db.txGroups.of); n > 0 {
			t.Errorf("%d groups are kept", n)
		}
	})
}
