// Command source measures sources on SQLite and PostgreSQL with full
// durability: rows per second beside the raw limit of the same run, the memory
// that a large answer needs, and what sources cost that are not due.
//
// usage: go run ./source [-quick] [-step rows|memory|idle] [-many N] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE] [-cpuprofile FILE]
//
// Without -pg (or PAWL_TEST_POSTGRES) only SQLite is measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
)

// sizes are how much is measured.
type sizes struct {
	pages, rounds   int // of 1,000 rows
	answer          int // bytes of the large answer
	few, many, asks int // sources that are not due, runs of one beside them
	idle            time.Duration
}

const note = "The raw limit puts the same rows, made beforehand, into a table of the same shape with the same indexes: a transaction for " +
	"each 1,000, by prepared inserts of 100 rows on SQLite and by COPY on PostgreSQL. The server, the fetch and the database share the cores. " +
	"Rounds of the two take turns, and the medians count."

func main() {
	only := flag.String("step", "", "measure only this `step`: rows, memory or idle")
	many := flag.Int("many", 0, "measure beside `N` sources that are not due")
	measure.Main("Sources beside the raw limits", "bench-source", func(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
		return all(ctx, r, p, sizesOf(quick, *many), *only)
	}, note)
}

func sizesOf(quick bool, many int) sizes {
	s := sizes{pages: 200, rounds: 5, answer: 200 << 20, few: 1000, many: 100_000, asks: 100, idle: 10 * time.Second}
	if quick {
		s = sizes{pages: 20, rounds: 3, answer: 20 << 20, few: 100, many: 2000, asks: 20, idle: 2 * time.Second}
	}
	if many > 0 {
		s.many = many
	}
	return s
}

func all(ctx context.Context, r *measure.Report, p measure.Place, s sizes, only string) error {
	for _, step := range []struct {
		name string
		take func(context.Context, *measure.Report, measure.Place, sizes) error
	}{{"rows", throughput}, {"memory", memory}, {"idle", waiting}} {
		if only != "" && only != step.name {
			continue
		}
		if err := step.take(ctx, r, p, s); err != nil {
			return err
		}
	}
	return nil
}

// throughput reports rows per second beside the raw limit.
func throughput(ctx context.Context, r *measure.Report, p measure.Place, s sizes) error {
	for _, mode := range []string{"append", "upsert"} {
		r.Say("rows, %s", mode)
		got, err := rowsPerSecond(ctx, p, mode, s.pages, s.rounds)
		if err != nil {
			return fmt.Errorf("rows, %s: %w", mode, err)
		}
		r.Line(fmt.Sprintf("rows per second of the raw limit, table of mode %s", mode), "%.0f", got.raw)
		r.Line(fmt.Sprintf("rows per second, %s of new rows in pages of 1,000 (share of the limit)", mode), "%.0f (%.2f)", got.rows, got.rows/got.raw)
		r.Line(fmt.Sprintf("rows per second, %s of the same rows again", mode), "%.0f", got.again)
	}
	return nil
}

// memory reports what one large answer needs.
func memory(ctx context.Context, r *measure.Report, p measure.Place, s sizes) error {
	r.Say("one answer of %d MB", s.answer>>20)
	got, err := largeAnswer(ctx, p, s.answer)
	if err != nil {
		return fmt.Errorf("large answer: %w", err)
	}
	r.Line(fmt.Sprintf("peak memory above idle for one answer of %d MB (%d rows)", s.answer>>20, got.rows), "%.0f MB", float64(got.peak)/1e6)
	r.Line("rows per second of that answer, one transaction", "%.0f", float64(got.rows)/got.took.Seconds())
	return nil
}

// waiting reports what sources cost that are not due.
func waiting(ctx context.Context, r *measure.Report, p measure.Place, s sizes) error {
	for _, n := range []int{s.few, s.many} {
		r.Say("%d sources that are not due", n)
		got, err := notDue(ctx, p, n, s.asks, s.idle)
		if err != nil {
			return fmt.Errorf("%d sources: %w", n, err)
		}
		beside := fmt.Sprintf(", %d sources", n)
		r.Line("applying a definition"+beside, "%.2f ms", measure.MS(got.apply))
		r.Line("finding out that one is not due"+beside, "%.2f ms", measure.MS(got.look))
		r.Line("run now to commit of one source, p50 / p99"+beside, "%.2f / %.2f ms", measure.MS(measure.At(got.ran, 0.5)), measure.MS(measure.At(got.ran, 0.99)))
		r.Line(fmt.Sprintf("processor time in %s of idling", s.idle)+beside, "%.0f ms", measure.MS(got.idle))
		if p.Postgres != "" {
			r.Line(fmt.Sprintf("transactions in %s of idling", s.idle)+beside, "%d", got.transactions)
		}
		r.Line("memory of the process"+beside, "%.0f MB", float64(got.memory)/1e6)
	}
	return nil
}
