package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
)

func mutation0(workflowID, runID string) mutationstore.Mutation {
	id := store.NewID()
	return mutationstore.Mutation{
		ID: id, WorkflowID: workflowID, RunID: runID, Tool: "mail", Method: "send", Arguments: json.RawMessage(`{"to":"ann"}`),
		IdempotencyKey: "key " + id, Title: "Send a mail", CanReconcile: true,
	}
}

// called opens the ledger row of a call.
func called(t testing.TB, db *store.DB, m mutationstore.Mutation, inputs ...string) (stored mutationstore.Mutation) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mutationstore.In(tx).InsertMutation(ctx, m, inputs)
		return err
	})
	now := mutationOf(t, db, stored.ID)
	stored.N, stored.AbsentAfter = now.N, 0
	if diff := cmp.Diff(stored, now); diff != "" {
		t.Errorf("what the insert returned differs from what is stored:\n%s", diff)
	}
	return now
}

func moveMutation(t testing.TB, db *store.DB, id string, from pawl.MutationState, c mutationstore.MutationChange) error {
	t.Helper()
	return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return mutationstore.In(tx).MoveMutation(ctx, id, from, c)
	})
}

func mutationOf(t testing.TB, db *store.DB, id string) mutationstore.Mutation {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (mutationstore.Mutation, error) {
		return mutationstore.In(tx).GetMutation(ctx, id)
	})
}

func mutationsOf(t testing.TB, db *store.DB, runID string) []mutationstore.Mutation {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Mutation, error) {
		return mutationstore.In(tx).RunMutations(ctx, runID)
	})
}

func TestMutationComesBackAsItWasStored(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		full := mutation0("w", "r1")
		bare := mutationstore.Mutation{ID: "m", WorkflowID: "w", RunID: "r2", Tool: "mail", Method: "send", Arguments: json.RawMessage(`null`), IdempotencyKey: "key"}
		for _, want := range []mutationstore.Mutation{full, bare} {
			stored := called(t, db, want)
			want.N, want.State, want.CreatedAt, want.UpdatedAt = 1, pawl.MutationInFlight, stored.CreatedAt, stored.CreatedAt
			if diff := cmp.Diff(want, stored); diff != "" || stored.CreatedAt.IsZero() {
				t.Errorf("at %v (-want +got):\n%s", stored.CreatedAt, diff)
			}
		}
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := mutationstore.In(tx).GetMutation(ctx, "nobody")
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a call that is not there: %v", err)
		}
	})
}

// 3.5, X-68: the calls of a run are numbered, and a key is used once.
func TestCallsOfARunAreNumbered(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var want []mutationstore.Mutation
		for i := range 3 {
			m := called(t, db, mutation0("w", "r"))
			called(t, db, mutation0("w", fmt.Sprint("another run ", i)))
			if m.N != i+1 {
				t.Errorf("call %d has number %d", i+1, m.N)
			}
			want = append(want, m)
		}
		if diff := cmp.Diff(want, mutationsOf(t, db, "r")); diff != "" {
			t.Errorf("the calls of the run (-want +got):\n%s", diff)
		}
		again := mutation0("w", "r")
		again.IdempotencyKey = want[0].IdempotencyKey
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := mutationstore.In(tx).InsertMutation(ctx, again, nil)
			if err == nil {
				err = tx.Flush(ctx)
			}
			if !tx.IsUnique(err) {
				t.Errorf("a key that was used: %v", err)
			}
			return err
		})
		if err == nil {
			t.Error("a key that was used was written")
		}
	})
}

// the key of a call that failed without an answer goes to the next call
// for the same act of the same workflow, once; any other key is one call's own.
func TestAKeyIsHandedOver(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		kept, other, refused := called(t, db, mutation0("w", "r1")), called(t, db, mutation0("w", "r2")), called(t, db, mutation0("w", "r3"))
		for m, act := range map[string]string{kept.ID: "act", other.ID: "another act", refused.ID: ""} {
			if err := moveMutation(t, db, m, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationFailed, KeepFor: act}); err != nil {
				t.Fatal(err)
			}
		}
		take := func(workflow, act string) (key string) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				key, err = mutationstore.In(tx).TakeKey(ctx, workflow, act)
				return err
			})
			return key
		}
		if got := mutationOf(t, db, kept.ID).KeptFor; got != "act" {
			t.Errorf("the key is kept for %q", got)
		}
		if got := take("another workflow", "act") + take("w", "") + take("w", "no act"); got != "" {
			t.Errorf("the key %s is taken by somebody else", got)
		}
		if got := take("w", "act"); got != kept.IdempotencyKey {
			t.Errorf("the next call has the key %q, want %q", got, kept.IdempotencyKey)
		}
		if got := take("w", "act"); got != "" {
			t.Errorf("the key %s is taken twice", got)
		}
		again := mutation0("w", "r4")
		again.IdempotencyKey, again.AbsentAfter = kept.IdempotencyKey, time.Hour
		stored := called(t, db, again)
		if want := stored.CreatedAt.Add(time.Hour); !stored.AbsentAt.Equal(want) {
			t.Errorf("absent at %v, want %v", stored.AbsentAt, want)
		}
		third := mutation0("w", "r5")
		third.IdempotencyKey = kept.IdempotencyKey
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := mutationstore.In(tx).InsertMutation(ctx, third, nil)
			if err == nil {
				err = tx.Flush(ctx)
			}
			if !tx.IsUnique(err) {
				t.Errorf("two calls that have not failed share a key: %v", err)
			}
			return err
		})
		if err == nil {
			t.Error("two calls that have not failed share a key")
		}
	})
}

// 3.5: a move meets the state that was seen, or fails and changes nothing.
func TestMutationsAreComparedAndSet(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		m := called(t, db, mutation0("w", "r"))
		for _, from := range []pawl.MutationState{pawl.MutationApplied, pawl.MutationFailed, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate, pawl.MutationSkipped} {
			err := moveMutation(t, db, m.ID, from, mutationstore.MutationChange{To: pawl.MutationFailed, ErrorMessage: "no"})
			if !errors.Is(err, pawl.ErrConflict) || err.Error() != "move mutation: the call is not "+string(from)+" any more" {
				t.Errorf("from %s: %v", from, err)
			}
		}
		if err := moveMutation(t, db, "nobody", pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationFailed}); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("a call that is not there: %v", err)
		}
		if diff := cmp.Diff(m, mutationOf(t, db, m.ID)); diff != "" {
			t.Errorf("a refused move changed the row:\n%s", diff)
		}
	})
}

// A move keeps what it does not name, and only a final state is resolved.
func TestMovesKeepWhatTheyDoNotName(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		want := called(t, db, mutation0("w", "r"))
		steps := 0
		move := func(c mutationstore.MutationChange, expect func(m *mutationstore.Mutation)) {
			t.Helper()
			steps++
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(steps)
				return mutationstore.In(tx).MoveMutation(ctx, want.ID, want.State, c)
			})
			want.State, want.UpdatedAt = c.To, store.AtForTest(steps)
			expect(&want)
			if diff := cmp.Diff(want, mutationOf(t, db, want.ID)); diff != "" {
				t.Errorf("to %s (-want +got):\n%s", c.To, diff)
			}
		}
		move(mutationstore.MutationChange{To: pawl.MutationNeedsReconcile, ErrorClass: pawl.ClassTransient, ErrorMessage: "timed out"},
			func(m *mutationstore.Mutation) { m.ErrorClass, m.ErrorMessage = pawl.ClassTransient, "timed out" })
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.Now = store.AtForTest(20)
			return mutationstore.In(tx).ReconcileLater(ctx, want.ID, 3, store.AtForTest(30))
		})
		want.ReconcileAttempts, want.LastReconcileAt, want.NextReconcileAt, want.UpdatedAt = 3, store.AtForTest(20), store.AtForTest(30), store.AtForTest(20)
		if diff := cmp.Diff(want, mutationOf(t, db, want.ID)); diff != "" {
			t.Errorf("asked in vain (-want +got):\n%s", diff)
		}
		move(mutationstore.MutationChange{To: pawl.MutationIndeterminate}, func(m *mutationstore.Mutation) { m.NextReconcileAt = m.ResolvedAt })
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return mutationstore.In(tx).ReconcileLater(ctx, want.ID, 9, store.AtForTest(99))
		})
		move(mutationstore.MutationChange{To: pawl.MutationApplied, Result: json.RawMessage(`null`), ResolvedBy: "ann"},
			func(m *mutationstore.Mutation) {
				m.Result, m.ResolvedBy, m.ResolvedAt = json.RawMessage(`null`), "ann", store.AtForTest(steps)
			})
	})
}

func TestFinalStatesAreResolved(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for to, final := range map[pawl.MutationState]bool{
			pawl.MutationApplied: true, pawl.MutationFailed: true, pawl.MutationSkipped: true,
			pawl.MutationNeedsReconcile: false, pawl.MutationIndeterminate: false,
		} {
			m := called(t, db, mutation0("w", store.NewID()))
			if err := moveMutation(t, db, m.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: to}); err != nil {
				t.Errorf("to %s: %v", to, err)
			}
			if got := mutationOf(t, db, m.ID); got.ResolvedAt.IsZero() == final {
				t.Errorf("%s was resolved at %v", to, got.ResolvedAt)
			}
		}
	})
}

// A successor takes over the call whose outcome is open, and only that; its
// own calls are counted from there.
func TestTransferMovesOnlyTheUnresolvedCall(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for _, open := range []pawl.MutationState{pawl.MutationInFlight, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate} {
			t.Run(string(open), func(t *testing.T) {
				run, successor := "of "+string(open), "after "+string(open)
				failed, last := called(t, db, mutation0("w", run)), called(t, db, mutation0("w", run))
				other := called(t, db, mutation0("w", "another run"))
				if err := moveMutation(t, db, failed.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationFailed}); err != nil {
					t.Fatal(err)
				}
				if open != pawl.MutationInFlight {
					if err := moveMutation(t, db, last.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: open}); err != nil {
						t.Fatal(err)
					}
				}
				store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
					return mutationstore.In(tx).TransferMutation(ctx, run, successor)
				})
				next := called(t, db, mutation0("w", successor))
				ids := func(run string) string {
					var out []string
					for _, m := range mutationsOf(t, db, run) {
						out = append(out, fmt.Sprint(m.N, " ", m.ID))
					}
					return strings.Join(out, ", ")
				}
				if got, want := ids(run), "1 "+failed.ID; got != want {
					t.Errorf("the run has %s, want %s", got, want)
				}
				if got, want := ids(successor), "1 "+last.ID+", 2 "+next.ID; got != want {
					t.Errorf("its successor has %s, want %s", got, want)
				}
				if diff := cmp.Diff(other, mutationOf(t, db, other.ID)); diff != "" {
					t.Errorf("the call of another run was changed:\n%s", diff)
				}
			})
		}
	})
}

func TestTransferToARunThatHasCalls(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		open, own := called(t, db, mutation0("w", "r")), called(t, db, mutation0("w", "r2"))
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return mutationstore.In(tx).TransferMutation(ctx, "r", "r2")
		})
		got := mutationsOf(t, db, "r2")
		if len(got) != 2 || got[0].ID != own.ID || got[1].ID != open.ID || got[1].N != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestMutationsAreListedPageByPage(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		called(t, db, mutation0("another workflow", "r"))
		var want, got []string
		for i := range 4 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(i) // several share an instant
				for k := range 3 {
					m := mutation0("w", "r")
					m.ID = fmt.Sprint("m", i, k)
					if _, err := mutationstore.In(tx).InsertMutation(ctx, m, nil); err != nil {
						return err
					}
					want = append(want, m.ID)
				}
				return nil
			})
		}
		slices.Reverse(want)
		for cursor := (mutationstore.MutationCursor{}); ; {
			page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Mutation, error) {
				return mutationstore.In(tx).ListMutations(ctx, "w", cursor, 5)
			})
			for _, m := range page {
				got = append(got, m.ID)
			}
			if len(page) < 5 {
				break
			}
			cursor = mutationstore.MutationCursor{CreatedAt: page[4].CreatedAt, ID: page[4].ID}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// 3.2: a call is linked with all inputs it comes from, however many.
func TestMutationsAreLinkedWithTheirInputs(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		first := called(t, db, mutation0("w", "r1"), "i2", "i1", "i2")
		var many []string
		for i := range 1100 {
			many = append(many, fmt.Sprintf("n%04d", i))
		}
		second := called(t, db, mutation0("w", "r2"), append(slices.Clone(many), "i1")...)
		none := called(t, db, mutation0("w", "r3"))
		for id, want := range map[string][]string{first.ID: {"i1", "i2"}, second.ID: append([]string{"i1"}, many...), none.ID: nil} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]string, error) {
				return mutationstore.In(tx).InputsOfMutation(ctx, id)
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		}
		for input, want := range map[string][]mutationstore.Mutation{"i1": {first, second}, "n0007": {second}, "nobody": nil} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]mutationstore.Mutation, error) {
				return mutationstore.In(tx).MutationsOfInput(ctx, input)
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("calls of %s (-want +got):\n%s", input, diff)
			}
		}
	})
}
