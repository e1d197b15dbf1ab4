package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	rules "github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/terms"
)

// How much of a schedule describe tells.
const (
	nextShown  = 5
	slotsShown = 15
)

// describeSchedule tells what a schedule runs, and when.
func describeSchedule(raw json.RawMessage, now time.Time) (string, error) {
	var s client.Schedule
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("read schedule: %w", err)
	}
	d := newDescription(now)
	d.say("The schedule %s runs %s.", s.Name, workWords(s.GraphID, s.Run))
	switch {
	case !s.Enabled && s.Issue != "" && s.CappedUntil.IsZero():
		d.say("It was disabled automatically: %s Enable it with: pawl resume schedule %s", s.Issue, s.Name)
	case !s.Enabled && s.Pause != nil:
		d.say("%s Resume it with: pawl resume schedule %s", terms.PausedSentence(*s.Pause), s.Name)
	case !s.Enabled:
		d.say("It is disabled. Switch it on with: pawl resume schedule %s", s.Name)
	case s.CappedUntil.After(now):
		d.say("%s", s.Issue)
	case s.NextRunAt.After(now):
		d.say("It runs next %s.", relative(s.NextRunAt.Time, now))
	case !s.NextRunAt.IsZero():
		d.say("It is due now.")
	default:
		d.say("No further slot is planned.")
	}
	d.gap()
	d.line("Status", enabledWord(s))
	d.line("Cron", string(s.Cron))
	describeTiming(d, s)
	d.line("Timezone", s.Timezone)
	d.line("Overlap", policyStory(string(s.ConcurrencyPolicy)))
	d.line("Grant", s.ExecutionGrantID)
	d.instant("Next", s.NextRunAt.Time)
	d.instant("Last", s.LastRunAt.Time)
	d.line("Labels", labelWords(s.Labels))
	d.line("Owner", s.OwnerUserID)
	d.instant("Created", s.CreatedAt.Time)
	d.instant("Updated", s.UpdatedAt.Time)
	d.line("Id", s.ID)
	d.line("Missed", terms.MissedWords(s.Missed))
	d.line("Attempts", terms.RetryWords(s.Retry))
	d.line("Keeps", terms.KeepWords(s.Keep))
	d.line("Needs", terms.NeedsWords(s.Needs))
	describeExpectations(d, s.Expectations)
	if s.Run != nil {
		raw, err := json.Marshal(s.Run)
		if err != nil {
			return "", err
		}
		d.json("Run", raw)
	} else {
		d.json("Input", s.Input)
	}
	return d.String(), nil
}

// describeTiming tells when a schedule runs besides its expressions.
func describeTiming(d *description, s client.Schedule) {
	d.line("Interval", s.Interval)
	d.line("At", s.At)
	d.line("From", s.From)
	d.line("Until", s.Until)
	d.line("Except", strings.Join(s.Except, ", "))
	d.line("Jitter", s.Jitter)
	if s.MaxRuns > 0 {
		d.line("Runs", fmt.Sprintf("%d of %d", s.Begun, s.MaxRuns))
	}
}

// policyStory says what happens to a slot that comes due while another runs.
func policyStory(policy string) string {
	switch policy {
	case "Queue":
		return "Queue: a slot that comes due while another runs waits for it"
	case "Forbid":
		return "Forbid: a slot that comes due while another runs is skipped"
	case "Allow":
		return "Allow: a slot that is due while another is running starts as well"
	case "Replace":
		return "Replace: a slot that comes due while another runs takes its place"
	}
	return policy
}

// describeSlots tells what a schedule waits for, when it runs next, and what
// became of its last slots.
func describeSlots(ctx context.Context, c *client.Client, raw json.RawMessage, now time.Time) (string, error) {
	var s client.Schedule
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("read schedule: %w", err)
	}
	d := newDescription(now)
	for _, tell := range []func(context.Context, *client.Client, *description, client.Schedule) error{addGrant, addGates, addNext, addSlots} {
		if err := tell(ctx, c, d, s); err != nil && !missing(err) {
			return "", err
		}
	}
	d.gap()
	d.say("More: pawl why schedule %s, pawl get slots %s, pawl get receipts --schedule %s, pawl get runs --schedule %s", s.Name, s.Name, s.Name, s.Name)
	return d.String(), nil
}

// missing: what is gone, or not for this token, is left out.
func missing(err error) bool {
	return errors.Is(err, pawl.ErrNotFound) || pawl.ErrorCode(err) == pawl.CodeForbidden
}

func addGrant(ctx context.Context, c *client.Client, d *description, s client.Schedule) error {
	if s.ExecutionGrantID == "" {
		return nil
	}
	raw, err := getOne(ctx, c, grantKind(), s.ExecutionGrantID)
	if err != nil {
		return err
	}
	var g client.Grant
	if err := json.Unmarshal(raw, &g); err != nil {
		return fmt.Errorf("read grant: %w", err)
	}
	d.gap()
	caps := capWords(g.Caps)
	if caps == "" {
		caps = "without caps"
	}
	d.line("Grant is", grantState(g, d.now)+", "+caps)
	d.instant("Expires", g.ExpiresAt.Time)
	return nil
}

func addGates(ctx context.Context, c *client.Client, d *description, s client.Schedule) error {
	raw, err := c.Get(ctx, client.WhyPath(scheduleKind().singular, s.ID))
	if err != nil {
		return err
	}
	var y client.LaneWhy
	if err := json.Unmarshal(raw, &y); err != nil {
		return fmt.Errorf("read why: %w", err)
	}
	if y.Status == string(rules.NeedsAttention) {
		d.gap()
		d.line("Attention", string(y.Issue))
	}
	describeGates(d, y.Gates)
	return nil
}

func addNext(ctx context.Context, c *client.Client, d *description, s client.Schedule) error {
	raw, err := c.GetWith(ctx, client.SchedulePath(s.ID, "next"), url.Values{"count": {fmt.Sprint(nextShown)}})
	if err != nil {
		return err
	}
	var next client.NextInstants
	if err := json.Unmarshal(raw, &next); err != nil {
		return fmt.Errorf("read instants: %w", err)
	}
	title := "Next instants (" + next.Schedule + ")"
	if !next.Enabled {
		title = "Next times, if it were enabled (" + next.Schedule + ")"
	}
	var rows [][]string
	for _, n := range next.Items {
		note := n.ClockChange
		if !n.StartsAt.IsZero() {
			note = strings.TrimPrefix(note+"; starts at "+pawl.FormatTime(n.StartsAt.Time), "; ")
		}
		rows = append(rows, []string{pawl.FormatTime(n.At.Time), relative(n.At.Time, d.now), n.Local, note})
	}
	d.table(title, []column{{title: "at"}, {title: "when"}, {title: "local"}, {}}, rows)
	return nil
}

func addSlots(ctx context.Context, c *client.Client, d *description, s client.Schedule) error {
	items, more, err := c.List(ctx, client.SchedulePath(s.ID, "slots"), nil, slotsShown)
	if err != nil {
		return err
	}
	var rows [][]string
	counts, cost := map[string]int64{}, pawl.USD(0)
	for _, raw := range items {
		var slot client.Slot
		if err := json.Unmarshal(raw, &slot); err != nil {
			return fmt.Errorf("read slot: %w", err)
		}
		rows = append(rows, slotCells(slot, d.now))
		counts[slot.Status] += max(1, slot.Count)
		cost += slot.CostUSD
	}
	title := "Slots"
	if more {
		title = fmt.Sprintf("Last %d slots", len(rows))
	}
	d.table(title, slotColumns(), rows)
	if len(rows) > 0 {
		d.say("  Of these %d succeeded, %d failed and %d were passed over. Together they cost %s USD.", counts["success"], counts["error"], counts["skipped"], cost)
	}
	return nil
}
