package api

import (
	"context"
	"errors"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// errUndo ends a transaction whose effects nobody wants.
var errUndo = errors.New("undo")

// accepted asks the service itself what it would let people do about a run,
// and undoes it each time.
func (r *rig) accepted(id string) []client.RunAction {
	r.t.Helper()
	try := func(do func(ctx context.Context, tx *store.Tx) error) bool {
		err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if err := do(ctx, tx); err != nil {
				return err
			}
			return errUndo
		})
		if !errors.Is(err, errUndo) && !errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("run %s: %v", id, err)
		}
		return errors.Is(err, errUndo)
	}
	flows := r.api.workflows
	var out []client.RunAction
	if try(func(ctx context.Context, tx *store.Tx) error { return flows.Approve(ctx, tx, id, "", false, "ann") }) {
		out = append(out, client.RunAction{Name: "approve"})
	}
	if try(func(ctx context.Context, tx *store.Tx) error { _, err := flows.Reject(ctx, tx, id, "ann"); return err }) {
		out = append(out, client.RunAction{Name: "reject"})
	}
	var outcomes []string
	for _, o := range []workflow.Outcome{workflow.Happened, workflow.DidNotHappen, workflow.SkipIt, workflow.TryAgain} {
		if try(func(ctx context.Context, tx *store.Tx) error { return flows.Resolve(ctx, tx, id, o, nil, "ann") }) {
			outcomes = append(outcomes, string(o))
		}
	}
	if outcomes != nil {
		out = append(out, client.RunAction{Name: "resolve", Outcomes: outcomes})
	}
	if try(func(ctx context.Context, tx *store.Tx) error { return flows.ResumeRun(ctx, tx, id, "ann") }) {
		out = append(out, client.RunAction{Name: "resume"})
	}
	cancel := func(ctx context.Context, tx *store.Tx) error {
		run, err := runstore.In(tx).GetRun(ctx, id)
		if err == nil {
			_, err = flows.CancelRun(ctx, tx, run, "ann")
		}
		return err
	}
	if try(cancel) {
		out = append(out, client.RunAction{Name: "cancel"})
	}
	return out
}

// Context 3.7: what is offered about a run is what would be accepted, no more
// and no less, however the run stands.
func TestActionsAreWhatWouldBeAccepted(t *testing.T) {
	both(t, func(r *rig) {
		want := map[string]string{} // by run
		last := func(name, status string) string {
			return r.waitRuns("?lane="+name+"&status="+status, 1)[0].ID
		}
		consume := func(name, method, status string) string {
			r.deploy(name, consuming(name, `await ctx.tools.desk.`+method+`({});`))
			r.publish(name, "t", "1")
			return last(name, status)
		}
		r.deploy("busy", producing("busy", `await ctx.tools.desk.busy({});`))
		want[last("busy", "paused:transient")] = "resume"
		r.deploy("waiting", producing("waiting", `await ctx.tools.desk.wait({});`))
		r.waitEntered()
		want[last("waiting", "active")] = "cancel"
		want[consume("pending", "ask", "paused:approval")] = "approve reject cancel"
		want[consume("locked", "lock", "paused:approval")] = "approve reject resume cancel"
		want[consume("lost", "lose", "paused:reconciliation")] = "resolve[happened did-not-happen skip]"
		want[consume("doubt", "doubt", "paused:reconciliation")] = ""

		for _, state := range []mutationstore.ApprovalState{mutationstore.ApprovalExpired, mutationstore.ApprovalApproved} {
			id := consume(string(state), "ask", "paused:approval")
			r.do("POST", "/api/v1/workflows/"+string(state)+"/pause", nil).want(200) // an approved one would go on
			r.exec(`update approvals set state = $1 where run_id = $2`, string(state), id)
			want[id] = "reject resume cancel"
		}
		given := consume("given-up", "doubt", "paused:reconciliation")
		r.exec(`update mutations set state = 'indeterminate' where run_id = $1`, given)
		want[given] = "resolve[happened did-not-happen skip try-again]"

		rejected := consume("rejected", "ask", "paused:approval")
		r.do("POST", "/api/v1/runs/"+rejected+"/reject", nil).want(200)
		want[rejected] = ""
		deleted := consume("deleted", "ask", "paused:approval")
		r.do("DELETE", "/api/v1/workflows/deleted", nil).want(204)
		want[deleted] = "" // deleting ended it

		r.deploy("broken", producing("broken", `throw new Error("no");`))
		failed := last("broken", "failed:logic")
		want[failed] = ""
		r.do("POST", "/api/v1/runs/"+failed+"/resume", nil).want(200)
		want[r.waitRuns("?lane=broken&status=failed:logic", 2)[0].ID] = "resume"

		for id, actions := range want {
			d := r.detail(id)
			if got := actionNames(d.RunAnswers); got != actions {
				t.Errorf("%s at %s of %s offers %q, want %q", d.Status, d.Phase, d.Lane, got, actions)
			}
		}
		for _, run := range r.runs("?limit=500") { // those that are over, too
			d, really := r.detail(run.ID), r.accepted(run.ID)
			if !slices.EqualFunc(d.Actions, really, func(a, b client.RunAction) bool { return a.Name == b.Name && slices.Equal(a.Outcomes, b.Outcomes) }) {
				t.Errorf("%s at %s of %s offers %v, but %v would be accepted", d.Status, d.Phase, d.Lane, d.Actions, really)
			}
		}
		close(r.desk.release)
	})
}
