package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// The switch has two positions, whoever moves it how often and at once, and it is
// known when it was where.
func TestTheSwitchThatHaltsEverything(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := open(t, url)
		begin := func(note string) (h Halt, changed bool) {
			mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
				h, changed, err = tx.BeginHalt(ctx, "ada", note)
				return err
			})
			return h, changed
		}
		lift := func() (h Halt, changed bool) {
			mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) { h, changed, err = tx.LiftHalt(ctx, "bob"); return err })
			return h, changed
		}
		if h, changed := lift(); changed || h.ID != 0 || h.Active() {
			t.Errorf("nothing was halted: %+v", h)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { begin("") })
		}
		wg.Wait()
		first, changed := begin("")
		if changed || first.ID != 1 || !first.Active() || first.By != "ada" {
			t.Fatalf("%+v, changed %v", first, changed)
		}
		if h, changed := begin("why"); !changed || h.Note != "why" || h.Since != first.Since {
			t.Errorf("%+v, changed %v", h, changed)
		}
		over, changed := lift()
		if !changed || over.Active() || over.LiftedBy != "bob" || over.ID != 1 {
			t.Errorf("%+v, changed %v", over, changed)
		}
		if h, changed := begin("again"); !changed || h.ID != 2 || h.Note != "again" {
			t.Errorf("%+v, changed %v", h, changed)
		}
		view, err := db.Cluster(t.Context())
		if err != nil || view.Halt != (HaltMark{ID: 2}) {
			t.Errorf("%+v, %v", view.Halt, err)
		}
	})
}

// An instant belongs to the halt that had begun and was not lifted yet.
func TestWhichHaltWasInForce(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := open(t, url)
		at := func(ms int64) time.Time { return FromMillis(ms) }
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `insert into halts (id, since_at, halted_by, note, lifted_at) values (1, 100, 'a', '', 200), (2, 200, 'b', '', 300), (3, 400, 'c', '', null)`)
			return err
		})
		err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			for ms, want := range map[int64]int64{99: 0, 100: 1, 199: 1, 200: 2, 299: 2, 300: 0, 399: 0, 400: 3, 9999: 3} {
				if h, err := tx.HaltAt(ctx, at(ms)); err != nil || h.ID != want {
					t.Errorf("at %d: %+v, %v", ms, h, err)
				}
			}
			for ms, want := range map[int64]int{0: 3, 199: 3, 200: 2, 300: 1, 9999: 1} {
				if list, err := tx.HaltsSince(ctx, at(ms)); err != nil || len(list) != want {
					t.Errorf("since %d: %v, %v", ms, list, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// Old ones are forgotten.
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `update halts set id = id + $1, lifted_at = 500 where id = 3`, haltsKept)
			if err == nil {
				_, _, err = tx.BeginHalt(ctx, "d", "")
			}
			return err
		})
		if list := halts(t, db); len(list) != 2 {
			t.Errorf("%v", list)
		}
	})
}

func halts(t *testing.T, db *DB) (list []Halt) {
	t.Helper()
	err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) (err error) {
		list, err = tx.HaltsSince(ctx, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
