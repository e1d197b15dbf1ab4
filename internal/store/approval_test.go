package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
)

func asked(t testing.TB, db *store.DB, a mutationstore.Approval) (stored mutationstore.Approval) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mutationstore.In(tx).InsertApproval(ctx, a)
		return err
	})
	return stored
}

func question(workflowID, runID string) mutationstore.Approval {
	at := time.UnixMilli(1_900_000_000_000).UTC()
	return mutationstore.Approval{
		WorkflowID: workflowID, RunID: runID, Tool: "bank", Method: "pay", Arguments: json.RawMessage(`{"eur":10}`), Address: "POST https://bank.example.com/pay",
		Hash: "h", Title: "Pay 10 EUR", PhaseAt: at, ExpiresAt: at.Add(time.Hour),
	}
}

// a question comes back as it was asked and decided, and is decided once.
func TestQuestionComesBackAsItWasAsked(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		want := question("w", "r")
		got := asked(t, db, want)
		want.ID, want.CreatedAt, want.State = got.ID, got.CreatedAt, mutationstore.ApprovalPending
		newest := func(runID string) (a mutationstore.Approval, err error) {
			err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				a, err = mutationstore.In(tx).NewestApproval(ctx, runID)
				return err
			})
			return a, err
		}
		read, err := newest("r")
		if diff := cmp.Diff(want, read); diff != "" || err != nil || got.ID == "" || got.CreatedAt.IsZero() {
			t.Fatalf("%v:\n%s", err, diff)
		}
		if _, err := newest("another"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("of a run that asked nothing: %v", err)
		}
		move := func(from, to mutationstore.ApprovalState, by string) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return mutationstore.In(tx).MoveApproval(ctx, got.ID, from, to, by)
			})
		}
		if err := move(mutationstore.ApprovalPending, mutationstore.ApprovalApproved, "ann"); err != nil {
			t.Fatal(err)
		}
		if err := move(mutationstore.ApprovalPending, mutationstore.ApprovalRejected, "bob"); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("a second decision: %v", err)
		}
		if err := move(mutationstore.ApprovalApproved, mutationstore.ApprovalUsed, ""); err != nil {
			t.Fatal(err)
		}
		if read, err = newest("r"); err != nil || read.State != mutationstore.ApprovalUsed || read.DecidedBy != "ann" || read.DecidedAt.IsZero() || !read.WarnedAt.IsZero() {
			t.Errorf("%+v, %v", read, err)
		}
	})
}

// Questions are listed in either order, of one workflow or of all, part by part.
func TestQuestionsAreListed(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var ids []string
		for _, runID := range []string{"r1", "r2", "r3", "r4"} {
			ids = append(ids, asked(t, db, question("w"+runID[1:], runID)).ID)
		}
		other := asked(t, db, question("w1", "r5")).ID
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return mutationstore.In(tx).MoveApproval(ctx, ids[3], mutationstore.ApprovalPending, mutationstore.ApprovalRejected, "ann")
		})
		pending := append(slices.Clone(ids[:3]), other)
		list := func(f mutationstore.ApprovalFilter) (out []string) {
			var last store.Place
			for {
				part := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Approval, error) {
					return mutationstore.In(tx).ListApprovals(ctx, f, last, 2)
				})
				if len(part) == 0 {
					return out
				}
				for _, a := range part {
					out = append(out, a.ID)
					last = store.Place{CreatedAt: a.CreatedAt, ID: a.ID}
				}
			}
		}
		backwards := slices.Clone(pending)
		slices.Reverse(backwards)
		for name, c := range map[string]struct {
			filter mutationstore.ApprovalFilter
			want   []string
		}{
			"oldest":   {mutationstore.ApprovalFilter{State: mutationstore.ApprovalPending, Oldest: true}, pending},
			"newest":   {mutationstore.ApprovalFilter{State: mutationstore.ApprovalPending}, backwards},
			"workflow": {mutationstore.ApprovalFilter{State: mutationstore.ApprovalPending, WorkflowID: "w1", Oldest: true}, []string{ids[0], other}},
			"rejected": {mutationstore.ApprovalFilter{State: mutationstore.ApprovalRejected}, ids[3:]},
		} {
			if got := list(c.filter); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})
}

// A rule holds until it is revoked, for its workflow and its method.
func TestApprovalRuleHoldsUntilItIsRevoked(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		rules := func(workflowID string) (out []string) {
			for _, r := range mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.ApprovalRule, error) {
				return mutationstore.In(tx).ApprovalRules(ctx, workflowID)
			}) {
				if r.CreatedBy != "ann" || r.CreatedAt.IsZero() || !r.RevokedAt.IsZero() {
					t.Errorf("%+v", r)
				}
				out = append(out, r.Tool+"."+r.Method)
			}
			return out
		}
		for _, method := range []string{"pay", "ask", "pay"} { // twice is once
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return mutationstore.In(tx).AddApprovalRule(ctx, "w", "bank", method, "ann")
			})
		}
		if got := rules("w"); !slices.Equal(got, []string{"bank.ask", "bank.pay"}) || len(rules("other")) != 0 {
			t.Errorf("the rules are %v", got)
		}
		revoke := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return mutationstore.In(tx).RevokeApprovalRule(ctx, "w", "bank", "pay", "bob")
			})
		}
		if err := revoke(); err != nil {
			t.Fatal(err)
		}
		if err := revoke(); !errors.Is(err, pawl.ErrNotFound) || !slices.Equal(rules("w"), []string{"bank.ask"}) {
			t.Errorf("revoked twice: %v; the rules are %v", err, rules("w"))
		}
	})
}

// calls are told with the inputs that they come from, and inputs with the
// calls that came from them, the oldest first and each once.
func TestCallsAndInputsAreToldWithEachOther(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		first, second := called(t, db, mutation0("w", "r1"), "i2", "i1"), called(t, db, mutation0("w", "r2"), "i2")
		lone := called(t, db, mutation0("w", "r3"))
		type told struct {
			ID     string
			Inputs []string
		}
		brief := func(list []mutationstore.Output) (out []told) {
			for _, o := range list {
				out = append(out, told{o.ID, o.Inputs})
			}
			return out
		}
		of := brief(mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Output, error) {
			return mutationstore.In(tx).OutputsOf(ctx, []mutationstore.Mutation{second, lone, first})
		}))
		from := brief(mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Output, error) {
			return mutationstore.In(tx).OutputsOfInputs(ctx, []string{"i2", "i1", "none"})
		}))
		a, b := told{first.ID, []string{"i1", "i2"}}, told{second.ID, []string{"i2"}}
		if diff := cmp.Diff([]told{b, {lone.ID, nil}, a}, of) + cmp.Diff([]told{a, b}, from); diff != "" {
			t.Error(diff)
		}
		runs := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string][]mutationstore.Mutation, error) {
			return mutationstore.In(tx).MutationsOfRuns(ctx, []string{"r1", "r3", "none"})
		})
		if len(runs) != 2 || len(runs["r1"]) != 1 || runs["r1"][0].ID != first.ID || runs["r3"][0].ID != lone.ID {
			t.Errorf("%+v", runs)
		}
	})
}
