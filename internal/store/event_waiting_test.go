package store_test

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// What waits is counted as people count it: an input once, however many events come
// from it, and an event that comes from none by itself. Of very many
// only the first are looked at.
func TestWhatWaitsIsCountedUpToABound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "shop", "in", "other")
		exec := func(sql string, args ...any) {
			t.Helper()
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, sql, args...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		events := func(topic, status string, first, last int) {
			t.Helper()
			exec(`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
				with recursive n (i) as (select cast($4 as bigint) union all select i + 1 from n where i < $5)
				select i, $1, $2, i, i, 'm-' || i, '{}', $3, 'api', '[]', 1, 1 from n`, w.ID, topic, status, first, last)
		}
		want := func(n int, more bool) {
			t.Helper()
			err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				got, gotMore, err := eventstore.In(tx).CountWaiting(ctx, w.ID, []string{"in"})
				if got != n || gotMore != more {
					t.Errorf("it is %d (more: %v), want %d (%v)", got, gotMore, n, more)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want(0, false)
		events("in", "pending", 1, 5)
		events("in", "consumed", 6, 9)
		events("other", "pending", 10, 19)
		want(5, false)
		exec(`insert into event_causes (input_id, event_id) values ('a', 1), ('a', 2), ('b', 2), ('b', 3), ('c', 7)`) // leaves two that come from none
		want(4, false)
		events("in", "pending", 101, 2595) // 2500 with those before
		want(2499, false)
		events("in", "pending", 2596, 2596)
		want(2499, true)
		exec(`delete from event_causes`)
		exec(`insert into event_causes (input_id, event_id) select 'a', id from events where topic = 'in'`)
		want(1, true)
	})
}
