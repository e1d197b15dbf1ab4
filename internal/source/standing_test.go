package source

import (
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
)

// Of every instant of a source, why tells which run stood for it, or why none did.
func TestWhyTellsTheRunOfAnInstant(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hour := time.Now().UTC().Truncate(time.Hour).Add(-10 * time.Hour)
		src := k.apply(definition("s", "/whole", "schedule: {cron: \"0 * * * *\"}\n"))
		k.work(src)
		k.change(`update source_definitions set created_at = $1`, hour.Add(-30*time.Minute).UnixMilli())
		// It ran when it was made and at two, and at five for three to five.
		k.change(`update runs set scheduled_for = $1, created_at = $1, ended_at = $2`, hour.Add(-30*time.Minute).UnixMilli(), hour.Add(-29*time.Minute).UnixMilli())
		again := func(id string, due, made time.Duration, status pawl.Status) {
			k.change(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, scheduled_for, created_at, updated_at, started_at, ended_at, error_message)
				select $1, kind, lane, handler, handler_type, trigger, phase, $4, 1, cast($2 as bigint), cast($3 as bigint), cast($3 as bigint), cast($3 as bigint), cast($5 as bigint), 'it was away' from runs limit 1`,
				id, hour.Add(due).UnixMilli(), hour.Add(made).UnixMilli(), string(status), hour.Add(made+time.Second).UnixMilli())
		}
		again("r2", 2*time.Hour, 2*time.Hour, pawl.StatusPausedTransient)
		again("r2b", 2*time.Hour, 2*time.Hour+time.Minute, pawl.StatusCommitted)
		again("r5", 3*time.Hour, 5*time.Hour+time.Minute, pawl.StatusFailedInternal)
		// An earlier source of the name was paused.
		k.change(`insert into audit_log (id, at, actor, action, subject) values (1, $1, 'ada', 'source.pause', 'source:s')`, hour.Add(-time.Hour).UnixMilli())
		for at, want := range map[time.Duration]string{
			-10 * time.Hour:  "the source was made at ",
			time.Hour:        "No run of s stood for it: the one before it stood for ",
			90 * time.Minute: "Nothing was due at that time by its schedule of now.",
			2 * time.Hour:    "Run r2b of s stood for it. It began at ",
			3 * time.Hour:    "Run r5 of s stood for it. It began at ",
			5 * time.Hour:    "Run r5 of s stood for " + pawl.FormatTime(hour.Add(3*time.Hour)) + " and what came due until it ran.",
			6 * time.Hour:    "No run of s stood for it: run r5, which stood for ",
			100 * time.Hour:  "That time is in the future.",
		} {
			y, err := k.s.Why(t.Context(), lane.Viewer{}, "s", hour.Add(at))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(y.Around.Text, want) || (y.Around.Stood != nil) != strings.HasPrefix(want, "Run ") {
				t.Errorf("%s: %q, want %q", at, y.Around.Text, want)
			}
		}
	})
}

// An instant of runs that are folded is answered with the row that stands for them.
func TestWhyTellsTheRowOfAFoldedInstant(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hour := time.Now().UTC().Truncate(time.Hour).Add(-10 * time.Hour)
		src := k.apply(definition("s", "/whole", "schedule: {cron: \"*/10 * * * *\"}\n"))
		k.work(src)
		k.change(`update source_definitions set created_at = $1`, hour.Add(-30*time.Minute).UnixMilli())
		k.change(`delete from source_runs`)
		k.change(`update runs set id = 'first', scheduled_for = $1, created_at = $2, ended_at = $2, folded_at = $2, through_at = $3, run_count = 13`,
			hour.UnixMilli(), hour.Add(time.Second).UnixMilli(), hour.Add(2*time.Hour+time.Second).UnixMilli())
		k.change(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, scheduled_for, created_at, updated_at, started_at, ended_at)
			select 'next', kind, lane, handler, handler_type, trigger, phase, status, 1, cast($1 as bigint), cast($1 as bigint), cast($1 as bigint), cast($1 as bigint), cast($1 as bigint) from runs`,
			hour.Add(130*time.Minute).UnixMilli())
		stretch := "the 13 runs of s from " + pawl.FormatTime(hour.Add(time.Second)) + " to " + pawl.FormatTime(hour.Add(2*time.Hour+time.Second))
		for at, want := range map[time.Duration]string{
			0:                 "Run first of s stood for it.",
			time.Hour:         "Run first stands for " + stretch + ", which found nothing to do and are kept as one; one of them stood for it.",
			2 * time.Hour:     "Run first stands for ",
			63 * time.Minute:  "Nothing was due at that time by its schedule of now. It was looking for something to do: run first stands for " + stretch,
			125 * time.Minute: "Nothing ran; the previous run began at " + pawl.FormatTime(hour.Add(2*time.Hour+time.Second)) + ", and the next started at ",
			130 * time.Minute: "Run next of s stood for it.",
			140 * time.Minute: "No run of s stood for it yet: the last one began at " + pawl.FormatTime(hour.Add(130*time.Minute)),
		} {
			y, err := k.s.Why(t.Context(), lane.Viewer{}, "s", hour.Add(at))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(y.Around.Text, want) || (y.Around.Stood != nil) != strings.HasPrefix(want, "Run ") {
				t.Errorf("%s: %q, want %q", at, y.Around.Text, want)
			}
		}
	})
}
