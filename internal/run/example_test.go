package run_test

import (
	"fmt"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
)

// What becomes of a run whose process died depends on how far it had come.
func ExampleDecide() {
	for _, r := range []run.Run{
		{Type: pawl.HandlerConsumer, Phase: pawl.PhasePreparing, Status: pawl.StatusCrashed},
		{Type: pawl.HandlerConsumer, Phase: pawl.PhaseEmitting, Status: pawl.StatusCrashed},
	} {
		d := run.Decide(r)
		fmt.Printf("%s: successor %s in phase %s, reservations %s\n", r.Phase, d.Successor, d.SuccessorPhase, d.Reservations)
	}
	// Output:
	// preparing: successor fresh in phase preparing, reservations none
	// emitting: successor forward in phase emitting, reservations keep_transfer
}

// A transient failure is tried again after a while that grows, and not for ever.
func ExampleTransient() {
	for failures := 1; failures <= 6; failures++ {
		wait, ok := run.Transient(failures)
		fmt.Println(failures, wait, ok)
	}
	// Output:
	// 1 10s true
	// 2 20s true
	// 3 40s true
	// 4 1m20s true
	// 5 2m40s true
	// 6 5m20s false
}
