package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// A version comes back as it was deployed, also whether a person deployed it; the
// same again changes nothing. The lane of a name that was used before is another.
func TestVersionComesBackAsItWasDeployed(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var id string
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			w, err := workflowstore.In(tx).InsertWorkflow(ctx, "w", "v1")
			id = w.ID
			return err
		})
		want := workflowstore.WorkflowVersion{WorkflowID: id, Version: "v1", Number: 1, Filename: "a.ts", Source: "x", Config: json.RawMessage(`{"a":1}`), CreatedBy: "auto-fix", Confined: true}
		open := want
		open.Version, open.Number, open.CreatedBy, open.Confined = "v2", 2, "", false
		for _, v := range []workflowstore.WorkflowVersion{want, open, {WorkflowID: id, Version: "v1", Source: "other", Config: json.RawMessage(`{}`)}} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return workflowstore.In(tx).AddWorkflowVersion(ctx, v)
			})
		}
		for _, want := range []workflowstore.WorkflowVersion{want, open} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (workflowstore.WorkflowVersion, error) {
				return workflowstore.In(tx).GetWorkflowVersion(ctx, id, want.Version)
			})
			if got.CreatedAt.IsZero() {
				t.Error("it was never deployed")
			}
			got.CreatedAt = time.Time{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		var lanes []string
		for range 2 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				w, err := workflowstore.In(tx).InsertWorkflow(ctx, "orders", "v1")
				if err != nil {
					return err
				}
				if w.CreatedAt.IsZero() || w.UpdatedAt.IsZero() || w.DeployedAt.IsZero() || !w.DeletedAt.IsZero() {
					t.Errorf("%+v", w)
				}
				lanes = append(lanes, w.Lane)
				_, err = tx.Exec(ctx, `update workflows set deleted_at = 1 where id = $1`, w.ID)
				return err
			})
		}
		if fmt.Sprint(lanes) != "[orders orders#2]" {
			t.Errorf("the lanes are %v", lanes)
		}
	})
}

// A proposal comes back as it was made and decided; only one that waits is
// decided.
func TestProposalComesBackAsItWasMade(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		full := workflowstore.Repair{WorkflowID: "w", RunID: "r1", BaseVersion: "b", State: workflowstore.RepairProposed, Reason: "why", Script: "s", Explanation: "e", Repairer: "model"}
		bare := workflowstore.Repair{WorkflowID: "w", RunID: "r2", BaseVersion: "b", Version: "v", State: workflowstore.RepairFailed, Repairer: "model", DecidedBy: "ann"}
		for _, r := range []workflowstore.Repair{full, bare} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return workflowstore.In(tx).AddRepair(ctx, r) })
		}
		brief := func(list []workflowstore.Repair) []workflowstore.Repair {
			for i := range list {
				if list[i].ID == "" || list[i].CreatedAt.IsZero() {
					t.Errorf("%+v", list[i])
				}
				list[i].ID, list[i].CreatedAt = "", time.Time{}
			}
			return list
		}
		of := func(ids ...string) []workflowstore.Repair {
			return brief(mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Repair, error) {
				return workflowstore.In(tx).RepairsOfRuns(ctx, ids)
			}))
		}
		if diff := cmp.Diff([]workflowstore.Repair{full, bare}, of("r1", "r2", "none")); diff != "" {
			t.Error(diff)
		}
		for _, runID := range []string{"r1", "r2"} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return workflowstore.In(tx).DecideRepair(ctx, runID, workflowstore.RepairRejected, "", "no", "bob")
			})
		}
		full.State, full.Reason, full.DecidedBy = workflowstore.RepairRejected, "no", "bob"
		if diff := cmp.Diff([]workflowstore.Repair{full, bare}, of("r1", "r2")); diff != "" {
			t.Error(diff)
		}
		newest := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Repair, error) {
			return workflowstore.In(tx).ListRepairs(ctx, "w", store.Place{}, 1)
		})
		rest := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Repair, error) {
			return workflowstore.In(tx).ListRepairs(ctx, "w", store.Place{CreatedAt: newest[0].CreatedAt, ID: newest[0].ID}, 10)
		})
		if diff := cmp.Diff([]workflowstore.Repair{bare, full}, brief(append(newest, rest...))); diff != "" {
			t.Error(diff)
		}
	})
}

// What a graph asks comes back as it was asked, is answered once, and a new
// question of the same run takes its place.
func TestQuestionOfAGraphIsAnsweredOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ask := func(id, question string) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).StoreQuestion(ctx, "r", "s", id, json.RawMessage(question))
			})
		}
		answer := func(text string) (open bool) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				open, err = executionstore.In(tx).AnswerQuestion(ctx, "r", json.RawMessage(text), "ann")
				return err
			})
			return open
		}
		get := func() executionstore.GraphQuestion {
			return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (executionstore.GraphQuestion, error) {
				return executionstore.In(tx).GetQuestion(ctx, "r")
			})
		}
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := executionstore.In(tx).GetQuestion(ctx, "r")
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("of a run that asks nothing: %v", err)
		}
		ask("q1", `"may I?"`)
		if q := get(); q.ID != "q1" || q.ScheduleID != "s" || string(q.Question) != `"may I?"` || q.Answer != nil || q.CreatedAt.IsZero() || !q.AnsweredAt.IsZero() {
			t.Errorf("%+v", q)
		}
		if first, second := answer(`"yes"`), answer(`"no"`); !first || second {
			t.Errorf("answered: %v, and again: %v", first, second)
		}
		if q := get(); string(q.Answer) != `"yes"` || q.AnsweredBy != "ann" || q.AnsweredAt.IsZero() {
			t.Errorf("%+v", q)
		}
		ask("", `"and now?"`)
		if q := get(); q.ID != "" || string(q.Question) != `"and now?"` || q.Answer != nil || q.AnsweredBy != "" || !q.AnsweredAt.IsZero() {
			t.Errorf("%+v", q)
		}
	})
}

// Lanes are found by name and by how they stand, which an active run decides
// whatever their row says of their rest; one that is stopped stays so.
func TestLanesAreFoundByHowTheyStand(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		state := map[string]string{"busy": "Idle", "calm": "Idle", "hurt": "Needs attention", "mended": "Needs attention", "off": "Stopped", "tries": "Running", "ends": "Stopped"}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for name, state := range state {
				w, err := workflowstore.In(tx).InsertWorkflow(ctx, name, "v")
				if err != nil {
					return err
				}
				l := runstore.Lane{Kind: pawl.KindWorkflow, Lane: w.Lane, State: state}
				if state == "Needs attention" {
					l.Attention = runstore.Attention{Cause: "c", Issue: "failed", Text: "It failed.", Since: tx.Now}
				}
				if err := runstore.In(tx).SetLane(ctx, l); err != nil {
					return err
				}
			}
			return nil
		})
		for _, lane := range []string{"busy", "mended", "ends"} {
			insertRun(t, db, run0(lane))
		}
		find := func(f runstore.LaneFilter, after string, limit int) (names string) {
			list := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Workflow, error) {
				return workflowstore.In(tx).FindWorkflows(ctx, f, after, limit)
			})
			for _, w := range list {
				names += w.Name + " "
			}
			return strings.TrimSpace(names)
		}
		for state, want := range map[string]string{"": "busy calm ends hurt mended off tries", "Running": "busy mended tries", "Idle": "calm", "Needs attention": "hurt", "Stopped": "ends off"} {
			if got := find(runstore.LaneFilter{State: state}, "", 10); got != want {
				t.Errorf("%s: %s, want %s", state, got, want)
			}
		}
		if got := find(runstore.LaneFilter{Text: "E"}, "ends", 2); got != "mended tries" {
			t.Errorf("found %s", got)
		}
		counted := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]int, error) {
			return runstore.In(tx).CountLanes(ctx, pawl.KindWorkflow, "")
		})
		if diff := cmp.Diff(map[string]int{"Running": 3, "Idle": 1, "Needs attention": 1, "Stopped": 2}, counted); diff != "" {
			t.Error(diff)
		}
	})
}

// The row of a schedule has its owner and its name, and is gone with it. A slot
// that asks a person needs that person, whatever runs beside it.
func TestLaneOfASchedule(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		sch := graphSchedule(t, db, "first")
		set := func(change func(ctx context.Context, tx *store.Tx) error) {
			t.Helper()
			store.MustWriteForTest(t, db, change)
		}
		read := func() (l runstore.Lane, count map[string]int) {
			t.Helper()
			l = mustRead(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Lane, error) {
				l, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
				return l, pawl.IgnoreNotFound(err)
			})
			count = mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]int, error) {
				return runstore.In(tx).CountLanes(ctx, pawl.KindSchedule, sch.OwnerUserID)
			})
			return l, count
		}
		want := runstore.Lane{Kind: pawl.KindSchedule, Lane: sch.ID, ID: sch.ID, Name: "first", Owner: sch.OwnerUserID, State: "Idle"}
		if got, n := read(); got != want || n["Idle"] != 1 {
			t.Errorf("%+v %v", got, n)
		}
		set(func(ctx context.Context, tx *store.Tx) error {
			sch.Name = "second"
			_, err := schedulestore.In(tx).UpdateSchedule(ctx, sch, false, "ada")
			return err
		})
		r := run0(sch.ID + "#beside")
		r.Kind, r.HandlerType, r.Phase = pawl.KindSchedule, pawl.HandlerSchedule, pawl.PhaseExecuting
		insertRun(t, db, r)
		want.Name = "second"
		if got, n := read(); got != want || n["Running"] != 1 {
			t.Errorf("%+v %v", got, n)
		}
		want.State, want.Attention = "Needs attention", runstore.Attention{Cause: "c", Issue: "approval", Text: "May it?", Since: store.AtForTest(5)}
		set(func(ctx context.Context, tx *store.Tx) error { return runstore.In(tx).SetLane(ctx, want) })
		got, n := read()
		if diff := cmp.Diff(want, got); diff != "" || n["Needs attention"] != 1 {
			t.Errorf("%v %s", n, diff)
		}
		set(func(ctx context.Context, tx *store.Tx) error { return schedulestore.In(tx).DeleteSchedule(ctx, sch.ID) })
		if got, n := read(); got != (runstore.Lane{}) || len(n) != 0 {
			t.Errorf("%+v %v", got, n)
		}
	})
}
