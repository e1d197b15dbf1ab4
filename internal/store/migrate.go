package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

type migration struct {
	version  int
	name     string
	sql      string
	breaking bool
}

// firstServed is the first schema whose programs may go on while a later one is
// brought in: what follows it only adds, or says "-- breaking".
const firstServed = 15

// breakingMark is the line of a migration that programs of before cannot stand.
const breakingMark = "-- breaking"

// Schema is the range of schemas that this program serves: it brings a database
// up to max, and programs whose own max is at least min may run beside it.
func Schema() (min, max int) {
	all, err := migrations()
	if err != nil { // a test says that there is none
		return 0, 0
	}
	return oldestServed(all), len(all)
}

// oldestServed is the oldest schema whose programs can serve a database that has
// these migrations.
func oldestServed(all []migration) int {
	for _, m := range slices.Backward(all) {
		if m.breaking {
			return m.version
		}
	}
	return 0
}

// migrations lists the embedded migrations in order; a gap is a programming
// error.
func migrations() ([]migration, error) {
	all, err := embedded()
	return slices.Clone(all), err
}

// embedded reads them once: every node that joins says which it knows.
var embedded = sync.OnceValues(readMigrations) //nolint:gochecknoglobals // made once

func readMigrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]migration, 0, len(names))
	for i, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		number, title, _ := strings.Cut(base, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %04d", name, i+1)
		}
		out = append(out, migration{version, title, string(text), version <= firstServed || isBreaking(string(text))})
	}
	return out, nil
}

// isBreaking reports whether a migration has the mark, as a line by itself.
func isBreaking(sql string) bool {
	for line := range strings.Lines(sql) {
		if strings.TrimSpace(line) == breakingMark {
			return true
		}
	}
	return false
}

// migrate brings the schema up to date, all in one transaction. A schema newer
// than this program is left as it is; one that says that this program cannot
// serve it is refused.
func (db *DB) migrate(ctx context.Context, upTo int) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	newest := upTo == 0 || upTo == len(all)
	if upTo > 0 {
		all = all[:upTo]
	}
	if err := db.refuseUnderNodes(ctx, all, nodesWatched); err != nil {
		return err
	}
	bound := db.maxTx
	db.maxTx = 0 // a change of a large table takes its time; nobody else has this DB yet
	defer func() { db.maxTx = bound }()
	db.dialect.prepareDoor() // before a transaction waits for it
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := db.dialect.lockMigrations(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `create table if not exists schema_migrations (version bigint primary key, name text not null, applied_at bigint not null)`); err != nil {
			return err
		}
		have, oldest, err := tx.schema(ctx, len(all))
		if err != nil {
			return err
		}
		db.applied = Migrated{Have: have, Want: len(all), Oldest: oldest}
		if have > len(all) {
			if err := db.applied.refuse(); err != nil {
				return err
			}
			db.log.Info("the database has a newer schema, which this program can serve", "schema", have, "own", len(all), "oldest", oldest)
			return tx.ensureBuckets(ctx)
		}
		for _, m := range all[have:] {
			if err := tx.apply(ctx, m); err != nil {
				return fmt.Errorf("apply migration %04d_%s: %w", m.version, m.name, err)
			}
			db.applied.Migrations = append(db.applied.Migrations, m.describe(db.dialect))
		}
		if have < len(all) && newest { // before it there was no such column
			if _, err := tx.Exec(ctx, `update schema_migrations set oldest = $2 where version = $1`, len(all), oldestServed(all)); err != nil {
				return err
			}
		}
		if err := tx.ensureBuckets(ctx); err != nil || !newest {
			return err
		}
		return db.dialect.buildDoor(ctx, tx)
	})
}

// schema reads which schema a database has, and if it is newer than the one of
// this program, the oldest whose programs can serve it; zero is not known.
func (tx *Tx) schema(ctx context.Context, own int) (have, oldest int, err error) {
	if err := tx.QueryRow(ctx, `select coalesce(max(version), 0) from schema_migrations`).Scan(&have); err != nil || have <= own {
		return have, 0, err
	}
	err = tx.QueryRow(ctx, `select coalesce(oldest, 0) from schema_migrations where version = $1`, have).Scan(&oldest)
	return have, oldest, err
}

func (tx *Tx) apply(ctx context.Context, m migration) error {
	for _, stmt := range m.statements(tx.db.dialect) {
		if _, err := tx.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", firstLine(stmt), err)
		}
	}
	_, err := tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at) values ($1, $2, $3)`, m.version, m.name, Millis(tx.Now))
	return err
}

// statements are those of a migration, as a database is given them.
func (m migration) statements(d dialect) []string {
	var out []string
	for stmt := range strings.SplitSeq(stripComments(render(d, m.sql)), ";") {
		if stmt = strings.TrimSpace(stmt); stmt != "" {
			out = append(out, stmt)
		}
	}
	return out
}

// ensureBuckets adds the bucket rows; their number belongs to the database,
// not to the schema.
func (tx *Tx) ensureBuckets(ctx context.Context) error {
	var have int
	want := tx.db.dialect.buckets()
	if err := tx.QueryRow(ctx, `select count(*) from buckets`).Scan(&have); err != nil || have >= want {
		return err
	}
	for b := range want {
		if _, err := tx.Exec(ctx, `insert into buckets (id) values ($1) on conflict do nothing`, b); err != nil {
			return err
		}
	}
	return nil
}

// stripComments removes "--" comments, which may hold semicolons. Migrations
// have no string that contains two dashes.
func stripComments(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		code, _, found := strings.Cut(line, "--")
		b.WriteString(code)
		if found {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
