package executor

import (
	"context"

	"github.com/pawlrun/pawl/internal/redact"
)

// guarded is an executor in whose words there are no secrets of any executor:
// a graph that is told a key may say it again.
type guarded struct {
	Executor
	name    string // of the graph
	secrets redact.Redactor
}

// Run runs the graph that the executor was looked up for.
func (g guarded) Run(ctx context.Context, r Run, emit func(Event) error) (Result, error) {
	r.Name = g.name
	result, err := g.Executor.Run(ctx, r, func(e Event) error {
		e.Text = g.secrets.Text(e.Text)
		return emit(e)
	})
	result.Message = g.secrets.Text(result.Message)
	result.TraceID = g.secrets.Text(result.TraceID)
	if result.Output != nil {
		result.Output = g.secrets.JSON(result.Output)
	}
	if result.Interrupt != nil {
		result.Interrupt = g.secrets.JSON(result.Interrupt)
	}
	return result, g.clean(err)
}

// Cancel ends the run.
func (g guarded) Cancel(ctx context.Context, r Run) error {
	r.Name = g.name
	return g.clean(g.Executor.Cancel(ctx, r))
}

// clean is the error without secrets in its text.
func (g guarded) clean(err error) error {
	if err == nil || g.secrets.Text(err.Error()) == err.Error() {
		return err
	}
	return cleanError{error: err, text: g.secrets.Text(err.Error())}
}

// cleanError is another error with a text that may be shown.
type cleanError struct {
	error
	text string
}

func (e cleanError) Error() string { return e.text }

func (e cleanError) Unwrap() error { return e.error }
