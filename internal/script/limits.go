package script

import (
	"fmt"
	"time"

	"github.com/pawlrun/pawl"
)

// Limits bound one phase. A zero field takes its default.
type Limits struct {
	// CPU is the processor time of the script itself. Waiting for the host
	// does not count, nor does waiting for a processor.
	CPU time.Duration
	// Wall is the time from start to end, host calls included.
	Wall time.Duration
	// Heap is the most bytes that the script's values may take. The process
	// around them has a limit of its own, see Config.Heap.
	Heap int64
	// Stack is how deep calls may nest.
	Stack int
	// HostCalls is how many calls a phase may make, of any kind.
	HostCalls int
	// InFlight is how many calls are with the host at once; more wait.
	InFlight int
	// Payload is the most bytes of the arguments, or of the answer, of one
	// call.
	Payload int
	// Bytes is what the answers of calls may hold in the server at once, while
	// they are read and sent, and half of it what arguments may. Calls that
	// need more wait for others.
	Bytes int64
	// Output is the most bytes of what a handler returns, as JSON.
	Output int
	// Log is the most bytes of log lines, lineCost added for each. Lines over
	// it are dropped; the phase goes on.
	Log int
}

// DefaultLimits are those of the documentation.
func DefaultLimits() Limits {
	return Limits{
		CPU: 30 * time.Second, Wall: 300 * time.Second,
		Heap: 128 << 20, Stack: 2000,
		HostCalls: 10_000, InFlight: 32, Payload: 8 << 20, Bytes: 64 << 20,
		Output: 4 << 20, Log: 256 << 10,
	}
}

// The least and the most that can be asked for. The engine is not safe with
// next to no memory, and frames have a length of 32 bits.
const (
	leastHeap   = 4 << 20
	mostStack   = 5000
	mostPayload = 256 << 20
)

// lineCost is what a log line counts beside its text, in bytes.
const lineCost = 32

// complete fills in defaults and checks.
func (l Limits) complete(heap int64) (Limits, error) {
	d := DefaultLimits()
	d.Heap = min(d.Heap, heap)
	l.CPU, l.Wall = orDefault(l.CPU, d.CPU), orDefault(l.Wall, d.Wall)
	l.Heap, l.Stack = orDefault(l.Heap, d.Heap), orDefault(l.Stack, d.Stack)
	l.HostCalls, l.InFlight = orDefault(l.HostCalls, d.HostCalls), orDefault(l.InFlight, d.InFlight)
	l.Payload, l.Output = orDefault(l.Payload, d.Payload), orDefault(l.Output, d.Output)
	l.Log, l.Bytes = orDefault(l.Log, d.Log), orDefault(l.Bytes, d.Bytes)
	switch {
	case l.CPU < 0 || l.Wall < 0 || l.HostCalls < 0 || l.InFlight < 0 || l.Log < 0 || l.Bytes < 0:
		return l, badLimit("a limit is negative")
	case l.Heap < leastHeap || l.Heap > heap:
		return l, badLimit(fmt.Sprintf("a heap of %s is not between %s and %s", sizeText(l.Heap), sizeText(leastHeap), sizeText(heap)))
	case l.Stack < 1 || l.Stack > mostStack:
		return l, badLimit(fmt.Sprintf("a stack of %d is not between 1 and %d", l.Stack, mostStack))
	case l.Payload < 0 || l.Payload > mostPayload || l.Output < 0 || l.Output > mostPayload:
		return l, badLimit(fmt.Sprintf("payload and output cannot be over %s", sizeText(mostPayload)))
	}
	return l, nil
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func badLimit(msg string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "check script limits", Msg: msg}
}

// sizeText writes a size for people.
func sizeText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
