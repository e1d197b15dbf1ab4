package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// partedOrders is orders, apart by what a function or a path says. Its prepare fails for
// a customer who is bad.
func partedOrders(partition string) string {
	s := strings.Replace(orders, `subscribe: ["order"],`, `subscribe: ["order"], partitionLimit: 2, partition: `+partition+`,`, 1)
	return strings.Replace(s, `ctx.log("took", e.messageId);`, `if (e.payload.customer === "bad") throw new Error("a bad customer");`, 1)
}

func (r *rig) sendOrder(id, customer string) {
	r.t.Helper()
	r.do("POST", "/api/v1/workflows/orders/events", map[string]any{
		"topic": "order", "messageId": id, "payload": map[string]any{"customer": customer},
	}).want(http.StatusCreated)
}

// Real scripts say the partitions of events by a path and by a function, and what fails
// in one is told with it.
func TestPartitionsOfRealScripts(t *testing.T) {
	for _, partition := range []string{`"payload.customer"`, `(event) => event.payload.customer`} {
		t.Run(partition, func(t *testing.T) {
			both(t, func(r *rig) {
				t := r.t
				r.deploy("orders", partedOrders(partition))
				for i, customer := range []string{"bad", "good", "bad", "better", "good"} {
					r.sendOrder(fmt.Sprint("o", i), customer)
				}
				r.eventually("others go on", func() bool { return len(r.desk.things()) == 3 })
				var w client.Workflow
				r.eventually("it needs attention", func() bool {
					w = r.workflow("orders")
					return w.Status == "Needs attention"
				})
				if c := w.Config.Consumers[0]; c.Partition != strings.Trim(map[bool]string{true: partition, false: "function"}[strings.HasPrefix(partition, `"`)], `"`) || c.PartitionLimit != 2 {
					t.Errorf("consumer: %+v", c)
				}
				if !strings.HasPrefix(string(w.Issue), `Partition "bad" of file: The script failed`) || !strings.Contains(string(w.Issue), "a bad customer") {
					t.Errorf("it says: %s", w.Issue)
				}
				runs := r.runs("?lane=orders&status=failed:logic")
				if len(runs) != 1 {
					t.Fatalf("%d runs failed", len(runs))
				}
				var one client.RunDetail
				r.do("GET", "/api/v1/runs/"+runs[0].ID, nil).want(http.StatusOK).into(&one)
				if one.Partition != "bad" || one.Lane != "orders" || !slices.ContainsFunc(one.Actions, func(a client.RunAction) bool { return a.Name == "resume" }) {
					t.Errorf("the run is %+v", one)
				}
				if string(w.IssueRunID) != one.ID {
					t.Errorf("its issue is about %s", w.IssueRunID)
				}
				r.eventually("the others are done", func() bool {
					c := r.workflow("orders").Partitions
					return c != nil && *c == client.PartitionCounts{Attention: 1}
				})
				got := pages[client.Partition](r, "/api/v1/workflows/orders/partitions?limit=1")
				if len(got) != 1 || got[0].Name != "bad" || got[0].Handler != "file" || got[0].State != "attention" || string(got[0].RunID) != one.ID ||
					!strings.Contains(string(got[0].Issue), "a bad customer") || got[0].Since.IsZero() {
					t.Errorf("in need of attention are %+v", got)
				}
				for _, state := range []string{"held", "working", "waiting"} {
					if got := pages[client.Partition](r, "/api/v1/workflows/orders/partitions?state="+state); len(got) != 0 {
						t.Errorf("%s are %+v", state, got)
					}
				}
				r.do("GET", "/api/v1/workflows/orders/partitions?state=odd", nil).problem(422, "invalid")
				r.do("GET", "/api/v1/workflows/none/partitions", nil).problem(404, "not_found")
				r.deploy("orders", strings.Replace(partedOrders(partition), `"bad"`, `"worse"`, 1))
				r.eventually("all are put on the desk", func() bool { return len(r.desk.things()) == 5 })
				r.eventually("it is idle", func() bool { return r.workflow("orders").Status == "Idle" })
			})
		})
	}
}

// What is published in the database is sorted as what comes over HTTP.
func TestWhatIsPublishedInTheDatabaseHasItsPartition(t *testing.T) {
	r := newDoorRig(t)
	r.deploy("orders", partedOrders(`"payload.customer"`))
	for i, customer := range []string{"bad", "good"} {
		if !inDatabase[bool](r, `pawl.publish('orders', 'order', $1, $2::text::jsonb)`, fmt.Sprint("o", i), fmt.Sprintf(`{"customer": %q}`, customer)) {
			t.Error("it is not new")
		}
	}
	r.eventually("the good one is put on the desk", func() bool { return len(r.desk.things()) == 1 })
	r.eventually("the other one failed", func() bool { return len(r.runs("?lane=orders&status=failed:logic")) == 1 })
	if inDatabase[bool](r, `pawl.publish('orders', 'order', 'o0', '{"customer": "better"}')`) {
		t.Error("it is new again")
	}
	r.eventually("so is the other one, corrected", func() bool { return len(r.desk.things()) == 2 })
	r.write(func(ctx context.Context, tx *store.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from events where topic = 'order' and part is null`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d events have no partition (%v)", n, err)
		}
		return nil
	})
}
