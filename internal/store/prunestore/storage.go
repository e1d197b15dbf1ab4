package prunestore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Groupings say whose the rows of growing tables are.
func Groupings() []store.Grouping {
	const lane = `r.kind || ' ' || case when r.kind = 'schedule' then substr(r.lane, 1, 36)
		when r.kind = 'workflow' and substr(r.lane, length(r.lane) - 24, 1) = '/' then substr(r.lane, 1, length(r.lane) - 25) else r.lane end`
	// A scalar subquery: for a join PostgreSQL would read all runs there are.
	const ofRun = `coalesce((select ` + lane + ` from runs r where r.id = t.run_id), '')`
	return []store.Grouping{
		{Table: "runs", Lane: strings.ReplaceAll(lane, "r.", "t."),
			Bytes: `400 + coalesce(length(t.prepare_result), 0) + coalesce(length(t.mutation_result), 0) + coalesce(length(t.output_state), 0)`},
		{Table: "run_reads", Lane: ofRun, Bytes: `120 + length(t.call) + coalesce(length(t.answer), 0)`},
		{Table: "read_contents", Lane: `'workflow ' || t.workflow_id`, Bytes: `100 + length(t.content)`},
		{Table: "run_logs", Lane: ofRun, Bytes: `80 + length(t.text)`},
		{Table: "source_runs", Lane: ofRun, Bytes: `200 + length(t.definition)`},
		{Table: "events", Lane: `'workflow ' || t.workflow_id`, Bytes: `200 + length(t.payload)`},
		{Table: "inputs", Lane: `'workflow ' || t.workflow_id`, Bytes: `200 + length(t.title)`},
		{Table: "mutations", Lane: `'workflow ' || t.workflow_id`, Bytes: `400 + length(t.arguments) + coalesce(length(t.result), 0)`},
		{Table: "schedule_runs", Lane: `'schedule ' || t.schedule_id`, Bytes: `600`},
		{Table: "_rejects", Lane: `'source ' || t.source_name`, Bytes: `150 + length(t.raw)`},
	}
}

// Day is how large a table was at an instant.
type Day struct {
	Name  string
	At    time.Time
	Rows  int64
	Bytes int64
}

func dayOf(t time.Time) int64 { return t.Unix() / 86400 }

// daysKept is for how long sizes are kept.
const daysKept = 90

// AddDay notes how large tables are on the day of the transaction, if nobody has,
// and forgets what is long ago.
func (tx Tx) AddDay(ctx context.Context, list []store.TableSize) error {
	for batch := range store.Batches(list) {
		v := store.Values{}
		for _, t := range batch {
			v.Row(t.Name, dayOf(tx.Now), store.Millis(tx.Now), t.Rows, t.Bytes)
		}
		if _, err := tx.Exec(ctx, `insert into storage_days (name, day, at, row_count, bytes) values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
			return fmt.Errorf("note sizes: %w", err)
		}
	}
	_, err := tx.Exec(ctx, `delete from storage_days where day < $1`, dayOf(tx.Now)-daysKept)
	return err
}

// HasDay reports whether sizes of the day of an instant are known.
func (tx Tx) HasDay(ctx context.Context) (bool, error) {
	var n int
	err := tx.QueryRow(ctx, `select count(*) from (select 1 from storage_days where day = $1 limit 1) as d`, dayOf(tx.Now)).Scan(&n)
	return n > 0, err
}

// DaysSince reads the first size that is known of each table since an instant.
func (tx Tx) DaysSince(ctx context.Context, since time.Time) (map[string]Day, error) {
	out := map[string]Day{}
	rows, err := tx.Query(ctx, `select name, at, row_count, bytes from storage_days where day >= $1 order by day desc`, dayOf(since))
	_, err = store.ScanAll(rows, err, "read sizes", func(row store.Scanner) (struct{}, error) {
		var d Day
		var at int64
		err := row.Scan(&d.Name, &at, &d.Rows, &d.Bytes)
		d.At = store.FromMillis(at)
		out[d.Name] = d
		return struct{}{}, err
	})
	return out, err
}
