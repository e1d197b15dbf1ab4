package schedule

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
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

// What becomes of slots that came due while no worker was running.
const (
	missedSkip = "skip"
	missedLast = "last"
	missedAll  = "all"
)

// longestWithin bounds both windows.
const longestWithin = 366 * 24 * time.Hour

// check finds what is wrong with the rules.
func (r Rules) check(add func(pointer, format string, values ...any)) {
	within := func(pointer, text string) {
		if text == "" {
			return
		}
		if d, err := when.ParseInterval(text); err != nil || d > longestWithin {
			add(pointer, "must be a length of time of at most a year, such as 12h")
		}
	}
	if m := r.Missed; m != nil {
		if m.Policy != missedSkip && m.Policy != missedLast && m.Policy != missedAll {
			add("/missed/policy", "must be skip, last or all, not %q", m.Policy)
		}
		within("/missed/within", m.Within)
	}
	terms.CheckKeep(r.Keep, func(path []any, message, hint string) { add(definition.Pointer(path...), "%s; %s", message, hint) })
	if t := r.Retry; t != nil {
		if t.Attempts < 1 || t.Attempts > 100 {
			add("/retry/attempts", "must be 1 to 100")
		}
		within("/retry/within", t.Within)
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
		return missedSkip, time.Time{}
	}
	if d, err := when.ParseInterval(m.Within); err == nil {
		from = now.Add(-d)
	}
	return m.Policy, from
}
