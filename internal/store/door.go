package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/store/door"
)

// MaxAhead is how far ahead a job can be: ten years, leap days included.
const MaxAhead = (365*10 + 3) * 24 * time.Hour

// ServeTasks notes which tasks users may enqueue, and how large a payload may be,
// for those who enqueue without asking a node. What another node noted stays:
// it may run another version.
func (tx *Tx) ServeTasks(ctx context.Context, names []string, maxPayload int64) error {
	for _, name := range names {
		_, err := tx.Exec(ctx, `insert into served_tasks as t (name, max_payload, updated_at) values ($1, $2, $3)
			on conflict (name) do update set max_payload = excluded.max_payload, updated_at = excluded.updated_at
			where t.max_payload <> excluded.max_payload`, name, maxPayload, Millis(tx.Now))
		if err != nil {
			return fmt.Errorf("note task %s: %w", name, err)
		}
	}
	return nil
}

// doorFacts is what decides how far the door for applications can be built.
type doorFacts struct {
	home    string // the schema of our tables, quoted where it must be
	schema  bool   // there is a schema pawl
	mark    string // of what is in place; empty if there is nothing
	create  bool   // we may make the schema, or things in it
	role    bool   // there is one
	granted bool   // and it may enter
	roles   bool   // we may make it
}

func (tx *Tx) doorFacts(ctx context.Context) (f doorFacts, err error) {
	err = tx.QueryRow(ctx, `select quote_ident(current_schema()), n.oid is not null, coalesce(obj_description(n.oid, 'pg_namespace'), ''),
			case when n.oid is null then has_database_privilege(current_database(), 'CREATE') else has_schema_privilege(n.oid, 'CREATE') end,
			r.oid is not null, coalesce(has_schema_privilege(r.oid, n.oid, 'USAGE'), false),
			(select rolsuper or rolcreaterole from pg_roles where rolname = current_user)
		from (select 1) one left join pg_namespace n on n.nspname = $1 left join pg_roles r on r.rolname = $2`, door.Schema, door.Role).
		Scan(&f.home, &f.schema, &f.mark, &f.create, &f.role, &f.granted, &f.roles)
	if err != nil {
		return f, fmt.Errorf("look at the door for applications: %w", err)
	}
	return f, nil
}

// buildDoor puts the door for applications in place, or brings it up to date. It
// needs rights that Pawl otherwise does without: where they are missing, all
// works but the door, and the log says what somebody else has to run.
func (postgres) buildDoor(ctx context.Context, tx *Tx) error {
	f, err := tx.doorFacts(ctx)
	if err != nil {
		return err
	}
	statements, mark := door.SQL(f.home, idEpoch, MaxAhead)
	if f.mark == mark && f.granted {
		return nil
	}
	if taken, err := tx.doorTaken(ctx, f); err != nil || taken {
		return err
	}
	if f.mark != mark {
		if !f.create {
			tx.db.log.Warn("applications cannot enqueue by SQL: this database user may not create the schema pawl or anything in it", "run", "create schema pawl authorization USER")
			return nil
		}
		if !f.schema {
			statements = append([]string{"create schema pawl"}, statements...)
		}
		if err := tx.execAll(ctx, "build the door for applications", append(statements, "comment on schema pawl is '"+strings.ReplaceAll(mark, "'", "''")+"'")); err != nil {
			return err
		}
	}
	switch {
	case f.role:
		return tx.execAll(ctx, "let applications in", door.Grants())
	case f.roles:
		return tx.execAll(ctx, "let applications in", append([]string{door.CreateRole}, door.Grants()...))
	}
	tx.db.log.Warn("applications cannot enqueue by SQL yet: this database user may not create the role pawl_app. The next start lets the role in", "run", "create role pawl_app nologin")
	return nil
}

// doorTaken reports whether another installation in this database, in a schema of
// its own, has the door: there is one.
func (tx *Tx) doorTaken(ctx context.Context, f doorFacts) (taken bool, err error) {
	other := door.HomeOf(f.mark)
	if other == "" || other == f.home {
		return false, nil
	}
	if err := tx.QueryRow(ctx, `select to_regclass($1) is not null`, other+".served_tasks").Scan(&taken); err != nil {
		return false, fmt.Errorf("look at the door for applications: %w", err)
	}
	if taken {
		tx.db.log.Warn("applications cannot enqueue to this Pawl by SQL: the functions of the schema pawl are for another one in this database", "its schema", other, "own", f.home)
	}
	return taken, nil
}

func (tx *Tx) execAll(ctx context.Context, op string, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %s: %w", op, firstLine(sql), err)
		}
	}
	return nil
}

func (postgres) prepareDoor() { door.Prepare() }

func (sqliteDB) prepareDoor() {}

// buildDoor does nothing: an application beside a SQLite file uses HTTP.
func (sqliteDB) buildDoor(context.Context, *Tx) error { return nil }
