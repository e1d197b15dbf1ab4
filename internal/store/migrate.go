package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

type migration struct {
	version int
	name    string
	sql     string
}

// migrations lists the embedded migrations in order; a gap is a programming
// error.
func migrations() ([]migration, error) {
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
		out = append(out, migration{version, title, string(text)})
	}
	return out, nil
}

// migrate brings the schema up to date, all in one transaction, and refuses a
// schema newer than this program.
func (db *DB) migrate(ctx context.Context) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	bound := db.maxTx
	db.maxTx = 0 // a change of a large table takes its time; nobody else has this DB yet
	defer func() { db.maxTx = bound }()
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := db.dialect.lockMigrations(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `create table if not exists schema_migrations (version bigint primary key, name text not null, applied_at bigint not null)`); err != nil {
			return err
		}
		var have int
		if err := tx.QueryRow(ctx, `select coalesce(max(version), 0) from schema_migrations`).Scan(&have); err != nil {
			return err
		}
		if have > len(all) {
			return &pawl.Error{
				Code: pawl.CodeSchema,
				Msg:  fmt.Sprintf("the database has schema version %d, but this pawl knows only %d", have, len(all)),
				Hint: "Use the newer pawl that wrote it. Nothing was changed.",
			}
		}
		for _, m := range all[have:] {
			if err := tx.apply(ctx, m); err != nil {
				return fmt.Errorf("apply migration %04d_%s: %w", m.version, m.name, err)
			}
		}
		return tx.ensureBuckets(ctx)
	})
}

func (tx *Tx) apply(ctx context.Context, m migration) error {
	for stmt := range strings.SplitSeq(stripComments(render(tx.db.dialect, m.sql)), ";") {
		if strings.TrimSpace(stmt) == "" {
			continue
		}
		if _, err := tx.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", firstLine(stmt), err)
		}
	}
	_, err := tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at) values ($1, $2, $3)`, m.version, m.name, Millis(tx.Now))
	return err
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
