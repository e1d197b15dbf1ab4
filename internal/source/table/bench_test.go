package table

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// BenchmarkPage writes pages of 1,000 rows with six columns, a durable
// transaction each, by turns with "raw": the fastest way found to put rows into
// the same table with the same indexes, which is COPY on PostgreSQL and
// prepared inserts of 100 rows on SQLite. It reports the medians in rows a
// second, and the one as a share of the other.
func BenchmarkPage(b *testing.B) {
	for _, name := range []string{SQLite, Postgres} {
		for _, c := range []struct {
			name string
			d    spec.Definition
			page func(n int) [][]any
			want bool
		}{
			{"append", ticks(spec.Append, "id"), fresh, false},
			{"append-no-key", ticks(spec.Append), fresh, false},
			{"append-all-same", ticks(spec.Append, "id"), again, false},
			{"upsert", ticks(spec.Upsert, "id"), fresh, false},
			{"upsert-want-changed", ticks(spec.Upsert, "id"), fresh, true},
			{"upsert-all-same", ticks(spec.Upsert, "id"), again, false},
			{"upsert-all-changed", ticks(spec.Upsert, "id"), changed, false},
			{"replace-stage", ticks(spec.Replace, "id"), fresh, false},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				k, raw := benchKit(b, name), benchRaw(b, name)
				p := k.ready(c.d)
				for n := range repeated { // rows that come again have to be there
					if c.page(n)[0][0] == c.page(n + repeated)[0][0] {
						k.page(p, noon, false, c.page(n)...)
					}
				}
				var took, limit []time.Duration
				for b.Loop() {
					rows := fresh(len(limit))
					limit = append(limit, timed(func() { raw(rows) }))
					rows = c.page(len(took) + repeated)
					took = append(took, timed(func() { k.page(p, noon, c.want, rows...) }))
				}
				report(b, took, limit)
			})
		}
	}
}

func timed(do func()) time.Duration {
	from := time.Now()
	do()
	return time.Since(from)
}

func report(b *testing.B, took, limit []time.Duration) {
	b.Helper()
	slices.Sort(took)
	slices.Sort(limit)
	ours, raw := took[len(took)/2], limit[len(limit)/2]
	b.ReportMetric(pageRows/ours.Seconds(), "rows/s")
	b.ReportMetric(pageRows/raw.Seconds(), "raw-rows/s")
	b.ReportMetric(100*raw.Seconds()/ours.Seconds(), "%raw")
}

// repeated is how many pages there are of rows that come again.
const repeated = 20

const pageRows = 1000

func ticks(mode spec.Mode, key ...string) spec.Definition {
	d := spec.Definition{Name: "market", Table: "ticks", Write: spec.Write{Mode: mode, Key: key}}
	for _, c := range []struct {
		name string
		kind spec.Type
	}{{"id", spec.Integer}, {"symbol", spec.Text}, {"price", spec.Number}, {"open", spec.Boolean}, {"at", spec.Timestamp}, {"note", spec.Text}} {
		d.Response.Fields = append(d.Response.Fields, spec.Field{Target: c.name, Type: c.kind})
	}
	return d
}

func tickRows(from int, note string) [][]any {
	rows := make([][]any, pageRows)
	for i := range rows {
		n := from + i
		rows[i] = []any{int64(n), "SYM" + strconv.Itoa(n%500), float64(n) * 1.25, n%2 == 0, time.UnixMicro(1_700_000_000_000_000 + int64(n)*1000), note + strconv.Itoa(n)}
	}
	return rows
}

// The pages of a benchmark: fresh rows, the same again, or the same with other
// values.
func fresh(n int) [][]any { return tickRows(n*pageRows, "a note of some words ") }
func again(n int) [][]any { return fresh(n % repeated) }
func changed(n int) [][]any {
	return tickRows(n%repeated*pageRows, "note "+strconv.Itoa(n/repeated)+" of ")
}

func benchURL(b *testing.B, name string) string {
	b.Helper()
	if name == Postgres {
		return pgtest.URL(b)
	}
	return "sqlite:" + filepath.Join(b.TempDir(), "pawl.db")
}

func benchKit(b *testing.B, name string) *kit {
	b.Helper()
	return newKit(b, benchURL(b, name))
}

// benchRaw makes a table like the others and the raw way to write to it.
func benchRaw(b *testing.B, name string) func(rows [][]any) {
	b.Helper()
	url := benchURL(b, name)
	k := newKit(b, url)
	k.ready(ticks(spec.Append, "id"))
	if name == Postgres {
		return rawPostgres(b, url)
	}
	return rawSQLite(k)
}

func rawPostgres(b *testing.B, url string) func(rows [][]any) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.WithoutCancel(b.Context())) })
	columns := []string{"source_name", "created_at", "_run", "id", "symbol", "price", "open", "at", "note"}
	return func(rows [][]any) {
		err := pgx.BeginFunc(b.Context(), conn, func(tx pgx.Tx) error {
			row := []any{"market", noon, "run"}
			_, err := tx.CopyFrom(b.Context(), pgx.Identifier{"ticks"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				row = append(row[:3], rows[i]...)
				return row, nil
			}))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func rawSQLite(k *kit) func(rows [][]any) {
	const atOnce = 100
	row := "($1,$2,$3,?,?,?,?,?,?)"
	text := "insert into ticks (source_name, created_at, _run, id, symbol, price, open, at, note) values " + row + strings.Repeat(","+row, atOnce-1)
	return func(rows [][]any) {
		k.write(func(ctx context.Context, tx *store.Tx) error {
			for from := 0; from < len(rows); from += atOnce {
				args := append(make([]any, 0, 3+6*atOnce), "market", noon.Format(milliText), "run")
				for _, r := range rows[from : from+atOnce] {
					args = append(append(args, r[:4]...), r[4].(time.Time).UTC().Format(microText), r[5])
				}
				if _, err := tx.Exec(ctx, text, args...); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
