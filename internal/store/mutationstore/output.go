package mutationstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlrun/pawl/internal/store"
)

// Output is a call with the inputs that it comes from.
type Output struct {
	Mutation
	Inputs []string // ids, sorted
}

// OutputsOf adds to calls the inputs that they come from, and keeps their
// order.
func (tx Tx) OutputsOf(ctx context.Context, calls []Mutation) ([]Output, error) {
	out := make([]Output, len(calls))
	ids := make([]string, len(calls))
	at := map[string]int{}
	for i, m := range calls {
		out[i].Mutation, ids[i], at[m.ID] = m, m.ID, i
	}
	for batch := range store.Batches(ids) {
		list, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select mutation_id, input_id from mutation_inputs where mutation_id in `+list+` order by input_id`, args...)
		_, err = store.ScanAll(rows, err, "read inputs of mutations", func(row store.Scanner) (struct{}, error) {
			var mutation, input string
			if err := row.Scan(&mutation, &input); err != nil {
				return struct{}{}, err
			}
			o := &out[at[mutation]]
			o.Inputs = append(o.Inputs, input)
			return struct{}{}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// OutputsOfInputs reads the calls that come from some inputs, the oldest first
// and each once, with all their inputs.
func (tx Tx) OutputsOfInputs(ctx context.Context, inputIDs []string) ([]Output, error) {
	found := map[string]Mutation{}
	for batch := range store.Batches(inputIDs) {
		list, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select `+mutationColumns+` from mutations where id in (select mutation_id from mutation_inputs where input_id in `+list+`)`, args...)
		part, err := store.ScanAll(rows, err, "read mutations of inputs", scanMutation)
		if err != nil {
			return nil, err
		}
		for _, m := range part {
			found[m.ID] = m
		}
	}
	calls := make([]Mutation, 0, len(found))
	for _, m := range found {
		calls = append(calls, m)
	}
	slices.SortFunc(calls, func(a, b Mutation) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return tx.OutputsOf(ctx, calls)
}

// MutationsOfRuns reads the calls of some runs, those of each in their order.
func (tx Tx) MutationsOfRuns(ctx context.Context, runIDs []string) (map[string][]Mutation, error) {
	out := map[string][]Mutation{}
	for batch := range store.Batches(runIDs) {
		list, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select `+mutationColumns+` from mutations where run_id in `+list+` order by run_id, n`, args...)
		part, err := store.ScanAll(rows, err, "read mutations of runs", scanMutation)
		if err != nil {
			return nil, err
		}
		for _, m := range part {
			out[m.RunID] = append(out[m.RunID], m)
		}
	}
	return out, nil
}
