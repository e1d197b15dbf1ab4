package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// What a run read is kept within limits: one answer, all answers together, and
// how many there are. What is left out is told to be missing; what is small
// enough is kept, also after something that was not.
func TestWhatIsReadIsKeptWithinLimits(t *testing.T) {
	answer := func(n int) json.RawMessage { return bytes.Repeat([]byte("7"), n) }
	tr := &trace{}
	for _, c := range []struct {
		size int
		kept bool
	}{{maxReadOne, true}, {maxReadOne + 1, false}, {1, true}} {
		tr.read(pawl.PhasePreparing, "api.get", nil, answer(c.size), nil)
		r := tr.reads[len(tr.reads)-1]
		if r.Cut == c.kept || (len(r.Answer) == c.size) != c.kept || r.Op != "api.get" || r.Phase != pawl.PhasePreparing {
			t.Errorf("an answer of %d bytes: cut is %v, and %d are kept", c.size, r.Cut, len(r.Answer))
		}
	}
	for tr.bytes+maxReadOne <= maxReadBytes {
		tr.read(pawl.PhasePreparing, "api.get", nil, answer(maxReadOne), nil)
	}
	left := maxReadBytes - tr.bytes
	tr.read(pawl.PhasePreparing, "api.get", nil, answer(left+1), nil)
	tr.read(pawl.PhasePreparing, "api.get", nil, answer(left), nil)
	tr.read(pawl.PhasePreparing, "api.get", nil, answer(1), nil)
	last := tr.reads[len(tr.reads)-3:]
	if !last[0].Cut || last[1].Cut || !last[2].Cut || tr.bytes != maxReadBytes {
		t.Errorf("of the last three, cut are %v, %v and %v, and %d bytes are kept", last[0].Cut, last[1].Cut, last[2].Cut, tr.bytes)
	}
	for tr.made <= maxReads {
		tr.read(pawl.PhasePreparing, "api.get", nil, nil, nil)
	}
	if len(tr.reads) != maxReads {
		t.Errorf("%d reads are kept, want %d", len(tr.reads), maxReads)
	}
}

// A read that failed is kept with its error and without an answer; a right is
// noted once; that logs were cut is logged.
func TestWhatARunDidIsNoted(t *testing.T) {
	tr := &trace{}
	tr.read(pawl.PhasePreparing, "api.get", nil, json.RawMessage(`"x"`), errors.New(strings.Repeat("e", 2*maxErrorText)))
	if r := tr.reads[0]; r.Error == "" || len(r.Error) > maxErrorText+len("…") || r.Answer != nil || r.Cut || tr.bytes != 0 {
		t.Errorf("a read that failed is %+v", r)
	}
	for range 2 {
		tr.calls(workflowstore.Right{Tool: "a", Method: "get"})
		tr.calls(workflowstore.Right{Tool: "a", Method: "post"})
	}
	if len(tr.right) != 2 {
		t.Errorf("the rights are %v", tr.right)
	}
	tr.addLogs(pawl.PhasePreparing, script.Result{LogsCut: true})
	tr.addLogs(pawl.PhasePreparing, script.Result{})
	if len(tr.lines) != 1 || tr.lines[0].Level != "warn" {
		t.Errorf("logged is %v", tr.lines)
	}
}

// What a version used is kept with the workflow, so that a repair may do as much and
// no more; what the phases logged is kept once and in order, however often the run is
// written.
func TestWhatAVersionUsedIsKept(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", quietDefinition())
		k.scripts.says = "consumers.order."
		k.publish(w, "in", "a")
		k.work(w)
		expect(t, "orders", k.desk.things(), []string{"a"})
		used := map[string]string{}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			list, err := workflowstore.In(tx).WorkflowRights(ctx, w.ID)
			for _, r := range list {
				if r.How == workflowstore.RightUsed {
					used[r.Tool+"."+r.Method] = r.Subject
				}
			}
			return err
		})
		if used["desk.order"] != w.Version {
			t.Errorf("used are %v, by version %s", used, w.Version)
		}
		d, err := k.details(t.Context(), k.runOf(w, "order").ID)
		var phases []string
		for _, l := range d.Logs {
			phases = append(phases, string(l.Phase))
		}
		if got := strings.Join(phases, " "); err != nil || got != "preparing mutating emitting" {
			t.Errorf("logged is %+v (%v)", d.Logs, err)
		}
	})
}
