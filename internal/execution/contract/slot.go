package contract

import "github.com/pawlrun/pawl/internal/run"

// The words for slots, whose home is package run.
type (
	SlotStatus  = run.SlotStatus  // how far a slot of a schedule has come
	Disposition = run.Disposition // what became of a due slot
)
