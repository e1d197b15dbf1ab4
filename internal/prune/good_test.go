package prune

import (
	"context"
	"fmt"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
)

// Whether a run is among the last good ones of its handler is found without reading the
// runs of other lanes, also where a handler of the script never ran.
func TestGoodRunsAreFoundInTheirLane(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		h := &bulk.Heard{}
		k := newKitWith(t, url, store.Options{Trace: h.Note})
		for i := range 10 {
			k.run(row{id: number(i), handler: "act", days: float64(100 + i)})
		}
		k.run(row{id: "z", handler: "other", days: 1})
		k.exec(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, ended_at)
			with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
			select 'other ' || i, 'workflow', 'l' || i % 1000, 'act', 'consumer', 'event', 'committed', 'committed', 1, cast($1 as bigint) + i, cast($1 as bigint) + i, cast($1 as bigint) + i from n`, ago(50))
		if k.db.Name() == "postgres" {
			k.exec(`analyze runs`) // as it does by itself
		}
		p := &pass{Service: k.s, lanes: map[retention.Lane]*laneFacts{}}
		var needed []string
		if n := h.During(func() {
			err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				for _, handler := range []string{"act", "look", "gone"} {
					for i := range 10 {
						needs, err := p.needs(ctx, tx, retention.Lane{Kind: pawl.KindWorkflow, Lane: "w"}, handler, number(i))
						if err != nil {
							return err
						}
						if needs {
							needed = append(needed, fmt.Sprint(handler, " ", number(i)))
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}); n > 6 { // the newest run, the script, and two for each of its handlers
			t.Errorf("%d statements", n)
		}
		if want := []string{"act " + number(0), "act " + number(1), "act " + number(2)}; !slices.Equal(needed, want) {
			t.Errorf("needed are %v", needed)
		}
		faults, measured, err := h.Dear(t.Context(), url, bulk.MostOfAStep(k.db.Name()))
		if err != nil || measured != 4 {
			t.Fatalf("%d statements were measured: %v", measured, err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}
