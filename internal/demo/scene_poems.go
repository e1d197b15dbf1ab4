package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/examples"
	"github.com/pawlrun/pawl/internal/schedule/spec"
)

// nextMinute is how long the scene waits for a slot of the cron expression.
const nextMinute = 10 * time.Second

// poems is a schedule, the one of examples/poet but for every minute: each slot
// is one poem with one receipt, although an answer is lost.
func poems() scene {
	return scene{name: "poems", promise: "every schedule slot runs once and is billed once", play: playPoems}
}

func playPoems(ctx context.Context, s *stage) (string, error) {
	s.poet.loseAnswers(1)
	schedule, err := s.applyPoet(ctx)
	if err != nil {
		return "", err
	}
	manual, err := s.runPoet(ctx, schedule)
	if err != nil {
		return "", err
	}
	want := []client.Slot{manual}
	seen := "a slot run by hand: a poem and a receipt"
	if wait := time.Until(schedule.NextRunAt.Time); wait < nextMinute {
		want = append(want, client.Slot{ScheduledFor: schedule.NextRunAt})
		seen = "a slot run by hand and one of the clock: a poem and a receipt each"
	}
	for _, slot := range want {
		if err := s.checkSlot(ctx, schedule.ID, slot.ScheduledFor.Time); err != nil {
			return "", err
		}
	}
	if err := s.checkKeys(ctx, schedule.ID); err != nil {
		return "", err
	}
	asked, poems, lost := s.poet.counts()
	if asked > poems+lost {
		return "", fmt.Errorf("the poet was asked %d times for %d poems, and lost %d answers", asked, poems, lost)
	}
	return seen + ", although the poet lost an answer", nil
}

// applyPoet applies the schedule.
func (s *stage) applyPoet(ctx context.Context) (out client.Schedule, err error) {
	text, err := example(examples.Poet, "poet/poet.yaml", change{`cron: "0 9 * * *"`, `cron: "* * * * *"`})
	if err != nil {
		return out, err
	}
	definitions, err := spec.Parse("poet.yaml", []byte(text))
	if err != nil {
		return out, err
	}
	raw, err := s.api.Put(ctx, client.NamedSchedulePath(definitions[0].Name), definitions[0])
	if err != nil {
		return out, s.ended(ctx, fmt.Errorf("apply the schedule: %w", err))
	}
	var applied struct {
		Schedule client.Schedule `json:"schedule"`
	}
	if err := json.Unmarshal(raw, &applied); err != nil {
		return out, err
	}
	s.story.note("applied", "schedule "+definitions[0].Name)
	return applied.Schedule, nil
}

// runPoet runs the schedule by hand, once none of its slots runs.
func (s *stage) runPoet(ctx context.Context, schedule client.Schedule) (slot client.Slot, err error) {
	var raw json.RawMessage
	err = s.await(ctx, "the schedule can be run by hand", func() (bool, error) {
		raw, err = s.api.Post(ctx, client.SchedulePath(schedule.ID, "run"), nil)
		if errors.Is(err, pawl.ErrConflict) { // the clock was faster
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return slot, err
	}
	return slot, json.Unmarshal(raw, &slot)
}

// checkSlot waits for a slot and looks at it from both sides.
func (s *stage) checkSlot(ctx context.Context, schedule string, at time.Time) error {
	var slot client.Slot
	err := s.await(ctx, "the slot has run", func() (bool, error) {
		slots, err := s.slots(ctx, schedule)
		i := slices.IndexFunc(slots, func(x client.Slot) bool { return x.ScheduledFor.Equal(at) })
		if err != nil || i < 0 {
			return false, err
		}
		slot = slots[i]
		return slot.Status == "success" || slot.Status == "error" || slot.Status == "skipped", nil
	})
	if err != nil {
		return err
	}
	if slot.Status != "success" {
		return fmt.Errorf("the slot of %s ended with %s", at.Format(time.RFC3339), slot.Status)
	}
	if s.poet.asked(pawl.SlotKey(schedule, at)) == 0 {
		return fmt.Errorf("the poet was not asked with the key of the slot of %s", at.Format(time.RFC3339))
	}
	receipts, err := list[client.Receipt](ctx, s, client.ReceiptsPath, url.Values{"run": {string(slot.RunID)}})
	if err != nil {
		return s.ended(ctx, err)
	}
	if len(receipts) != 1 {
		return fmt.Errorf("the slot of %s has %d receipts", at.Format(time.RFC3339), len(receipts))
	}
	return nil
}

func (s *stage) slots(ctx context.Context, schedule string) ([]client.Slot, error) {
	return list[client.Slot](ctx, s, client.SchedulePath(schedule, "slots"), nil)
}

// checkKeys finds a poem that no slot asked for.
func (s *stage) checkKeys(ctx context.Context, schedule string) error {
	keys := s.poet.keys() // before the slots: one of the next instant has its slot first
	slots, err := s.slots(ctx, schedule)
	if err != nil {
		return s.ended(ctx, err)
	}
	for _, key := range keys {
		if !slices.ContainsFunc(slots, func(x client.Slot) bool { return pawl.SlotKey(schedule, x.ScheduledFor.Time) == key }) {
			return fmt.Errorf("the poet wrote for %s, which is no slot", key)
		}
	}
	return nil
}
