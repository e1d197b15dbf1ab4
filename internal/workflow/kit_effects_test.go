package workflow

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// ledgerRows are the calls of a workflow, the oldest first.
func (k *kit) ledgerRows(w workflowstore.Workflow) (list []mutationstore.Mutation) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = mutationstore.In(tx).ListMutations(ctx, w.ID, mutationstore.MutationCursor{}, 500)
		return err
	})
	slices.Reverse(list)
	return list
}

// plug adds a connection beside the desk, whose methods are all allowed. A new
// process does not have it.
func (k *kit) plug(name string, c tool.Connection) {
	k.t.Helper()
	policy := map[string]tool.Policy{}
	for _, m := range c.Methods() {
		policy[m.Name] = tool.Allow
	}
	set, err := tool.NewSet(
		tool.Named{Name: "desk", Type: "test", Connection: k.desk, Policy: map[string]tool.Policy{"order": tool.Allow, "mail": tool.Allow, "burn": tool.Deny}},
		tool.Named{Name: name, Type: "test", Connection: c, Policy: policy},
	)
	if err != nil {
		k.t.Fatal(err)
	}
	k.s.cfg.Tools = set
}

// goTool is a connection of Go functions: act has side effects and can be
// asked about it, fire changes it and cannot, look reads.
type goTool struct {
	call      func(ctx context.Context, c tool.Call) (json.RawMessage, error)
	reconcile func(ctx context.Context, c tool.Call) (tool.Answer, error)
}

func (g goTool) Methods() []tool.Method {
	return []tool.Method{{Name: "act", Mutation: true, Reconciles: true}, {Name: "fire", Mutation: true}, {Name: "look"}}
}

func (g goTool) Call(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	return g.call(ctx, c)
}

func (g goTool) Reconcile(ctx context.Context, c tool.Call) (tool.Answer, error) {
	return g.reconcile(ctx, c)
}

// with is a definition with other handlers.
func (d definition) with(handlers map[string]goHandler) definition {
	d.handlers = maps.Clone(d.handlers)
	maps.Copy(d.handlers, handlers)
	return d
}

// orderBy is orderDefinition with another tool.
func orderBy(connection, method string) definition {
	return orderDefinition().with(map[string]goHandler{
		"consumers.order.mutate": func(c *goCtx, args []json.RawMessage) any {
			c.tool(connection, method, dataOf(args[0]))
			return nothing{}
		},
	})
}

// caught runs a piece of a handler as try and catch would: what the host ends
// does not end the handler.
func caught(piece func()) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(goAbort); !ok {
				panic(p)
			}
		}
	}()
	piece()
}

// refusal is a call that did not happen, with the class of the reason.
func refusal(class pawl.Class) *tool.Error {
	return &tool.Error{Class: class, Code: "refused", Msg: "refused as " + string(class), NotApplied: true}
}

// refuseTimes makes the desk refuse the next calls of a method, as many as
// there are classes, and then no more.
func (d *desk) refuseTimes(method string, classes ...pawl.Class) {
	d.refuse = func(c tool.Call) *tool.Error {
		if c.Method != method || len(classes) == 0 {
			return nil
		}
		class := classes[0]
		classes = classes[1:]
		return refusal(class)
	}
}

// expectRun compares where a run stands.
func expectRun(t *testing.T, r runstore.Run, phase pawl.Phase, status pawl.Status) {
	t.Helper()
	if r.Phase != phase || r.Status != status {
		t.Errorf("run %s of %s is %s at %s, want %s at %s (%s)", r.ID, r.Handler, r.Status, r.Phase, status, phase, r.ErrorMessage)
	}
}
