package schedule

import (
	"encoding/json"
	"reflect"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// Rules are what a definition says about doing a slot again.
type Rules struct {
	Idempotent bool           `json:"idempotent,omitempty"` // what runs may be started twice
	Missed     *client.Missed `json:"missed,omitempty"`
	Retry      *client.Retry  `json:"retry,omitempty"`
	Terms
}

// RulesOf are the rules of a schedule.
func RulesOf(sch schedulestore.Schedule) (r Rules) {
	if len(sch.Rules) > 0 {
		_ = json.Unmarshal(sch.Rules, &r) // it was written by store below
	}
	return r
}

// store is the form in which they are kept; nil if nothing is said.
func (r Rules) store() json.RawMessage {
	if reflect.DeepEqual(r, Rules{}) {
		return nil
	}
	raw, _ := json.Marshal(r) // of types that can be JSON
	return raw
}

// check finds what is wrong with the rules.
func (r Rules) check(add func(pointer, format string, values ...any)) {
	timing.CheckMissed(r.Missed, add)
	fault := func(path []any, message, hint string) { add(definition.Pointer(path...), "%s; %s", message, hint) }
	terms.CheckKeep(r.Keep, fault)
	terms.CheckExpect(r.Expect, terms.About{Kind: pawl.KindSchedule, Scheduled: true}, fault)
	terms.CheckNeeds(r.Needs, fault)
	if t := r.Retry; t != nil {
		if t.Attempts < 1 || t.Attempts > 100 {
			add("/retry/attempts", "must be 1 to 100")
		}
		timing.CheckWithin("/retry/within", t.Within, add)
	}
}

// budgetOf is what a slot may spend on failures. What a person asked for once more
// is done once, unless the definition says more.
func budgetOf(sch schedulestore.Schedule, slot schedulestore.Slot) run.SlotBudget {
	r := RulesOf(sch)
	switch {
	case r.Retry != nil:
		within, _ := when.ParseInterval(r.Retry.Within) // zero: there is none
		return run.SlotBudget{Attempts: r.Retry.Attempts, Within: within, Since: slot.StartedAt}
	case work.Is(sch.GraphID), slot.Trigger == triggerRetry:
		return run.SlotBudget{Attempts: 1}
	}
	return run.SlotBudget{}
}

// missedPolicy is what becomes of instants that nobody was there for, and from when
// on: those before it are too old.
func missedPolicy(sch schedulestore.Schedule, now time.Time) (policy string, from time.Time) {
	m := RulesOf(sch).Missed
	if m == nil {
		return timing.Skip, time.Time{}
	}
	return m.Policy, timing.Earliest(m, now)
}
