package run

import "github.com/pawlrun/pawl"

// Run is what the rules need to know about one attempt. It is a view of the
// stored row, built by whoever holds that row.
type Run struct {
	ID      string
	RetryOf string // the attempt that this one succeeds; empty for the first

	Type   pawl.HandlerType
	Phase  pawl.Phase
	Status pawl.Status

	// Ledger is the summary of the run's mutation rows; see LedgerOf.
	Ledger pawl.MutationState
	// CanReconcile says that the tool of the mutation can be asked later
	// whether the call happened. It matters only while the ledger is open.
	CanReconcile bool

	// Class is the class of the failure that stopped the run, if one did. The
	// rules of recovery do not look at it; the words for people do.
	Class pawl.Class
}
