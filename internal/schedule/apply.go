package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// What applying a definition did.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Apply makes a schedule of an owner or changes the one of that name, in the
// caller's transaction. The same definition changes nothing. The zero Schedule
// was is that of a new one.
func (s *Service) Apply(ctx context.Context, tx *store.Tx, ownerID string, in client.ScheduleRequest, by string) (what string, was, now schedulestore.Schedule, err error) {
	was, err = schedulestore.In(tx).ScheduleByName(ctx, ownerID, in.Name)
	if errors.Is(err, pawl.ErrNotFound) {
		now, err = s.Create(ctx, tx, ownerID, in, by)
		return Created, schedulestore.Schedule{}, now, err
	}
	if err != nil {
		return "", was, was, err
	}
	if err := oneWork(in.GraphID, in.Input, in.ExecutionGrantID, in.Run); err != nil {
		return "", was, was, err
	}
	in = withDefaults(in)
	update := client.SchedulePatch{Run: in.Run, Cron: &in.Cron, Timezone: &in.Timezone, ConcurrencyPolicy: &in.ConcurrencyPolicy, Enabled: in.Enabled, Labels: &in.Labels, TimingPatch: declared(in.Timing)}
	if in.Run == nil {
		update.GraphID, update.Input = &in.GraphID, in.Input
		if len(update.Input) == 0 {
			update.Input = json.RawMessage("{}")
		}
	}
	update.Idempotent, update.Missed, update.Retry = &in.Idempotent, in.Missed, in.Retry
	update.Keep, update.Expect, update.Needs = &in.Keep, in.Expect, &in.Needs
	bare := RulesOf(was) // what the definition does not say any more
	if in.Missed == nil {
		bare.Missed = nil
	}
	if in.Retry == nil {
		bare.Retry = nil
	}
	if in.Expect == nil {
		bare.Expect = nil
	}
	if in.ExecutionGrantID != "" {
		update.ExecutionGrantID = &in.ExecutionGrantID
	}
	held := was
	held.Rules = bare.store()
	if same(was, merged(held, update)) {
		return Unchanged, was, was, nil
	}
	now, err = s.update(ctx, tx, ownerID, was.ID, update, &bare, by)
	return Updated, was, now, err
}

// withDefaults is a definition with what it leaves out. The grant and the switch of a
// schedule are not among it: those that it has stay.
func withDefaults(in client.ScheduleRequest) client.ScheduleRequest {
	in.Timezone = cmp.Or(in.Timezone, "UTC")
	in.ConcurrencyPolicy = cmp.Or(in.ConcurrencyPolicy, pawl.PolicyQueue)
	return in
}

// same reports whether two schedules differ in nothing that a person can
// change.
func same(a, b schedulestore.Schedule) bool {
	return a.GraphID == b.GraphID && sameJSON(a.Input, b.Input) && sameRules(a, b) && sameTerms(a, b) && a.Cron == b.Cron && a.Timezone == b.Timezone && a.Policy == b.Policy &&
		a.Timing == b.Timing && a.MaxRuns == b.MaxRuns && a.Enabled == b.Enabled && a.GrantID == b.GrantID && maps.Equal(a.Labels, b.Labels)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
