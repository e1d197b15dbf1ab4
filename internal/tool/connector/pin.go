package connector

import "context"

// Pinner is a connection whose methods are described by somebody else, and
// which therefore calls only what is still as it was when it was last agreed
// to: what is pinned.
type Pinner interface {
	// Pins tells how every method compares to its pin, sorted by name.
	Pins(ctx context.Context) ([]Pin, error)

	// Pin agrees to methods as they are now: each is pinned, or its pin is
	// dropped if it is no longer there. seen has what people saw of a method,
	// as Pin.Now told it; one that is not in it is agreed to as it is. Pin
	// fails, and agrees to nothing, with pawl.ErrNotFound if nobody knows one
	// of the methods, with pawl.ErrInvalid if the pin of one is fixed, and
	// with pawl.ErrConflict if one has changed since it was seen.
	Pin(ctx context.Context, methods []string, seen map[string]string) error

	// Blocked are the pins that do not hold, sorted by name, as far as is
	// known without asking anybody.
	Blocked() []Pin
}

// PinState is how a method compares to its pin.
type PinState string

// The states of a method. All but PinHolds block it.
const (
	PinHolds   PinState = "pinned"  // it is as it was
	PinChanged PinState = "changed" // it is not what was pinned
	PinMissing PinState = "new"     // it was never pinned
	PinGone    PinState = "gone"    // it was pinned and is no longer there
)

// Pin is a method with what is known about its pin.
type Pin struct {
	Method   string
	Mutation bool // as it is called now
	State    PinState
	Pinned   string // the hash that was agreed to; empty if there is none
	Now      string // the hash of the method as it is; empty if it is gone
	Change   string // what changed, for people; empty unless something did
	Was, Is  string // what was agreed to and what is there, as lines to compare; empty if it holds, or is not known
	Fixed    bool   // the pin is in the definition, and only changes there
}
