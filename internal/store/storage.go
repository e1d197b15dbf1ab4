package store

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// TableSize is how large a table is, with its indexes.
type TableSize struct {
	Name  string
	Rows  int64
	Bytes int64
	Exact bool // counted; else estimated
}

// Storage is how large a database is.
type Storage struct {
	Bytes  int64       // of the whole
	Free   int64       // of that, what is empty and is used again; 0 if it is not known
	Tables []TableSize // by name
}

// countedFile is up to which size the tables of a SQLite file are measured and
// counted, and countedTable up to which size a table of PostgreSQL is counted;
// larger ones are estimated, so that the answer comes soon however much there is.
const (
	countedFile  = 4 << 20
	countedTable = 1 << 20
)

// Storage measures the database. What is large is estimated, by statistics on
// PostgreSQL and by samples on SQLite.
func (db *DB) Storage(ctx context.Context) (s Storage, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		s, err = db.dialect.storage(ctx, tx)
		return err
	})
	slices.SortFunc(s.Tables, func(a, b TableSize) int { return strings.Compare(a.Name, b.Name) })
	return s, err
}

// Share is how much of a table's rows and content belongs to whom, in parts of a
// whole.
type Share struct {
	Kind, Key   string
	Rows, Bytes float64
}

// Grouping says whose the rows of a table are: expressions of the lane, which is its
// kind, a space and its key, and of the bytes of a row, over the table as t.
type Grouping struct {
	Table       string
	Lane, Bytes string
}

// Shares divides a table among those that its rows belong to: of a small one all
// rows are counted, of a large one a sample.
func (tx *Tx) Shares(ctx context.Context, g Grouping, size TableSize) ([]Share, error) {
	from := `"` + g.Table + `" t`
	if !size.Exact {
		from = tx.db.dialect.sample(g.Table, size)
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s, count(*), cast(coalesce(sum(%s), 0) as bigint) from %s group by 1`, g.Lane, g.Bytes, from))
	list, err := ScanAll(rows, err, "divide "+g.Table, func(row Scanner) (s Share, err error) {
		var n, b int64
		var lane string
		err = row.Scan(&lane, &n, &b)
		s.Kind, s.Key, _ = strings.Cut(lane, " ")
		s.Rows, s.Bytes = float64(n), float64(b)
		return s, err
	})
	var n, b float64
	for _, s := range list {
		n, b = n+s.Rows, b+s.Bytes
	}
	for i := range list {
		list[i].Rows, list[i].Bytes = list[i].Rows/max(1, n), list[i].Bytes/max(1, b)
	}
	return list, err
}

// sampleRows is about how many rows a sample has.
const sampleRows = 512

// counts counts the rows of tables, of a few in each statement.
func (tx *Tx) counts(ctx context.Context, names []string) (map[string]int64, error) {
	out := map[string]int64{}
	for batch := range slices.Chunk(names, 2) {
		parts := make([]string, len(batch))
		for i, name := range batch {
			parts[i] = fmt.Sprintf(`select %d, count(*) from "%s"`, i, name)
		}
		rows, err := tx.Query(ctx, strings.Join(parts, " union all "))
		_, err = ScanAll(rows, err, "count rows", func(row Scanner) (struct{}, error) {
			var i int
			var n int64
			err := row.Scan(&i, &n)
			out[batch[i]] = n
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (postgres) storage(ctx context.Context, tx *Tx) (s Storage, err error) {
	if err := tx.QueryRow(ctx, `select pg_database_size(current_database())`).Scan(&s.Bytes); err != nil {
		return s, fmt.Errorf("measure database: %w", err)
	}
	type relation struct {
		TableSize
		tuples, pages, bytes, page int64
	}
	rows, err := tx.Query(ctx, `select c.relname::text, c.reltuples::bigint, c.relpages::bigint, pg_relation_size(c.oid), pg_total_relation_size(c.oid), current_setting('block_size')::bigint
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = current_schema() and c.relkind = 'r'`)
	list, err := ScanAll(rows, err, "measure tables", func(row Scanner) (r relation, err error) {
		return r, row.Scan(&r.Name, &r.tuples, &r.pages, &r.bytes, &r.Bytes, &r.page)
	})
	if err != nil {
		return s, err
	}
	var small []string
	for _, r := range list {
		if r.bytes <= countedTable || r.tuples < 0 || r.pages == 0 {
			small = append(small, r.Name)
		}
	}
	counted, err := tx.counts(ctx, small)
	for _, r := range list {
		if r.Rows, r.Exact = counted[r.Name]; !r.Exact { // as dense as when it was last analyzed
			r.Rows = int64(float64(r.tuples) / float64(r.pages) * float64(r.bytes/r.page))
		}
		s.Tables = append(s.Tables, r.TableSize)
	}
	return s, err
}

func (postgres) sample(table string, size TableSize) string {
	percent := min(100, 100*float64(sampleRows)/float64(max(1, size.Rows)))
	return fmt.Sprintf(`"%s" t tablesample system (%f)`, table, max(percent, 0.0005))
}

func (sqliteDB) storage(ctx context.Context, tx *Tx) (s Storage, err error) {
	var pages, free, page int64
	err = tx.QueryRow(ctx, `select (select page_count from pragma_page_count()), (select freelist_count from pragma_freelist_count()), (select page_size from pragma_page_size())`).Scan(&pages, &free, &page)
	if err != nil {
		return s, fmt.Errorf("measure database: %w", err)
	}
	s.Bytes, s.Free = pages*page, free*page
	rows, err := tx.Query(ctx, `select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`)
	names, err := ScanAll(rows, err, "list tables", ScanText)
	if err != nil {
		return s, err
	}
	if s.Bytes > countedFile {
		return s, tx.estimateTables(ctx, names, &s)
	}
	counted, err := tx.counts(ctx, names)
	if err != nil {
		return s, err
	}
	bytes := map[string]int64{}
	rows, err = tx.Query(ctx, `select m.tbl_name, cast(sum(d.pgsize) as bigint) from dbstat d join sqlite_master m on m.name = d.name where d.aggregate = true group by 1`)
	_, err = ScanAll(rows, err, "measure tables", func(row Scanner) (struct{}, error) {
		var name string
		var n int64
		err := row.Scan(&name, &n)
		bytes[name] = n
		return struct{}{}, err
	})
	for _, name := range names {
		s.Tables = append(s.Tables, TableSize{Name: name, Rows: counted[name], Bytes: bytes[name], Exact: true})
	}
	return s, err
}

// probes is at how many places a table is looked at, and probeRows how many rows
// at each: enough to know to about a fifth how many it has. What rows are like is
// seen by fewer, because it takes much longer to measure them.
const (
	probes    = 64
	probeRows = 16
	wideRows  = 3
	fewIDs    = 1000 // up to this many it is counted
)

// estimateTables says about how many rows tables of a large file have and divides
// its pages among them, by samples.
func (tx *Tx) estimateTables(ctx context.Context, names []string, s *Storage) error {
	var all float64
	weights := make([]float64, len(names))
	for i, name := range names {
		t := TableSize{Name: name}
		wide, err := tx.widthOf(ctx, name)
		if err != nil {
			return err
		}
		if t.Rows, weights[i], t.Exact, err = tx.estimate(ctx, name, wide); err != nil {
			return err
		}
		all += weights[i]
		s.Tables = append(s.Tables, t)
	}
	for i, w := range weights {
		s.Tables[i].Bytes = int64(w / max(1, all) * float64(s.Bytes-s.Free))
	}
	return nil
}

// width is an expression of the bytes of a row with its entries in indexes, over the
// table as t.
type width struct {
	text string
	key  string // what rows are walked through by
}

func (tx *Tx) widthOf(ctx context.Context, table string) (w width, err error) {
	rows, err := tx.Query(ctx, `select name from pragma_table_info($1)
		union all select i.name from pragma_index_list($1) l join pragma_index_info(l.name) i where i.name is not null`, table)
	columns, err := ScanAll(rows, err, "read columns", ScanText)
	parts := []string{"24"}
	for _, c := range columns { // a number takes about four bytes
		parts = append(parts, fmt.Sprintf(`coalesce(case when typeof(t."%s") = 'integer' then 4 else length(t."%[1]s") + 2 end, 1)`, c))
	}
	w.text, w.key = strings.Join(parts, " + "), "rowid"
	if table == "event_tombs" { // has no other
		w.key = "a"
	}
	return w, err
}

// estimate looks at a table at random places: how dense its ids are there says how
// many there are.
func (tx *Tx) estimate(ctx context.Context, table string, w width) (n int64, weight float64, exact bool, err error) {
	var least, most *int64
	if err := tx.QueryRow(ctx, fmt.Sprintf(`select (select min(%s) from "%s"), (select max(%[1]s) from "%[2]s")`, w.key, table)).Scan(&least, &most); err != nil || least == nil {
		return 0, 0, err == nil, err
	}
	first, span := float64(*least), float64(*most)-float64(*least)+1
	if span <= fewIDs {
		var bytes int64
		err := tx.QueryRow(ctx, fmt.Sprintf(`select count(*), cast(coalesce(sum(%s), 0) as bigint) from "%s" t`, w.text, table)).Scan(&n, &bytes)
		return n, float64(bytes), true, err
	}
	places := make([]string, probes)
	for i := range places {
		places[i] = strconv.FormatInt(int64(math.Min(first+rand.Float64()*span, math.MaxInt64/2*1.9999)), 10) //nolint:gosec // a sample
	}
	list := "[" + strings.Join(places, ",") + "]"
	// Where the last of the rows behind a place is, or how many there are if it is the
	// end of the table: one search in the tree for each, and no row is read.
	rows, err := tx.Query(ctx, fmt.Sprintf(`select p.value, coalesce(cast((select x.%[1]s from "%[2]s" x where x.%[1]s >= p.value order by 1 limit 1 offset $2 - 1) as text),
		'of ' || (select count(*) from (select 1 from "%[2]s" x where x.%[1]s >= p.value limit $2))) from json_each($1) p`, w.key, table), list, probeRows)
	var density float64
	_, err = ScanAll(rows, err, "sample "+table, func(row Scanner) (struct{}, error) {
		var at int64
		var found string
		if err := row.Scan(&at, &found); err != nil {
			return struct{}{}, err
		}
		n, last := probeRows, *most
		if rest, ended := strings.CutPrefix(found, "of "); ended {
			n, err = strconv.Atoi(rest)
		} else {
			last, err = strconv.ParseInt(found, 10, 64)
		}
		density += float64(n) / (float64(last) - float64(at) + 1)
		return struct{}{}, err
	})
	if err != nil {
		return 0, 0, false, err
	}
	var bytes, seen int64
	err = tx.QueryRow(ctx, fmt.Sprintf(`select cast(coalesce(sum(%[3]s), 0) as bigint), count(*) from json_each($1) p cross join "%[2]s" t
		where t.%[1]s in (select x.%[1]s from "%[2]s" x where x.%[1]s >= p.value order by 1 limit $2)`, w.key, table, w.text), list, wideRows).Scan(&bytes, &seen)
	all := span * min(1, density/probes)
	return int64(all), all * float64(bytes) / float64(max(1, seen)), false, err
}

// sample is every row of a few stretches of the table.
func (sqliteDB) sample(table string, _ TableSize) string {
	const stretch = 64 // rows
	places := make([]string, sampleRows/stretch)
	for i := range places {
		places[i] = fmt.Sprintf("%.6f", rand.Float64()) //nolint:gosec // a sample
	}
	return fmt.Sprintf(`(select a.first, (select x.rowid from "%[2]s" x where x.rowid >= a.first order by 1 limit 1 offset %[3]d) as last
			from (select b.least + cast((b.most - b.least) * p.value as integer) as first from json_each('[%[1]s]') p
				cross join (select (select min(rowid) from "%[2]s") as least, (select max(rowid) from "%[2]s") as most) b) a) s
		cross join "%[2]s" t on t.rowid >= s.first and t.rowid < coalesce(s.last, 9223372036854775807)`, strings.Join(places, ","), table, stretch)
}
