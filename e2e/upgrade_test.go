package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// The rows of an installation with earlier schemas are kept in testdata/schema,
// a file for each schema: NNNN.sql. A version that brings a new schema keeps the
// one before it: TestTheSchemaBeforeIsKept says how.
var keepSchema = flag.Bool("keep-schema", false, "write the rows of an installation with the newest schema to testdata/schema")

// Where the servers of other systems are in the kept rows.
const (
	keptStall    = "http://stall.invalid"
	keptUpstream = "http://upstream.invalid"
)

// serveOld is a server that knows what the kept rows speak of.
func serveOld(t *testing.T, database string, m *stall) *server {
	t.Helper()
	addr := freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	s.args = []string{"serve", "--addr", addr, "--database", database, "--allow-private", "127.0.0.1/32", "--connection-dir", "connections"}
	if err := os.MkdirAll(filepath.Join(s.dir, "connections"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"book.yaml": book, "agents.yaml": m.executor()} {
		if err := os.WriteFile(filepath.Join(s.dir, "connections", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.url, s.log)
		}
	})
	return s
}

// A database of every schema that was kept is brought to the newest, and what it
// holds goes on: a job and events that waited, and a slot, a fetch and a run that
// are asked for.
func TestEarlierSchemasAreUpgraded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "schema", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept schemas: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		number, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			pgtest.BothEmpty(t, func(t *testing.T, url string) {
				m, u := newStall(t), newUpstream(t)
				fill(t, url, file, number, m.URL, u.URL)
				upgrade(t, url, number, m, u)
			})
		})
	}
}

// From now on every schema that was in use is upgraded by a test. Of several that come
// together only the last is.
func TestTheSchemaBeforeIsKept(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "schema", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept schemas: %v", err)
	}
	last := strings.TrimSuffix(filepath.Base(slices.Max(files)), ".sql")
	number, err := strconv.Atoi(last)
	if err != nil {
		t.Fatal(err)
	}
	if _, newest := store.Schema(); number < newest-1 || number > newest {
		t.Errorf("the newest schema is %04d, and the last one that is kept is %s. Keep the rows of an installation with the schema before the new migration:\n"+
			"    git stash (or check out the commit before the migration), then go test ./e2e -run '^TestKeepSchema$' -keep-schema\n"+
			"and add the file e2e/testdata/schema/NNNN.sql that it writes. If several migrations land together, run it with the last of them.", newest, last)
	}
}

func upgrade(t *testing.T, url string, number int, m *stall, u *upstream) {
	s := serveOld(t, url, m)
	_, newest := store.Schema()
	if plan := s.migration("--dry-run"); plan.From != number || plan.To != newest || len(plan.Migrations) != newest-number {
		t.Errorf("the plan is %+v", plan)
	}
	s.start()
	if plan := s.migration("--dry-run"); plan.From != newest || plan.To != newest || len(plan.Migrations) != 0 {
		t.Errorf("after the start the plan is %+v", plan)
	}
	s.goesOn(m, u)
}

// goesOn uses everything that the kept rows hold.
func (s *server) goesOn(m *stall, u *upstream) {
	s.t.Helper()
	s.eventually("the job that waited has run", func() bool { return u.total() == 1 })
	s.must("POST", "/api/v1/workflows/clerk/resume", nil, nil)
	s.eventually("the events that waited are consumed", func() bool { return slices.Equal(s.lines(), []string{"o-2", "o-3"}) })
	if !s.order("o-4") || !s.order("o-1") {
		s.t.Fatal("events are not taken")
	}
	s.eventually("a new event is consumed, and one that is known is not", func() bool { return slices.Equal(s.lines(), []string{"o-2", "o-3", "o-4"}) })

	asked := m.asked.Load()
	s.must("POST", "/api/v1/sources/prices/run", nil, nil)
	s.eventually("the source fetches", func() bool { return m.asked.Load() > asked && len(s.rows()) > 0 })

	var schedules struct {
		Items []struct{ ID string }
	}
	s.must("GET", "/api/v1/schedules", nil, &schedules)
	if len(schedules.Items) != 1 {
		s.t.Fatalf("%d schedules", len(schedules.Items))
	}
	id := schedules.Items[0].ID
	fired := func() (n int) {
		for _, slot := range s.slots(id) {
			if slot.Status == "success" {
				n++
			}
		}
		return n
	}
	before := fired()
	s.must("POST", "/api/v1/schedules/"+id+"/run", nil, nil)
	s.eventually("a slot is done", func() bool { return m.poems.Load() == 1 && fired() == before+1 })
	for _, path := range []string{"runs", "lanes", "timeline", "workflows/clerk/events", "workflows/clerk/inputs", "sources/prices", "jobs"} {
		s.must("GET", "/api/v1/"+path, nil, nil)
	}
}

// A schema that is newer, because another node was upgraded, is served if it says
// that programs of this one can: with columns in every table that they do not know.
func TestANewerSchemaIsServed(t *testing.T) {
	t.Parallel()
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		m, u := newStall(t), newUpstream(t)
		fill(t, url, filepath.Join("testdata", "schema", "0015.sql"), 15, m.URL, u.URL)
		_, newest := store.Schema()
		advance(t, url, newest)
		s := serveOld(t, url, m)
		if plan := s.migration(); plan.From != newest+1 || plan.To != newest+1 || len(plan.Migrations) != 0 {
			t.Errorf("the plan is %+v", plan)
		}
		s.start()
		s.goesOn(m, u)
		s.stop()

		advance(t, url, newest+1) // that is too new
		for _, args := range [][]string{{"migrate"}, {"migrate", "--dry-run"}, {"serve", "--addr", "127.0.0.1:0"}} {
			if out, code := s.program(append(args, "--database", url)...); code != pawl.ExitFailed || !strings.Contains(out, fmt.Sprintf("the database has schema version %d", newest+2)) {
				t.Errorf("%v ended with %d:\n%s", args, code, out)
			}
		}
	})
}

// advance does to a database what a later version does that only adds: a column
// for each table, and a migration that programs of that schema can serve.
func advance(t *testing.T, url string, oldest int) {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		sql := `select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
		if db.Shared() {
			sql = `select tablename::text from pg_tables where schemaname = 'public'`
		}
		rows, err := tx.Query(ctx, sql+` order by 1`)
		tables, err := store.ScanAll(rows, err, "read", func(row store.Scanner) (s string, err error) { return s, row.Scan(&s) })
		if err != nil {
			return err
		}
		var have int
		if err := tx.QueryRow(ctx, `select max(version) from schema_migrations`).Scan(&have); err != nil {
			return err
		}
		for _, table := range tables {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`alter table "%s" add column later_%d text`, table, have)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at, oldest) values ($1, 'later', 0, $2)`, have+1, oldest)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Nodes are replaced one by one while they work, and the schema is extended in
// between: every job runs once, and somebody takes jobs all the time.
func TestNodesAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	u := newUpstream(t)
	a, b := serve(t, url), serve(t, url)
	var ids []string
	load := func(to *server) {
		for range 50 {
			ids = append(ids, to.enqueue(with(post(u.URL), "lane", fmt.Sprint("lane-", len(ids)%7))).ID)
		}
	}
	_, newest := store.Schema()
	load(a)
	a.stop()
	load(b)
	advance(t, url, newest)
	load(b)
	a.start()
	b.stop()
	load(a)
	b.start()
	load(b)
	b.eventually("all jobs are done", func() bool { return u.total() >= len(ids) })
	for _, id := range ids {
		b.eventually("the job is done", func() bool { return b.job(id).State == "succeeded" })
		if n := u.got(id); n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
	var nodes struct {
		Items []struct {
			Name   string
			Shares int
			Schema struct{ Min, Max int }
		}
	}
	b.eventually("the nodes share the work", func() bool {
		b.must("GET", "/api/v1/nodes", nil, &nodes)
		return len(nodes.Items) == 2 && nodes.Items[0].Shares == 32 && nodes.Items[1].Shares == 32
	})
	for _, n := range nodes.Items {
		if n.Schema.Max != newest || n.Schema.Min < 15 || n.Schema.Min > n.Schema.Max {
			t.Errorf("a node serves %+v", n)
		}
	}
}

type migrationPlan struct {
	From, To   int
	DryRun     bool
	Migrations []struct {
		Version    int
		Name       string
		Breaking   bool
		Statements []string
	}
}

// migration runs pawl migrate.
func (s *server) migration(args ...string) (plan migrationPlan) {
	s.t.Helper()
	database := s.args[slices.Index(s.args, "--database")+1]
	out, code := s.program(append([]string{"migrate", "-o", "json", "--database", database}, args...)...)
	if err := json.Unmarshal([]byte(out), &plan); code != 0 || err != nil {
		s.t.Fatalf("migrate ended with %d, %v:\n%s", code, err, out)
	}
	return plan
}

// fill makes a database of an earlier schema with the rows that were kept.
func fill(t *testing.T, url, file string, number int, stall, upstream string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.NewReplacer(keptStall, stall, keptUpstream, upstream).Replace(string(text))
	db, err := store.Open(t.Context(), url, store.Options{UpTo: number})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for stmt := range strings.SplitSeq(rows, endOfRow) {
			if stmt = strings.TrimSpace(stmt); stmt == "" {
				continue
			}
			if _, err := tx.Exec(ctx, stmt); err != nil {
				return fmt.Errorf("%.100s: %w", stmt, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// endOfRow ends a statement of the kept rows.
const endOfRow = "\n;\n"

// TestKeepSchema writes the rows of an installation with the newest schema, if it
// is asked to: each kind has run, and a job and events wait.
func TestKeepSchema(t *testing.T) {
	if !*keepSchema {
		return
	}
	m, u := newStall(t), newUpstream(t)
	s := serveOld(t, "sqlite:.pawl/pawl.db", m)
	s.start()
	s.deploy(clerk)
	definition := m.source()
	definition["schedule"] = "interval:24h"
	s.must("PUT", "/api/v1/sources/prices", definition, nil)
	s.eventually("a source has fetched", func() bool { return len(s.rows()) == 1 })
	id := s.newSchedule(map[string]any{"name": "poet", "graphId": "agents:poet", "input": map[string]any{}, "cron": "0 9 1 1 *", "timezone": "UTC"})
	s.must("POST", "/api/v1/schedules/"+id+"/run", nil, nil)
	s.eventually("a slot is done", func() bool { return m.poems.Load() == 1 })
	s.order("o-1")
	s.eventually("an event is consumed", func() bool { return len(s.lines()) == 1 && s.lane().Status == "Idle" })
	s.must("POST", "/api/v1/workflows/clerk/pause", nil, nil)
	s.order("o-2")
	s.order("o-3")
	s.enqueue(with(post(u.URL+"/later"), "runAt", time.Now().Add(3*time.Second)))
	s.stop()

	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(s.dir, ".pawl", "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	var b strings.Builder
	err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, table := range keptTables(ctx, t, tx) {
			if err := writeRows(ctx, tx, &b, table); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, newest := store.Schema()
	text := strings.NewReplacer(m.URL, keptStall, u.URL, keptUpstream).Replace(b.String())
	if err := os.WriteFile(filepath.Join("testdata", "schema", fmt.Sprintf("%04d.sql", newest)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keptTables are the tables whose rows are kept, those that others refer to
// first. Tokens are not: no secret is kept, not even its hash.
func keptTables(ctx context.Context, t *testing.T, tx *store.Tx) (sorted []string) {
	texts := func(sql string) []string {
		rows, err := tx.Query(ctx, sql)
		list, err := store.ScanAll(rows, err, "read", func(row store.Scanner) (s string, err error) { return s, row.Scan(&s) })
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	left := texts(`select name from sqlite_master where type = 'table' and name not like 'sqlite_%'
		and name not in ('schema_migrations', 'buckets', 'nodes', 'write_probe', 'worker_clock', 'tokens', 'idempotency_keys', 'prices') order by name`)
	for len(left) > 0 {
		for _, table := range left {
			needs := texts(`select "table" from pragma_foreign_key_list('` + table + `')`)
			if !slices.ContainsFunc(needs, func(n string) bool { return n != table && slices.Contains(left, n) }) {
				sorted = append(sorted, table)
				left = slices.DeleteFunc(left, func(x string) bool { return x == table })
				break
			}
		}
	}
	return sorted
}

func writeRows(ctx context.Context, tx *store.Tx, b *strings.Builder, table string) error {
	var names []string
	columns, err := tx.Query(ctx, `select name from pragma_table_info('`+table+`')`)
	if names, err = store.ScanAll(columns, err, "read", func(row store.Scanner) (s string, err error) { return s, row.Scan(&s) }); err != nil {
		return err
	}
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, `quote("`+n+`")`)
	}
	rows, err := tx.Query(ctx, `select `+strings.Join(quoted, ` || ', ' || `)+` from "`+table+`"`)
	list, err := store.ScanAll(rows, err, "read", func(row store.Scanner) (s string, err error) { return s, row.Scan(&s) })
	for _, values := range list {
		fmt.Fprintf(b, "insert into %s (%s) values (%s)%s", table, strings.Join(names, ", "), values, endOfRow)
	}
	return err
}
