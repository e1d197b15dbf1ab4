package schedule

import (
	"context"
	"reflect"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Terms are what a definition says about its schedule that no slot depends on. A
// change of them closes no slot.
type Terms struct {
	Keep map[string]string `json:"keep,omitempty"` // for how long its things are kept
}

func termsOf(in client.ScheduleRequest) Terms {
	var t Terms
	mergeTerms(&t, client.SchedulePatch{Keep: &in.Keep})
	return t
}

func mergeTerms(t *Terms, in client.SchedulePatch) {
	if in.Keep != nil {
		if t.Keep = *in.Keep; len(t.Keep) == 0 {
			t.Keep = nil
		}
	}
}

func sameTerms(a, b schedulestore.Schedule) bool {
	return reflect.DeepEqual(RulesOf(a).Terms, RulesOf(b).Terms)
}

// declareTerms notes what others read of the terms of a schedule.
func declareTerms(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
	return runstore.In(tx).SetKeep(ctx, pawl.KindSchedule, sch.ID, terms.KeepText(RulesOf(sch).Keep))
}
