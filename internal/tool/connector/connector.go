// Package connector is the seam between Pawl and what scripts may touch. A
// connector is a package that builds a Connection out of Settings; package
// tool lists the connectors, loads the definitions and finds connections by
// name. Nothing here knows what a connection is connected to.
package connector

import (
	"context"
	"encoding/json"
	"time"
)

// Method is one thing that a connection can do.
type Method struct {
	Name       string
	Mutation   bool // has side effects; else a read
	Reconciles bool // can be asked later whether a call happened; mutations only

	// AbsentAfter is how long a call may be under way at the other end, from
	// the instant at which it was written down: until then an answer Absent
	// proves nothing. Zero is the default; see Absence.
	AbsentAfter time.Duration
}

// Absence is how long it takes until a call that cannot be found is one that
// did not happen, if nobody says otherwise: three times as long as the call
// itself may take, and at least a minute.
func Absence(timeout time.Duration) time.Duration {
	return max(3*timeout, time.Minute)
}

// Call is one call of a method.
type Call struct {
	Method string
	Args   json.RawMessage // from a script that nobody trusts; nil or null if there are none
	Key    string          // the idempotency key, made by the host; empty for reads
}

// Connection is one configured tool. It is safe for concurrent use.
type Connection interface {
	// Methods lists what the connection can do.
	Methods() []Method

	// Call does what the call says and returns the result as JSON. Its
	// errors are *Error. A call whose key was applied before is not applied
	// again, as far as the outside lets the connection know.
	Call(ctx context.Context, c Call) (json.RawMessage, error)

	// Reconcile tells what became of an earlier call with this key, whose
	// outcome the host does not know. An error means: ask again later. It is
	// for methods that say Reconciles. The host takes Absent for "it did not
	// happen" only after AbsentAfter, and then calls again with the same key;
	// NotApplied it takes at its word, and the next call has a new key.
	Reconcile(ctx context.Context, c Call) (Answer, error)
}

// State is what became of a call.
type State string

// The answers of Reconcile. There is no "unknown for ever": Later, again and
// again, makes the host ask a person (context 3.6).
const (
	Applied    State = "applied"     // it happened
	NotApplied State = "not_applied" // it did not happen, and cannot any more: the key is refused from now on
	Absent     State = "absent"      // it is not there; it may still be on its way or under way
	Later      State = "later"       // it cannot be told now
)

// Answer is what Reconcile found.
type Answer struct {
	State  State
	Result json.RawMessage // with Applied, shaped like the method's own
}
