package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Migration is a change of the schema, as it is told to people.
type Migration struct {
	Version    int      `json:"version"`
	Name       string   `json:"name"`
	Breaking   bool     `json:"breaking"`
	Statements []string `json:"statements"`
}

// Migrated is what brings, or brought, a database to the schema of this program.
type Migrated struct {
	Database   string // without credentials
	Have       int    // the schema that it had; 0 is none
	Want       int    // that of this program
	Oldest     int    // if it is newer than this program: the oldest schema whose programs can serve it; 0 is not known
	Migrations []Migration
}

func (m migration) describe(d dialect) Migration {
	return Migration{m.version, m.name, m.breaking, m.statements(d)}
}

// refuse fails if the database is newer than this program can serve.
func (m *Migrated) refuse() error {
	if m.Have <= m.Want || m.Oldest > 0 && m.Oldest <= m.Want {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeSchema,
		Msg:  fmt.Sprintf("the database has schema version %d, but this pawl knows only %d", m.Have, m.Want),
		Hint: "Use the newer pawl that wrote it. Nothing was changed.",
	}
}

// Migrate brings a database up to date as Open does, and tells what it did.
func Migrate(ctx context.Context, rawURL string, o Options) (Migrated, error) {
	db, err := Open(ctx, rawURL, o)
	if err != nil {
		return Migrated{}, err
	}
	done := db.applied
	done.Database = db.String()
	return done, db.Close()
}

// PlanMigration tells what Open would do to the schema of a database. It changes
// nothing, makes no file, and does not ask whether somebody else has it open.
func PlanMigration(ctx context.Context, rawURL string) (Migrated, error) {
	all, err := migrations()
	if err != nil {
		return Migrated{}, err
	}
	plan := Migrated{Database: redactURL(rawURL), Want: len(all)}
	var in dialect = postgres{}
	if path, ok := SQLitePath(rawURL); ok {
		in = sqliteDB{}
		plan.Database = "sqlite:" + path
		plan.Have, plan.Oldest, err = schemaOfFile(ctx, path, len(all))
	} else {
		plan.Have, plan.Oldest, err = schemaOfServer(ctx, rawURL, len(all))
	}
	if err == nil {
		err = plan.refuse()
	}
	if err != nil || plan.Have >= len(all) {
		return plan, err
	}
	for _, m := range all[plan.Have:] {
		plan.Migrations = append(plan.Migrations, m.describe(in))
	}
	return plan, nil
}

// schemaOfFile reads the schema of a SQLite file, whoever has it open.
func schemaOfFile(ctx context.Context, path string, own int) (have, oldest int, err error) {
	if path == "" || path == ":memory:" {
		return 0, 0, errNoFile()
	}
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	} else if err != nil || !info.Mode().IsRegular() {
		return 0, 0, &pawl.Error{Code: pawl.CodeInvalid, Op: "read schema", Msg: path + " is not a file that can be read", Err: err}
	}
	db, err := sql.Open("sqlite", liteDSN(path, "query_only(1)"))
	if err != nil {
		return 0, 0, fmt.Errorf("read schema: %w", err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	wrap := func(err error) error {
		return (&DB{dialect: sqliteDB{}, sqliteFile: &lite{}}).wrap(fmt.Errorf("read the schema of %s: %w", path, err))
	}
	tables, err := tablesOf(ctx, db)
	if err != nil {
		return 0, 0, wrap(err)
	}
	if !slices.Contains(tables, "schema_migrations") {
		return 0, 0, nil
	}
	err = db.QueryRowContext(ctx, `select coalesce(max(version), 0) from schema_migrations`).Scan(&have)
	if err == nil && have > own {
		err = db.QueryRowContext(ctx, `select coalesce(oldest, 0) from schema_migrations where version = $1`, have).Scan(&oldest)
	}
	if err != nil {
		return 0, 0, wrap(err)
	}
	return have, oldest, nil
}

// schemaOfServer reads the schema of a PostgreSQL database.
func schemaOfServer(ctx context.Context, rawURL string, own int) (have, oldest int, err error) {
	db, err := connect(ctx, rawURL, Options{MaxConns: 1})
	if err != nil {
		return 0, 0, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, haveSchema).Scan(&there); err != nil || !there {
			return err
		}
		have, oldest, err = tx.schema(ctx, own)
		return err
	})
	return have, oldest, err
}

// nodesWatched is how long the heartbeats of nodes are watched, before a schema
// that they cannot stand is brought in. They beat every two seconds.
const nodesWatched = 7 * time.Second

// refuseUnderNodes fails if the schema must be changed in a way that programs of
// before cannot stand, while nodes with such programs are at work. Which are is
// told by their heartbeats, not by clocks.
func (db *DB) refuseUnderNodes(ctx context.Context, all []migration, watch time.Duration) error {
	if db.sqliteFile != nil { // its lock says that there is nobody else
		return nil
	}
	seen, err := db.nodesBelow(ctx, all)
	if err != nil || len(seen) == 0 {
		return err
	}
	db.log.Warn("the new schema cannot be served by nodes of before; looking whether some are at work", "nodes", len(seen), "for", watch)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(watch):
	}
	now, err := db.nodesBelow(ctx, all)
	if err != nil {
		return err
	}
	var alive []string
	for id, n := range now {
		if was, ok := seen[id]; !ok || was.Beat != n.Beat {
			alive = append(alive, n.Name+" at "+n.Addr)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	slices.Sort(alive)
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: "nodes_running", Op: "migrate",
		Msg:  "the new schema cannot be served by nodes that are at work: " + strings.Join(alive, ", "),
		Hint: "Stop them first; pawl migrate --dry-run shows what changes. Nothing was changed.",
	}
}

// nodesBelow reads the nodes that could not serve this program's schema; none if
// that is not brought in, or if it is one that they can serve.
func (db *DB) nodesBelow(ctx context.Context, all []migration) (map[string]Node, error) {
	found := map[string]Node{}
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, haveSchema).Scan(&there); err != nil || !there {
			return err
		}
		have, _, err := tx.schema(ctx, len(all))
		if err != nil || have >= oldestServed(all) {
			return err
		}
		rows, err := tx.Query(ctx, `select id, name, addr, beat from nodes`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n Node
			if err := rows.Scan(&n.ID, &n.Name, &n.Addr, &n.Beat); err != nil {
				return err
			}
			found[n.ID] = n
		}
		return rows.Err()
	})
	return found, err
}
