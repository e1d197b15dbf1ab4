package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Lanes that were there before they had rows get one: those that are deleted do
// not, and what people were told is kept.
func TestEarlierLanesGetRows(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		all, err := migrations()
		if err != nil {
			t.Fatal(err)
		}
		exec := func(ctx context.Context, tx *Tx, list ...string) error {
			for _, sql := range list {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
			return nil
		}
		run := func(kind, lane, status string) string {
			return fmt.Sprintf(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at)
				values ('%[1]s-%[2]s', '%[1]s', '%[2]s', 'h', 'consumer', 't', 'preparing', '%[3]s', 1, 1, 1)`, kind, lane, status)
		}
		flow := func(name, lane, desired, deleted string) string {
			return fmt.Sprintf(`insert into workflows (id, name, lane, desired, version, created_at, updated_at, deployed_at, deleted_at) values ('%[2]s', '%[1]s', '%[2]s', '%[3]s', 'v', 1, 1, 1, %[4]s)`, name, lane, desired, deleted)
		}
		source := func(name, paused string) string {
			return fmt.Sprintf(`insert into source_definitions (id, name, definition, version, number, status, paused_at, created_at, updated_at) values ('%[1]s', '%[1]s', '{}', 'v', 1, 'active', %[2]s, 1, 1)`, name, paused)
		}
		schedule := func(id, enabled, issue string) string {
			return fmt.Sprintf(`insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, enabled, issue, labels, created_at, updated_at)
				values ('%[1]s', '%[1]s', 'u', 'g', 'x', '{}', '* * * * *', 'UTC', 'Queue', %[2]s, %[3]s, '{}', 1, 1)`, id, enabled, issue)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			err := exec(ctx, tx, `drop table lanes`, `delete from schema_migrations where version >= 15`,
				`create table attention (kind text not null, lane text not null, cause text not null, issue text not null, text text not null, since bigint not null, primary key (kind, lane))`,
				flow("a", "a", "active", "1"), flow("a", "a#2", "active", "null"), flow("b", "b", "paused", "null"), flow("c", "c", "active", "null"), flow("d", "d", "active", "null"),
				run("workflow", "c", "paused:transient"), `insert into attention values ('workflow', 'd', 'run x', 'sign_in', 'Connect it.', 7)`,
				source("s", "null"), source("t", "5"),
				`insert into users (id, name, role, created_at) values ('u', 'u', 'operator', 1)`, `insert into billing_accounts (id, owner_id, name, created_at) values ('b', 'u', 'b', 1)`,
				`insert into execution_grants (id, user_id, billing_account_id, scopes, created_at) values ('g', 'u', 'b', '[]', 1)`,
				schedule("on", "1", "null"), schedule("off", "0", "null"), schedule("capped", "0", "'The cap is reached.'"))
			if err != nil {
				return err
			}
			return tx.apply(ctx, all[14])
		})
		var got []string
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			rows, err := tx.Query(ctx, `select kind || ' ' || lane || ' ' || name || ' ' || owner || ': ' || state || ' ' || cause || ' ' || coalesce(since, 0) from lanes order by 1`)
			got, err = ScanAll(rows, err, "read", func(row Scanner) (s string, err error) { return s, row.Scan(&s) })
			return err
		})
		want := []string{
			"schedule capped capped u: Needs attention  0", "schedule off off u: Stopped  0", "schedule on on u: Idle  0", "source s s : Idle  0", "source t t : Stopped  0",
			"workflow a#2 a : Idle  0", "workflow b b : Stopped  0", "workflow c c : Running  0", "workflow d d : Needs attention run x 7",
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the rows are\n%q, want\n%q", got, want)
		}
	})
}
