package schedule

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// grantFor makes a grant of an owner for graphs.
func (k *kit) grantFor(owner string, graphs ...string) (id string) {
	k.t.Helper()
	spec := grant.Spec{}
	for _, graphID := range graphs {
		spec.Scopes = append(spec.Scopes, grant.ScopeFor(graphID))
	}
	k.write(func(ctx context.Context, tx *store.Tx) error {
		g, err := grant.Service{}.Create(ctx, tx, owner, spec)
		id = g.ID
		return err
	})
	return id
}

func (k *kit) revoke(id string) {
	k.t.Helper()
	k.change(`update execution_grants set revoked_at = 1 where id = $1`, id)
}

// novelist is a schedule that missed 00:01 to 00:03 with one graph and has
// another one now, with a grant for that alone.
func (k *kit) novelist() schedulestore.Schedule {
	sch := k.create(ask("s", ""))
	k.pass(30 * time.Second)
	k.restart(3 * time.Minute)
	graph := "x:novel"
	return k.update(sch, client.SchedulePatch{GraphID: &graph})
}

// C-60, C-79: a plan says before anybody confirms it which slots the grant of the
// schedule does not cover, because another graph was in force then. They are
// skipped, and counted neither as cost nor as run.
func TestAPlanTellsWhatTheGrantDoesNotCover(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		cost := pawl.USD(70)
		k.graph.answer = func(string, int) contract.RunAnswerV1 { return contract.RunAnswerV1{OK: true, CostUSD: &cost} }
		sch := k.novelist()
		k.pass(time.Minute) // 00:04 runs the novel
		between := BackfillAsk{From: at(1), To: at(4).Add(time.Second), PerMinute: 60}
		b, plan := k.planAs(sch, between)
		want := []Uncovered{{"x:poet", 3, contract.GrantScope, `the grant does not cover the graph "x:poet"`}}
		if diff := cmp.Diff(want, plan.Uncovered); diff != "" || len(plan.Slots) != 3 || plan.GrantID != "" || *b.Estimate != 0 {
			t.Errorf("the plan is %+v: %s", plan, diff)
		}
		between.GrantID = k.grantFor(k.owner, "x:poet", "x:novel")
		covered, plan := k.planAs(sch, between)
		if len(plan.Uncovered) != 0 || plan.GrantID != between.GrantID || covered.Hash == b.Hash || *covered.Estimate != 3*int64(cost) {
			t.Errorf("with a grant for both: %+v, %+v", plan, covered)
		}
		between.GrantID = k.grantFor(k.owner, "x:novel")
		if _, plan := k.planAs(sch, between); !cmp.Equal(plan.Uncovered, want) {
			t.Errorf("with another grant for the new graph: %+v", plan.Uncovered)
		}
		k.confirm(b)
		k.pass(10 * time.Second)
		if got, want := k.story(sch)[:3], []string{"00:01 skipped skipped_grant grant_scope", "00:02 skipped skipped_grant grant_scope", "00:03 skipped skipped_grant grant_scope"}; !slices.Equal(got, want) {
			t.Errorf("without a grant for them: %v", got)
		}
		k.revoke(k.schedule(sch.ID).GrantID)
		between.GrantID = ""
		if _, plan := k.planAs(sch, between); len(plan.Uncovered) != 1 || plan.Uncovered[0].Code != contract.GrantRevoked {
			t.Errorf("with the grant of the schedule revoked: %+v", plan.Uncovered)
		}
	})
}

// C-60, C-79: a person may name a grant for a backfill. It belongs to the frozen
// plan, and its slots run under it, with the graph that was in force then.
func TestABackfillRunsTheGraphOfThenUnderItsGrant(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.novelist()
		skips, _ := k.planFor(sch, at(1), at(3), 60)
		k.confirm(skips)
		k.pass(5 * time.Second) // what was skipped for its grant may run after all
		named := k.grantFor(k.owner, "x:poet")
		b, plan := k.planAs(sch, BackfillAsk{From: at(1), To: at(3).Add(time.Second), GrantID: named})
		if len(plan.Slots) != 3 || plan.Slots[0].GraphID != "x:poet" || plan.Slots[0].Was != "skipped_grant" || b.PerMinute != defaultPace {
			t.Errorf("the plan is %+v", plan)
		}
		k.confirm(b)
		k.pass(8 * time.Second)
		k.revoke(named)
		k.pass(10 * time.Second)
		for _, m := range []int{1, 2} {
			if r := k.graph.seen(pawl.SlotKey(sch.ID, at(m))); r == nil || r.graphID != "x:poet" || r.grantID != named {
				t.Errorf("the slot of %s ran %+v", at(m), r)
			}
		}
		if got := k.story(sch)[2]; got != "00:03 skipped skipped_grant grant_revoked" {
			t.Errorf("under a revoked grant: %s", got)
		}
	})
}

// A slot that a backfill left behind keeps nothing of the grant of that backfill.
func TestABackfillWithoutAGrantUsesThatOfTheSchedule(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		named := k.grantFor(k.owner, "x:poet")
		b, _ := k.planAs(sch, BackfillAsk{From: at(-1), To: at(0), GrantID: named})
		k.revoke(named)
		k.confirm(b)
		k.pass(5 * time.Second)
		if got := k.story(sch)[0]; got != "23:59 skipped skipped_grant grant_revoked" {
			t.Errorf("under a revoked grant: %s", got)
		}
		again, _ := k.planFor(sch, at(-1), at(0), 0)
		k.confirm(again)
		k.pass(5 * time.Second)
		if r := k.graph.seen(pawl.SlotKey(sch.ID, at(-1))); r == nil || r.grantID != sch.GrantID {
			t.Errorf("it ran %+v", r)
		}
	})
}

// C-03: only a grant of the owner that is not over can be named.
func TestABackfillNeedsAGrantOfItsOwner(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		revoked, expired := k.grantFor(k.owner, "x:poet"), k.grantFor(k.owner, "x:poet")
		k.revoke(revoked)
		k.change(`update execution_grants set expires_at = 1 where id = $1`, expired)
		for id, code := range map[string]contract.ErrorCode{
			"none": contract.GrantNotFound, k.grantFor(k.user("eve"), "x:poet"): contract.GrantNotFound, revoked: contract.GrantRevoked, expired: contract.GrantExpired,
		} {
			e := k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.PlanBackfill(ctx, tx, k.owner, sch.ID, BackfillAsk{From: at(-1), To: at(0), GrantID: id}, "ada")
				return err
			})
			if e.Code != pawl.CodeInvalid || e.Reason != string(code) || len(e.Fields) != 1 || e.Fields[0].Pointer != "/grantId" {
				t.Errorf("%s: %+v", code, e)
			}
		}
	})
}
