package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
)

// An input can be followed to what was done about it, and back.
func TestInputsLeadToOutputsAndBack(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		id := r.publish("orders", "order", "1").CausedBy[0]
		var i client.InputDetail
		r.eventually("the input is done", func() bool {
			r.do("GET", "/api/v1/inputs/"+id, nil).want(200).into(&i)
			return i.Status == "done" && len(i.Events) == 2
		})
		if i.ID != id || i.Workflow != "orders" || i.Source != "shop" || i.Type != "order" || i.ExternalID != "1" || i.Title != "Order 1" || i.CreatedBy != "admin" || !i.SkippedAt.IsZero() || i.CreatedAt.IsZero() {
			t.Errorf("%+v", i.Input)
		}
		if i.Events[0].Topic != "done" || i.Events[1].Topic != "order" || len(i.Outputs) != 1 {
			t.Fatalf("%+v", i)
		}
		o := i.Outputs[0]
		run := r.runs("?lane=orders&limit=500")
		if o.Tool != "desk" || o.Method != "put" || string(o.Title) != "File 1" || o.State != "applied" || string(o.Arguments) != `{"what":{"n":"1"}}` || string(o.Result) != `{"row":7}` ||
			fmt.Sprint(o.Inputs) != "["+id+"]" || o.At.IsZero() || o.RunID != run[1].ID {
			t.Errorf("%+v", o)
		}
		if list := pages[client.Output](r, "/api/v1/workflows/orders/outputs?limit=1"); len(list) != 1 || fmt.Sprint(list[0].ID, list[0].Inputs) != fmt.Sprint(o.ID, o.Inputs) {
			t.Errorf("%+v", list)
		}
		if list := pages[client.Input](r, "/api/v1/workflows/orders/inputs?limit=1"); len(list) != 1 || list[0].ID != id || len(list[0].Outputs) != 1 || list[0].Outputs[0].ID != o.ID {
			t.Errorf("%+v", list)
		}
	})
}

func TestInputsAndOutputsArePaged(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		for i := range 5 {
			r.publish("orders", "order", strconv.Itoa(i))
		}
		r.eventually("all is done", func() bool {
			return len(pages[client.Input](r, "/api/v1/workflows/orders/inputs?status=done&limit=500")) == 5
		})
		seen := map[string]bool{}
		for _, i := range pages[client.Input](r, "/api/v1/workflows/orders/inputs?limit=2") {
			seen[i.ExternalID] = true
			if len(i.Outputs) != 1 || string(i.Outputs[0].Title) != "File "+i.ExternalID {
				t.Errorf("%+v", i)
			}
		}
		outputs := pages[client.Output](r, "/api/v1/workflows/orders/outputs?limit=2")
		var titles []string
		for _, o := range outputs {
			titles = append(titles, string(o.Title))
		}
		if len(seen) != 5 || strings.Join(titles, ", ") != "File 4, File 3, File 2, File 1, File 0" {
			t.Errorf("inputs %v, outputs %v", seen, titles)
		}
		if list := pages[client.Input](r, "/api/v1/workflows/orders/inputs?status=pending&limit=2"); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// A skipped input is not worked on, and skipping it again changes nothing.
func TestSkippedInputIsGivenUp(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		r.do("POST", "/api/v1/workflows/orders/pause", nil).want(200)
		id := r.publish("orders", "order", "1").CausedBy[0]
		other := r.publish("orders", "order", "2").CausedBy[0]
		if w := r.workflow("orders"); w.Pending != 2 {
			t.Errorf("%d pending", w.Pending)
		}
		var first, again client.Input
		r.do("POST", "/api/v1/inputs/"+id+"/skip", nil, "Idempotency-Key", "k").want(200).into(&first)
		if first.Status != "skipped" || first.SkippedAt.IsZero() || string(first.SkippedBy) != "admin" {
			t.Errorf("%+v", first)
		}
		r.do("POST", "/api/v1/inputs/"+id+"/skip", nil).want(200).into(&again)
		if fmt.Sprint(again.SkippedAt.Time) != fmt.Sprint(first.SkippedAt.Time) {
			t.Errorf("skipped again: %+v", again)
		}
		if p := r.do("POST", "/api/v1/inputs/"+id+"/skip", nil, "Idempotency-Key", "k").want(200); p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", p.header)
		}
		r.do("POST", "/api/v1/workflows/orders/resume", nil).want(200)
		r.eventually("the other one is done", func() bool {
			var i client.InputDetail
			r.do("GET", "/api/v1/inputs/"+other, nil).want(200).into(&i)
			return i.Status == "done"
		})
		r.desk.mu.Lock()
		defer r.desk.mu.Unlock()
		if fmt.Sprint(r.desk.put) != `[{"what":{"n":"2"}}]` {
			t.Errorf("filed %v", r.desk.put)
		}
	})
}
