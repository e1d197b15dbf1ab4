package pawl

import "slices"

// ConcurrencyPolicy is what happens when a slot comes due while the one before
// it still runs.
type ConcurrencyPolicy string

// The closed set of concurrency policies.
const (
	PolicyQueue   ConcurrencyPolicy = "Queue"   // it waits; later ones coalesce into it
	PolicyForbid  ConcurrencyPolicy = "Forbid"  // it is skipped
	PolicyAllow   ConcurrencyPolicy = "Allow"   // it runs beside it
	PolicyReplace ConcurrencyPolicy = "Replace" // the running one is cancelled first
)

// ConcurrencyPolicies returns the closed set of concurrency policies.
func ConcurrencyPolicies() []ConcurrencyPolicy {
	return []ConcurrencyPolicy{PolicyQueue, PolicyForbid, PolicyAllow, PolicyReplace}
}

// Valid reports whether p is one of the closed set.
func (p ConcurrencyPolicy) Valid() bool { return slices.Contains(ConcurrencyPolicies(), p) }
