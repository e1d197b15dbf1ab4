package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// What is approved is this script, connection, method, address and arguments;
// how the arguments are spelled does not matter.
func TestApprovalsAreOfOneCall(t *testing.T) {
	hash := func(version, connection, method, address, args string) string {
		h, err := approvalHash(version, tool.Target{Name: connection, Method: tool.Method{Name: method}}, address, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash("1", "bank", "post", "https://bank/pay", `{"amount": 10, "to": "ann"}`)
	if got := hash("1", "bank", "post", "https://bank/pay", `{"to":"ann","amount":10}`); got != first {
		t.Error("another spelling of the same arguments is another call")
	}
	for what, other := range map[string]string{
		"version":    hash("2", "bank", "post", "https://bank/pay", `{"amount":10,"to":"ann"}`),
		"connection": hash("1", "bonk", "post", "https://bank/pay", `{"amount":10,"to":"ann"}`),
		"method":     hash("1", "bank", "put", "https://bank/pay", `{"amount":10,"to":"ann"}`),
		"address":    hash("1", "bank", "post", "https://bonk/pay", `{"amount":10,"to":"ann"}`),
		"argument":   hash("1", "bank", "post", "https://bank/pay", `{"amount":99999,"to":"ann"}`),
		"big number": hash("1", "bank", "post", "https://bank/pay", `{"amount":10.00000000000000000001,"to":"ann"}`),
		"none":       hash("1", "bank", "post", "https://bank/pay", ``),
	} {
		if other == first {
			t.Errorf("what is approved does not depend on the %s", what)
		}
	}
}

// An approval is not used for a call with other arguments: that one is asked
// for.
func TestAnApprovalIsNotUsedForAnotherCall(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		amount := 10
		w := k.deploy("shop", "1", orderDefinition().with(map[string]goHandler{"consumers.order.mutate": func(c *goCtx, _ []json.RawMessage) any {
			c.tool("desk", "sign", map[string]any{"for": []string{"a"}, "amount": amount})
			return nothing{}
		}}))
		k.publish(w, "in", "a")
		k.work(w)
		amount = 99999
		k.approveNewest(w)
		k.work(w)
		if got := k.desk.things(); len(got) > 0 {
			t.Errorf("%v was sent, which nobody approved", got)
		}
		if r := k.newest(w); r.Status != pawl.StatusPausedApproval {
			t.Errorf("the run is %s", r.Status)
		}
		k.approveNewest(w)
		k.work(w)
		if got := k.desk.things(); !slices.Equal(got, []string{`{"amount":99999,"for":["a"]}`}) {
			t.Errorf("orders %v", got)
		}
	})
}

// approveNewest is a person who approves what the newest run asks.
func (k *kit) approveNewest(w workflowstore.Workflow) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return k.s.Approve(ctx, tx, k.newest(w).ID, "", false, "ann")
	})
}

// a run whose process died while somebody paused its workflow is
// ended as crashed by the next owner, paused or not; and nothing else begins.
func TestACrashedRunOfAPausedWorkflowIsEnded(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.writeThrough()
		for i, place := range []string{"begun", "reserved", "in flight", "recorded"} {
			k.desk.clear()
			w := k.deploy(fmt.Sprint("shop-", i), "1", orderDefinition())
			k.settle(w)
			k.publish(w, "in", "a")
			k.crashAt(w, place, 1)
			crashed := k.newest(w)
			k.pause(w.Name)
			k.ranSince()
			k.settle(w)
			for _, r := range k.runs(w) {
				if r.ID == crashed.ID && r.Status != pawl.StatusCrashed {
					t.Errorf("%s: the run is %s", place, r.Status)
				}
			}
			expect(t, place+": what ran while it was paused", k.ranSince(), []string{})
			k.resume(w.Name)
			k.settle(w)
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) || k.statuses(w, "in")["a"] != eventstore.EventConsumed {
				t.Errorf("%s: orders %v; %v", place, got, k.story(w))
			}
		}
	})
}
