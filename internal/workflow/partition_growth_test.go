package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// manyPartitions is how many have events that wait, each some.
const manyPartitions = 10_000

// crowd gives a workflow partitions of which each has failed, has runs behind it and
// events that wait, or waits for a place.
func (k *kit) crowd(w workflowstore.Workflow) {
	k.t.Helper()
	const count = `with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) `
	const part = `'00000000000' || (1000000000000 + i)`
	for _, sql := range []string{
		`insert into partitions (workflow_id, id, handler, name, news, place, place_since, open, issue, attention, issue_since, created_at, updated_at) ` + count + `
			select {id}, ` + part + `, 'order', 'p-' || i, i, i % 2, i, 1, case when i % 2 = 0 then 'fixes_used_up' else '' end, case when i % 2 = 0 then 1 else 0 end, i, 1, 1 from n`,
		`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) ` + count + `
			select '00000000-0000-7000-8000-' || (100000000000 + i), 'workflow', {lane} || '/' || ` + part + `, 'order', 'consumer', 'event', 'preparing', 'failed:logic', 1, i, i, i, i from n`,
		`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, part, created_at, updated_at) ` + count + `
			select $1 + 4 * i + b, {id}, 'in', 4 * i + b, 4 * i + b, 'm-' || i || '-' || b, '{"customer":"x"}', 'pending', 'tester', '[]', ` + part + `, 1, 1
			from n cross join (select 0 as b union all select 1 union all select 2) t`,
		`update topics set seq = 4 * $1 + 10 where workflow_id = {id} and name = 'in'`,
		`update partition_sorts set news = $1 + 10, cursors = '{"in":' || (4 * $1 + 10) || '}' where workflow_id = {id}`,
	} {
		sql = strings.NewReplacer("{lane}", "'"+w.Lane+"'", "{id}", "'"+w.ID+"'").Replace(sql)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			if strings.HasPrefix(sql, "update partition_sorts") {
				_, err := tx.Exec(ctx, strings.ReplaceAll(sql, "$1", fmt.Sprint(manyPartitions)))
				return err
			}
			_, err := tx.Exec(ctx, sql, manyPartitions)
			return err
		})
	}
	k.analyze()
}

// No statement of a publish, of sorting, of a session of a partition, or of a look of
// the workflow itself reads more rows because there are many partitions.
func TestNoStepReadsAllPartitions(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k, h := newHeardKit(t, url)
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		k.send(w, "first", "first")
		b.finish()
		k.crowd(w)
		k.start("n2")
		k.s.memoryOf(w.ID, k.fence).stirred = k.workflow("shop").Revision // that tells them all, once for each owner
		h.During(func() {
			k.send(w, "a", "a1")
			for range 20 {
				for _, key := range b.now() {
					if p := b.of[key].Partition; p != "" && p != partitionID("order", "a") {
						delete(b.due, key)
						k.giveUp(w, p)
						continue
					}
					if err := b.one(key); err != nil {
						t.Fatal(err)
					}
				}
				if slices.Contains(k.desk.things(), "a1") {
					break
				}
				k.first(w, "a")
			}
		})
		if !slices.Equal(k.desk.things(), []string{"a1", "first"}) {
			t.Fatalf("orders: %v", k.desk.things())
		}
		k.checkCosts(h)
		y := k.why()
		if want := "Of its partitions"; !strings.HasPrefix(partsGate(y).Text, want) || !strings.Contains(partsGate(y).Text, "1000 or more need attention") {
			t.Errorf("gate: %s", partsGate(y).Text)
		}
	})
}

// giveUp takes a partition of the crowd its place.
func (k *kit) giveUp(w workflowstore.Workflow, id string) {
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update partitions set place = 0 where workflow_id = $1 and id = $2`, w.ID, id)
		return err
	})
}

// first puts a partition in front of all that wait.
func (k *kit) first(w workflowstore.Workflow, name string) {
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update partitions set place_since = 0 where workflow_id = $1 and id = $2 and place = 1`, w.ID, partitionID("order", name))
		return err
	})
	k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.arm(ctx, tx, w, tx.Now) })
	k.sendRaw(w, "again-"+fmt.Sprint(len(k.armed.specs)), `{"customer":"b"}`)
}
