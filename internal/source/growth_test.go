package source

import (
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// past is how many fetches there were, and rows that they brought: enough for a
// planner to see that it is much, and for a step that reads them to be seen.
const past = 20_000

// No statement of a fetch, from its claim to its commit, reads more rows because a
// source has fetched often, or because its table is large.
func TestNoStepOfAFetchReadsThePast(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		h := &bulk.Heard{}
		db, err := store.Open(t.Context(), url, store.Options{Trace: h.Note})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		k := &kit{t: t, db: db, api: newUpstream(t)}
		k.start("n1")
		src := k.apply(definition("old", "/pages", byPage))
		k.work(src)
		k.pastOf(src.ID)
		k.change(`update source_state set last_success_at = 1`)
		k.api.fill(13)
		h.During(func() {
			if _, err := k.s.work(t.Context(), k, src.ID); err != nil {
				t.Error(err)
			}
		})
		k.wantStatus("old", pawl.StatusCommitted)
		if got := k.column(`select id from items where source_name = 'old' and id like 'i%' order by id`); !slices.Equal(got, k.api.all()) {
			t.Errorf("the table holds %v, the API %v", got, k.api.all())
		}
		faults, measured, err := h.Dear(t.Context(), url, bulk.MostOfAStep(db.Name()))
		if err != nil || measured < 10 {
			t.Fatalf("%d statements were measured: %v", measured, err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

// pastOf gives a source that fetched once a past. Every second run is of another
// source, and newer.
func (k *kit) pastOf(sourceID string) {
	k.t.Helper()
	const count = `with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) `
	k.change(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) `+count+`
		select 'r-' || i, kind, case when i % 2 = 0 then lane else 'other' end, handler, handler_type, trigger, phase, status, 1, created_at - 60000 * i * (1 - i % 2 * 2), updated_at - 60000 * i * (1 - i % 2 * 2), created_at - 60000 * i * (1 - i % 2 * 2), updated_at - 60000 * i * (1 - i % 2 * 2)
		from n cross join (select * from runs where kind = 'source') t`, past)
	k.change(`insert into source_runs (run_id, source_id, version, definition, pages, started_at, updated_at) `+count+`
		select 'r-' || i, source_id, version, '{}', 1, started_at - 60000 * i, updated_at - 60000 * i
		from n cross join (select * from source_runs where source_id = $2) t`, past, sourceID)
	k.change(`insert into _rejects (id, source_name, run_id, page, row_number, reason, raw, created_at) `+count+`
		select i, 'old', 'r-' || i, 1, 1, 'no number', '{}', 1 from n`, past)
	names := `select name from pragma_table_info('items') order by cid`
	if k.db.Name() == "postgres" {
		names = `select column_name from information_schema.columns where table_name = 'items' order by ordinal_position`
	}
	columns := k.column(names)
	values := slices.Clone(columns)
	values[slices.Index(values, "id")] = `'x' || i`
	k.change(`insert into items (`+strings.Join(columns, ", ")+`) `+count+` select `+strings.Join(values, ", ")+` from n cross join (select * from items limit 1) t`, past)
	if k.db.Name() == "postgres" {
		k.change(`analyze`)
	}
}
