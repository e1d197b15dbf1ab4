package api

import (
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
)

// ObserveRun tells of what happens to runs of lanes. What runs carry is left out:
// it can be large.
func (f *Feed) ObserveRun(e ledger.Event, of lane.Ref) {
	if !f.wanted() {
		return
	}
	f.publish("run", e.Run.ID, ofLane(of), client.RunEvent{What: string(e.What), Run: runSummary(&e.Run, of), At: client.At(e.Run.UpdatedAt), Alarm: e.Alarm})
}
