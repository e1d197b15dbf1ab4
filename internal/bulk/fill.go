package bulk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Size is how much there is to be.
type Size struct {
	Lanes int
	Runs  int
}

// Seed is what is multiplied: the names of a workflow and of a source, the id of
// a schedule, and two users, of whom the first owns two thirds of the schedules.
type Seed struct {
	Workflow string
	Source   string
	Schedule string
	Owner    string // ids of users with a billing account
	Other    string
}

// The busiest lane of each kind, and things that are in it.
const (
	HotWorkflow = "w100001"
	HotSource   = "s100001"
)

// ScheduleID is the id of the nth schedule. The first is the busiest; runs of
// every second one have lanes of their own, as under the policy Allow. Every
// third is the other user's.
func ScheduleID(n int) string { return fmt.Sprintf("00000003-0000-7000-8000-%d", base+n) }

// RunID is the id of the nth run. By their last digit, 0 to 4 are runs of
// workflows, 5 and 6 of sources, and the rest of schedules.
func RunID(n int) string { return fmt.Sprintf("00000004-0000-7000-8000-%d", base+n) }

// InputID is the id of the nth input, which is of the busiest workflow if its
// last digit is below 3.
func InputID(n int) string { return fmt.Sprintf("00000006-0000-7000-8000-%d", base+n) }

// BackfillID is the id of the nth backfill of the busiest schedule.
func BackfillID(n int) string { return fmt.Sprintf("00000009-0000-7000-8000-%d", base+n) }

const base = 100000000000 // gives numbers twelve digits

// history is how far back runs go.
const history = 30 * 24 * time.Hour

// Fill multiplies the seed.
func Fill(ctx context.Context, db *store.DB, seed Seed, size Size) error {
	now := time.Now().UTC()
	words := strings.NewReplacer(
		"{now}", fmt.Sprint(now.UnixMilli()),
		"{then}", fmt.Sprint(now.Add(-history).UnixMilli()),
		"{step}", fmt.Sprint(max(1, history.Milliseconds()/int64(size.Runs))),
		"{runs}", fmt.Sprint(size.Runs),
		"{flows}", fmt.Sprint(max(4, size.Lanes*4/10)),
		"{sources}", fmt.Sprint(max(3, size.Lanes*3/10)),
		"{schedules}", fmt.Sprint(max(3, size.Lanes*3/10)),
		"{flow}", text(seed.Workflow), "{source}", text(seed.Source), "{schedule}", text(seed.Schedule),
		"{owner}", text(seed.Owner), "{other}", text(seed.Other),
	)
	for _, step := range steps() {
		// Expanded twice, because some words are made of others.
		sql := words.Replace(expressions().Replace(expressions().Replace(step)))
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
		if err != nil {
			return fmt.Errorf("fill %.60s: %w", sql, err)
		}
	}
	if db.Name() == "sqlite" { // has no statistics, as in life
		return nil
	}
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `analyze`) // autovacuum would
		return err
	})
}

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// expressions are parts of the statements. In all of them i is the number of a
// row.
func expressions() *strings.Replacer {
	return strings.NewReplacer(
		"{n:runs}", numbers("{runs}"), "{n:half}", numbers("{runs} / 2"), "{n:fifth}", numbers("{runs} / 5"),
		"{n:few}", numbers("{runs} / 50"), "{n:flows}", numbers("{flows}"), "{n:sources}", numbers("{sources}"),
		"{n:schedules}", numbers("{schedules}"), "{n:300}", numbers("300"), "{n:30}", numbers("30"),
		"{run}", `'00000004-0000-7000-8000-' || (100000000000 + i)`,
		"{input}", `'00000006-0000-7000-8000-' || (100000000000 + i)`,
		"{at}", `({then} + i * {step})`,
		// Ids of events, rejects, jobs and audit entries begin with their time.
		"{id}", `((({then} + i * {step} - 1704067200000) << 22) + i)`,
		"{kind}", `case when i % 10 < 5 then 'workflow' when i % 10 < 7 then 'source' else 'schedule' end`,
		"{k:flow}", `case when i % 10 = 0 then 1 else (i / 10) % {flows} + 1 end`,
		"{k:source}", `case when i % 10 = 5 then 1 else (i / 10) % {sources} + 1 end`,
		"{k:schedule}", `case when i % 10 = 7 then 1 when i % 10 = 8 then 2 else (i / 10) % {schedules} + 1 end`,
		"{k:event}", `case when i % 10 < 3 then 1 else (i / 10) % {flows} + 1 end`,
	)
}

func numbers(until string) string {
	return `with recursive n (i) as (select cast(1 as bigint) union all select i + 1 from n where i < ` + until + `) `
}
