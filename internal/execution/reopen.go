package execution

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// Reopen lets a later attempt follow a run that failed, in the transaction of a
// person who asks for that: also if nobody knew whether it ran, and if what is
// asked for has changed since. What was never asked for needs no leave.
func Reopen(ctx context.Context, tx *store.Tx, key string) error {
	e, err := executionstore.In(tx).ExecutionByKey(ctx, key)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	m, err := memoryOf(e)
	if err != nil {
		return err
	}
	m.Unknown = false
	_, err = executionstore.In(tx).ReopenExecution(ctx, key, m.json())
	return err
}
