package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// Rows of a set arrive as they are on both databases: numbers as numbers, texts
// as texts, nothing as null.
func TestARowsetIsATable(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		text, n := "it's \"{}\" ü\x00", int64(1)<<60
		err := c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			table, args := tx.Rowset([]any{"before"}, "a text, b bigint", [][]any{{"x", int64(1)}, {&text, &n}, {(*string)(nil), (*int64)(nil)}, {"7", int64(-2)}})
			rows, err := tx.Query(ctx, `select $1 || coalesce(v.a, '-') || coalesce(v.b + 1, 0) from `+table, args...)
			got, err := ScanAll(rows, err, "read", ScanText)
			want := []string{"beforex2", "beforeit's \"{}\" ü\uFFFD" + fmt.Sprint(n+1), "before-0", "before7-1"}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		refused := c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			table, args := tx.Rowset(nil, "l text, more bigint", [][]any{{"lane-1", int64(5)}, {"nobody", int64(5)}})
			return tx.ChangeAll(ctx, 2, "add", `update crowd set n = n + v.more from `+table+` where lane = v.l`, args...)
		})
		if n := c.count(`select n from crowd where lane = 'lane-1'`); !errors.Is(refused, ErrSetRefused) || n != 0 {
			t.Errorf("%v, and the lane has %d", refused, n)
		}
	})
}

// The fences of many hold together, or not at all.
func TestFencesOfManyHoldTogether(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		taken, err := c.db.Take(t.Context(), "n1", Bucket{ID: 0})
		if err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		held := Fence{Bucket: taken[0].ID, Node: "n1", Epoch: taken[0].Epoch}
		try := func(list ...Fence) error {
			return c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
				if err := tx.FenceAll(ctx, list); err != nil {
					return err
				}
				return c.increment(ctx, tx, "lane-1")
			})
		}
		if err := try(held, held); err != nil {
			t.Error(err)
		}
		lost := held
		lost.Epoch++
		if err := try(held, lost); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		if n := c.count(`select n from crowd where lane = 'lane-1'`); n != 1 {
			t.Errorf("written %d times", n)
		}
	})
}

// Jobs with keys that are added together are as if each was added by itself: a
// key that is known keeps its row.
func TestJobsWithKeysAreAddedTogether(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		add := func(keys ...string) (jobs []Job) {
			err := c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) (err error) {
				var specs []JobSpec
				for _, key := range keys {
					specs = append(specs, JobSpec{Task: "t", Key: key, KeyMode: Earliest, Lane: "l" + key})
				}
				jobs, err = tx.Enqueue(ctx, specs)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return jobs
		}
		first := add("a")
		all := add("b", "a", "", "c", "b")
		var keys []string
		for _, j := range all {
			keys = append(keys, j.Key)
		}
		if !slices.Equal(keys, []string{"b", "a", "", "c", "b"}) || all[1].ID != first[0].ID || all[1].Rev != first[0].Rev+1 || all[4].ID != all[0].ID || all[4].Rev != 1 {
			t.Errorf("%+v", all)
		}
		if n := c.count(`select count(*) from jobs`); n != 4 {
			t.Errorf("%d jobs", n)
		}
	})
}

// Whoever comes while others are at work is part of the next set, once.
func TestSetsTakeWhoWaits(t *testing.T) {
	var s Sets[int]
	var mu sync.Mutex
	done, biggest := map[int]int{}, 0
	hold, held := make(chan struct{}), make(chan struct{}, maxSetLeaders)
	all := func(list []int) {
		if list[0] < maxSetLeaders {
			held <- struct{}{}
			<-hold
		}
		mu.Lock()
		defer mu.Unlock()
		biggest = max(biggest, len(list))
		for _, one := range list {
			done[one]++
		}
	}
	var wg sync.WaitGroup
	for i := range maxSetLeaders {
		wg.Go(func() { s.Do(i, all) })
	}
	for range maxSetLeaders {
		<-held
	}
	for i := maxSetLeaders; i < 500; i++ {
		wg.Go(func() { s.Do(i, all) })
	}
	for waiting := 0; waiting < 500-maxSetLeaders; {
		s.mu.Lock()
		waiting = len(s.waiting)
		s.mu.Unlock()
	}
	close(hold)
	wg.Wait()
	for i := range 500 {
		if done[i] != 1 {
			t.Errorf("%d was done %d times", i, done[i])
		}
	}
	if biggest != maxSet || s.leaders != 0 {
		t.Errorf("the biggest set had %d, and %d still lead", biggest, s.leaders)
	}
}
