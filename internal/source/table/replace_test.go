package table

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

func TestReplaceHoldsWhatTheLastFetchHeld(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Replace, "id")
		p := k.ready(d)
		k.page(p, noon, false, []any{int64(1), "a"}, []any{int64(2), "b"}, []any{int64(1), "c"})
		k.page(p, noon, false, []any{int64(3), "d"}, []any{int64(2), "e"})
		k.has("", idsAndNames) // a reader sees nothing of it yet
		counts(t, k.finish(p, noon, false), 3, 0, 0, 0)
		k.has("1=c 2=e 3=d", idsAndNames)
		k.noStage()

		p = k.ready(d)
		k.page(p, noon, false, []any{int64(2), "e"}, []any{int64(3), "x"}, []any{int64(4), nil})
		res := k.finish(p, noon.Add(time.Hour), true)
		counts(t, res, 1, 1, 1, 1)
		got := fmt.Sprintf("%v", k.lines(`select cast(id as text) from prices order by id`))
		if got != "[2 3 4]" || len(res.Rows) != 2 {
			t.Errorf("ids %s, rows %v", got, res.Rows)
		}
		for _, c := range res.Rows {
			want := map[string]string{"[3]": `false{"id":3,"name":"x"}`, "[4]": `true{"id":4,"name":null}`}[c.Key]
			if fmt.Sprintf("%v%s", c.New, c.Row) != want {
				t.Errorf("row %s: %v %s, want %s", c.Key, c.New, c.Row, want)
			}
		}
		k.has("run-12 run-13 run-13", `select _run from prices order by id`)

		p = k.ready(d)
		counts(t, k.finish(p, noon, false), 0, 0, 0, 3)
		k.has("", idsAndNames)
	})
}

func TestReplaceWithoutKey(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := everything(spec.Replace)
		p := k.ready(d)
		empty := make([]any, 8)
		k.page(p, noon, false, rich(), rich(), empty)
		res := k.finish(p, noon, true)
		counts(t, res, 2, 0, 0, 0)
		found := false
		for _, c := range res.Rows {
			found = found || c.New && strings.Contains(string(c.Row), `"a_timestamp":"2026-02-03T04:05:06.789012Z","a_date":"2026-02-03"`)
		}
		if !found {
			t.Errorf("rows %+v", res.Rows)
		}
		p = k.ready(d)
		k.page(p, noon, false, rich())
		counts(t, k.finish(p, noon, false), 0, 0, 1, 1)
	})
}

// Begin throws away what a fetch left that was cut off; without Begin the fetch
// goes on.
func TestReplaceBeginsAnewOrGoesOn(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Replace, "id")
		k.page(k.ready(d), noon, false, []any{int64(1), "cut off"})
		p := k.ready(d)
		k.page(p, noon, false, []any{int64(2), "b"})
		resumed := k.plan(d)
		if _, err := k.ensure(resumed); err != nil {
			t.Fatal(err)
		}
		k.page(resumed, noon, false, []any{int64(3), "c"})
		counts(t, k.finish(resumed, noon, false), 2, 0, 0, 0)
		k.has("2=b 3=c", idsAndNames)
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := resumed.Finish(ctx, tx, Finish{At: noon})
			return err
		})
		if pawl.ErrorCode(err) != pawl.CodeConflict {
			t.Errorf("finish without rows: %v", err)
		}
		k.has("2=b 3=c", idsAndNames)
	})
}

// A reader sees all of the old rows or all of the new ones, and a swap that
// fails is as if it had not been.
func TestReplaceSwapsAtomically(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Replace, "id")
		generation := func(name string) *Plan {
			p := k.ready(d)
			var rows [][]any
			for i := range 300 {
				rows = append(rows, []any{int64(i), name})
			}
			k.page(p, noon, false, rows...)
			return p
		}
		k.finish(generation("g0"), noon, false)
		stop, done := make(chan struct{}), make(chan string, 1)
		go func() {
			defer close(done)
			for {
				var seen []string
				err := k.db.Read(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *store.Tx) error {
					seen = nil
					return each(ctx, tx, statement{sql: `select name || ':' || cast(count(*) as text) from prices group by name`}, func(scan func(...any) error) error {
						var s string
						err := scan(&s)
						seen = append(seen, s)
						return err
					})
				})
				if err != nil || len(seen) != 1 || !strings.HasSuffix(seen[0], ":300") {
					done <- fmt.Sprintf("%v, %v", seen, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		for i := range 8 {
			p := generation(fmt.Sprintf("g%d", i+1))
			if i == 4 {
				_ = k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					if _, err := p.Finish(ctx, tx, Finish{At: noon}); err != nil {
						return err
					}
					return context.Canceled
				})
				k.has("g4:300", `select name || ':' || cast(count(*) as text) from prices group by name`)
			}
			counts(t, k.finish(p, noon, false), 0, 300, 0, 0)
		}
		close(stop)
		if fault, ok := <-done; ok {
			t.Errorf("a reader saw %s", fault)
		}
	})
}
