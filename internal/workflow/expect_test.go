package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// What is expected of a workflow is noted with its lane and judged by its runs; what
// is not met is what it needs attention for while it is idle.
func TestWhatIsExpectedOfAWorkflow(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := producing(map[string]string{"p": "1h"})
		d.config.Expect = &client.Expect{FreshWithin: "2h"}
		w := k.deploy("orders", "", d)
		look := func() (l runstore.Lane, s lane.Subject) {
			t.Helper()
			k.read(func(ctx context.Context, tx *store.Tx) (err error) {
				if l, err = runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane); err != nil {
					return err
				}
				s, err = k.s.Subject(ctx, tx, l)
				return err
			})
			return l, s
		}
		l, s := look()
		if l.Expect != `{"freshWithin":"2h"}` || s.Rests || s.Ref != refOf("orders") {
			t.Errorf("%+v, %+v", l, s)
		}
		began := time.Now().Add(-time.Second)
		k.work(w)
		_, s = look()
		if s.Success.Before(began) {
			t.Errorf("%+v: %v", s, k.story(w))
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			starts, late, err := k.s.CountStarts(ctx, tx, s, l, began, 100)
			well, wrong := k.s.StoodWell(ctx, tx, s, l, began.Add(-time.Minute), began.Add(time.Hour))
			never, bad := k.s.StoodWell(ctx, tx, s, l, began.Add(time.Hour), began.Add(2*time.Hour))
			if starts == 0 || late != 0 || err != nil || !well || wrong != nil || never || bad != nil {
				t.Errorf("%d starts, %d late, %v; %v, %v; %v, %v", starts, late, err, well, wrong, never, bad)
			}
			return nil
		})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			row, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
			if err != nil {
				return err
			}
			return runstore.In(tx).SetExpected(ctx, lane.Restate(row, terms.Standing{Of: row.Expect, Verdicts: []terms.Verdict{{Name: terms.FreshWithin, Sentence: "It is stale."}}}))
		})
		page, _, err := k.s.List(t.Context(), lane.Query{State: run.NeedsAttention, Limit: 10})
		if err != nil || len(page) != 1 || page[0].Issue != run.IssueExpectation || page[0].Sentence != "It is stale." || page[0].Do != "pawl run workflow orders" {
			t.Errorf("%+v, %v", page, err)
		}
		k.pause("orders")
		if _, s = look(); !s.Rests {
			t.Errorf("%+v", s)
		}
		k.deploy("orders", "again", producing(map[string]string{"p": "1h"}))
		if l, _ = look(); l.Expect != "" {
			t.Errorf("%+v", l)
		}
	})
	before, after := Config{Name: "a", Expect: &client.Expect{FreshWithin: "2h"}}, Config{Name: "a"}
	if err := sameDeclaration(before, after); err == nil || !strings.Contains(err.Error(), "what is expected of it") {
		t.Errorf("%v", err)
	}
}

// A producer is judged by how many events its runs published, known ones among them.
func TestWhatAProducerBroughtIsCounted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		n := 3
		d := producing(map[string]string{"idle": "1h"}).producer("look", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
			for i := range n {
				id := fmt.Sprint("e-", i)
				c.thing(k, "orders", id)
			}
			return nothing{}
		})
		d.config.Expect = &client.Expect{Rows: "usual"}
		w := k.deploy("orders", "", d)
		brought := func(handler string) (list []int64) {
			t.Helper()
			k.read(func(ctx context.Context, tx *store.Tx) error {
				l, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
				if err != nil {
					return err
				}
				s, err := k.s.Subject(ctx, tx, l)
				if err != nil || !slices.Equal(s.Bring, []string{"idle", "look"}) {
					t.Errorf("%v, %v", s.Bring, err)
				}
				fetches, err := k.s.Fetches(ctx, tx, l, handler, tx.Now.Add(time.Hour), 10)
				for _, f := range fetches {
					if f.Untold || time.Since(f.EndedAt) > time.Minute {
						t.Errorf("%+v", f)
					}
					list = append(list, f.Rows)
				}
				return err
			})
			return list
		}
		k.work(w)
		if got := brought("look"); !slices.Equal(got, []int64{3}) {
			t.Errorf("%v: %v", got, k.story(w))
		}
		n = 4
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update producer_schedules set next_run_at = 1`)
			return err
		})
		k.work(w)
		if look, idle := brought("look"), brought("idle"); !slices.Equal(look, []int64{4, 3}) || !slices.Equal(idle, []int64{0, 0}) {
			t.Errorf("%v, %v: %v", look, idle, k.story(w))
		}
		if got := brought("take"); got != nil {
			t.Errorf("a consumer brought %v", got)
		}
	})
}
