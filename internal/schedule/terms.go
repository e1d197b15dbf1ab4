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

	Expect *client.Expect `json:"expect,omitempty"` // what is expected of it; nil: nothing

	Needs []client.Need `json:"needs,omitempty"` // the sources that must be fresh before a slot starts
}

func termsOf(in client.ScheduleRequest) Terms {
	var t Terms
	mergeTerms(&t, client.SchedulePatch{Keep: &in.Keep, Expect: in.Expect, Needs: &in.Needs})
	return t
}

func mergeTerms(t *Terms, in client.SchedulePatch) {
	if in.Keep != nil {
		if t.Keep = *in.Keep; len(t.Keep) == 0 {
			t.Keep = nil
		}
	}
	if in.Expect != nil {
		if t.Expect = in.Expect; t.Expect.Empty() {
			t.Expect = nil
		}
	}
	if in.Needs != nil {
		if t.Needs = *in.Needs; len(t.Needs) == 0 {
			t.Needs = nil
		}
	}
}

func sameTerms(a, b schedulestore.Schedule) bool {
	return reflect.DeepEqual(RulesOf(a).Terms, RulesOf(b).Terms)
}

// declareTerms notes what others read of the terms of a schedule.
func (s *Service) declareTerms(ctx context.Context, tx *store.Tx, was, sch schedulestore.Schedule) error {
	rules := RulesOf(sch)
	if err := runstore.In(tx).SetKeep(ctx, pawl.KindSchedule, sch.ID, terms.KeepText(rules.Keep)); err != nil {
		return err
	}
	if err := s.declareNeeds(ctx, tx, was, sch); err != nil {
		return err
	}
	return runstore.In(tx).SetExpect(ctx, pawl.KindSchedule, sch.ID, terms.ExpectText(rules.Expect))
}
