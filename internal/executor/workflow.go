package executor

import (
	"context"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// workflows runs workflows of this process as graphs.
type workflows struct {
	run   func(ctx context.Context, name string, r Run, emit func(Event) error) (Result, error)
	going runner.Going
}

// Run runs the workflow with the name of the graph.
func (w *workflows) Run(ctx context.Context, r Run, emit func(Event) error) (Result, error) {
	ctx, end := w.going.Begin(ctx, r)
	defer end()
	ctx, cancel := runner.Within(ctx, r, 0)
	defer cancel()
	result, err := w.run(ctx, r.Name, r, emit)
	if err == nil {
		return result, nil
	}
	if stopped, ended, cause := runner.Ended(ctx); ended && cause == nil {
		return stopped, nil
	}
	return result, err
}

// Cancel ends the context of the run, if it goes on here.
func (w *workflows) Cancel(_ context.Context, r Run) error {
	w.going.Stop(r.RunID)
	return nil
}

// Graphs is nil: the workflows change while the process runs.
func (w *workflows) Graphs() map[string]runner.Graph { return nil }
