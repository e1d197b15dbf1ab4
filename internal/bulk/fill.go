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

func (s Size) flows() int  { return max(4, s.Lanes*4/10) }
func (s Size) others() int { return max(3, s.Lanes*3/10) } // sources, and schedules

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

// openEvents is among how many events some wait or are held: history grows, and what
// is not done yet does not grow with it.
const openEvents = 500_000

// history is how far back runs go.
const history = 30 * 24 * time.Hour

// Fill multiplies the seed.
func Fill(ctx context.Context, db *store.DB, seed Seed, size Size) error {
	now := time.Now().UTC()
	words := strings.NewReplacer(
		"{now}", fmt.Sprint(now.UnixMilli()),
		"{then}", fmt.Sprint(now.Add(-history).UnixMilli()),
		"{step}", fmt.Sprint(max(1, history.Milliseconds()/int64(size.Runs))),
		"{open}", fmt.Sprint(openEvents),
		"{flows}", fmt.Sprint(size.flows()), "{sources}", fmt.Sprint(size.others()), "{schedules}", fmt.Sprint(size.others()),
		"{flow}", text(seed.Workflow), "{source}", text(seed.Source), "{schedule}", text(seed.Schedule),
		"{owner}", text(seed.Owner), "{other}", text(seed.Other),
	)
	to, err := writerOf(ctx, db)
	if err != nil {
		return err
	}
	defer to.close()
	rebuild := func() error { return nil }
	if size.Runs > fewRuns {
		if rebuild, err = dropIndexes(ctx, db, to); err != nil {
			return err
		}
	}
	for _, step := range steps() {
		if err := fillStep(ctx, to, step, size, words); err != nil {
			return err
		}
	}
	if err := rebuild(); err != nil {
		return err
	}
	if db.Name() == "sqlite" { // has no statistics, as in life
		return nil
	}
	return to.write(ctx, `analyze`) // autovacuum would
}

// fewRuns is up to how many runs indexes are kept while rows are inserted, and
// rowsAtOnce how many rows a transaction inserts.
const (
	fewRuns    = 100_000
	rowsAtOnce = 250_000
)

// fillStep makes the rows of a step, many in each transaction.
func fillStep(ctx context.Context, to writer, step string, size Size, words *strings.Replacer) error {
	all := map[string]int{
		"{n:runs}": size.Runs, "{n:half}": size.Runs / 2, "{n:fifth}": size.Runs / 5, "{n:few}": size.Runs / 50, "{n:300}": 300, "{n:30}": 30,
		"{n:flows}": size.flows(), "{n:sources}": size.others(), "{n:schedules}": size.others(),
	}
	for word, n := range all {
		if !strings.Contains(step, word) {
			continue
		}
		for first := 1; first <= n; first += rowsAtOnce {
			// Expanded twice, because some words are made of others.
			sql := words.Replace(expressions().Replace(expressions().Replace(strings.ReplaceAll(step, word, numbers(first, min(n, first+rowsAtOnce-1))))))
			if err := to.write(ctx, sql); err != nil {
				return fmt.Errorf("fill %.60s: %w", sql, err)
			}
		}
		return nil
	}
	return fmt.Errorf("a step has no number of rows: %.60s", step)
}

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// expressions are parts of the statements. In all of them i is the number of a
// row.
func expressions() *strings.Replacer {
	return strings.NewReplacer(
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

func numbers(first, last int) string {
	return fmt.Sprintf(`with recursive n (i) as (select cast(%d as bigint) union all select i + 1 from n where i < %d) `, first, last)
}
