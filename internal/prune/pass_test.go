package prune

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

var errKilled = errors.New("killed")

// A process that dies on either side of any step leaves nothing half removed, and
// the next pass ends what it began. Message ids stay known.
func TestAPassThatIsKilledIsFinishedByTheNext(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 150 {
			k.run(row{id: number(i), days: float64(100 + i)})
			k.event(number(i), "consumed", number(i), number(i), float64(100+i), float64(100+i))
		}
		whole := func(at string) {
			t.Helper()
			for what, sql := range map[string]string{
				"logs without a run":                        `run_logs l where not exists (select 1 from runs r where r.id = l.run_id)`,
				"runs without successors":                   `runs r where r.retry_of is not null and not exists (select 1 from runs s where s.id = r.retry_of)`,
				"events both there and known to be removed": `events e where 150 - (select count(*) from event_tombs) <> (select count(*) from events)`,
			} {
				if n := k.count(sql); n != 0 {
					t.Errorf("killed %s: %d %s", at, n, what)
				}
			}
		}
		kills := 0
		for range 200 {
			left := 1 + kills%3 // the first, second or third step
			died := ""
			k.s = New(Config{DB: k.db, fault: func(at string) error {
				if left--; left == 0 {
					died = at
					return errKilled
				}
				return nil
			}})
			for _, kind := range retention.Kinds() {
				k.s.size[string(kind)+" of workflow"] = fewRows
			}
			_, err := k.s.Prune(t.Context(), Options{})
			if whole(died); err == nil {
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			kills++
		}
		if kills < 20 {
			t.Errorf("it was killed %d times only", kills)
		}
		k.keeps()
		k.prune()
		k.left("id", "runs", "z")
		k.left("message_id", "events")
		if p := k.publish(number(0), number(149)); p.New != 0 {
			t.Errorf("published again: %+v", p)
		}
	})
}

// What is told beforehand is what is done then, and telling changes nothing.
func TestADryPassTellsWhatAPassDoes(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 100 {
			k.run(row{id: number(i), days: float64(10 + i)})
			k.event(number(i), "consumed", "x", "y", float64(i), float64(i))
		}
		count := func() int {
			return k.count(`runs`) + k.count(`run_logs`) + k.count(`run_reads`) + k.count(`events`) + k.count(`retention_floors`) + k.count(`retention_clock`)
		}
		before := count()
		dry, err := k.s.Prune(t.Context(), Options{Dry: true})
		if err != nil || count() != before {
			t.Fatalf("%d rows were %d: %v", count(), before, err)
		}
		done := k.prune()
		if dry.Rows() != done.Rows() || dry.Bytes() != done.Bytes() || len(dry.Removed) != len(done.Removed) || done.Rows() == 0 {
			t.Errorf("%+v was told, and done was\n%+v", dry, done)
		}
	})
}

// A dry pass tells of what is needed only by what would have been removed before it,
// and tells nothing twice.
func TestADryPassKnowsWhatWouldBeGone(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`insert into users (id, name, role, created_at) values ('u', 'u', 'admin', 0)`)
		k.exec(`insert into billing_accounts (id, owner_id, name, created_at) values ('acc', 'u', 'a', 0)`)
		k.keeps("receipts=400d", "runs=12h", "idle-runs=20h", "logs=6h")
		k.idles("idle", 21*60, 300, row{}) // some are removed as idle, some become a stretch, and all are older than runs are kept
		for i, id := range []string{"called", "charged", "published", "consumed", "read", "open", "young"} {
			k.run(row{id: id, days: 600, prepared: fmt.Sprintf(`{"reservations":[{"topic":"t","ids":["c%d"]}],"data":null}`, i)})
		}
		call := func(run string, days float64) {
			k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
				values ($1, 'id-w', $2, $4, 't', 'm', '{}', $1, 'applied', 0, $3, $3, $3)`, fmt.Sprint(run, days), run, ago(days), int(days))
		}
		call("called", 600)
		call("young", 600)
		call("young", 300)
		for _, run := range []string{"charged", "young"} {
			k.exec(`insert into charge_receipts (id, billing_account_id, run_id, attempt, source_system, source_reference, executor, amount, created_at) values ($1, 'acc', $2, 1, 's', $1, 'e', 1, $3)`, "receipt of "+run, run, ago(600))
		}
		k.event("p", "consumed", "published", "x", 600, 600)
		k.event("c3", "consumed", "x", "consumed", 600, 600)
		k.event("open", "pending", "open", "", 600, 600)
		for _, id := range []string{"gone", "kept"} {
			k.exec(`insert into read_contents (id, workflow_id, at, content) values ($1, 'id-w', $2, 'c')`, id, ago(600))
		}
		k.exec(`update run_reads set answer = null, content = 'gone' where run_id in ('read', 'called')`)
		k.run(row{id: "waits", status: "paused:approval", days: 601})
		k.exec(`update run_reads set answer = null, content = 'kept' where run_id in ('waits', 'open')`)
		k.run(row{id: "z", days: 0})
		dry, err := k.s.Prune(t.Context(), Options{Dry: true})
		if err != nil {
			t.Fatal(err)
		}
		before := k.count(`runs`)
		done := k.prune()
		if diff := cmp.Diff(done.Removed, dry.Removed); diff != "" {
			t.Errorf("told was another than done: %s", diff)
		}
		k.left("id", "runs", "open", "young", "waits", "z")
		k.left("id", "read_contents", "kept")
		told := int64(0)
		for _, r := range done.Removed {
			if r.Kind == retention.Runs || r.Kind == retention.IdleRuns {
				told += r.Rows
			}
		}
		if gone := int64(before - k.count(`runs`)); told != gone {
			t.Errorf("%d runs were told, and %d are gone", told, gone)
		}
	})
}

// A clock that jumps a year ahead removes no year of history; set right, it goes
// on as before.
func TestAClockThatJumpsRemovesNothing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 20 {
			k.run(row{id: number(i), days: float64(i)})
		}
		k.prune()
		// The database was last looked at a year ago by the clock of now, and its
		// rows are as old as they were then.
		const year = 365 * day
		for table, columns := range map[string][]string{"runs": {"created_at", "updated_at", "ended_at"}, "run_logs": {"at"}, "run_reads": {"at"}, "retention_clock": {"at"}, "retention_floors": {"since"}} {
			for _, c := range columns {
				k.exec(`update `+table+` set `+c+` = `+c+` - $1`, year.Milliseconds())
			}
		}
		reads := k.count(`run_reads`)
		done := k.prune()
		if !done.Leapt || k.count(`runs`) != 21 || k.count(`run_logs`) != 21 {
			t.Errorf("%+v; %d runs and %d logs are left", done, k.count(`runs`), k.count(`run_logs`))
		}
		// A day of it is believed.
		if n := k.count(`run_reads`); n < reads-1 {
			t.Errorf("%d of %d reads are left", n, reads)
		}
		if again := k.prune(); again.Leapt || again.Rows() != 0 {
			t.Errorf("the second time %+v", again)
		}
	})
}

// Whoever looked last before an upgrade is believed: the first look of a new
// database counts from there.
func TestTheClockIsKept(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		read := func() (c retention.Clock) {
			err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				c, err = readClock(ctx, prunestore.In(tx))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		if c := read(); !c.At.IsZero() {
			t.Errorf("a new database has seen %v", c)
		}
		k.prune()
		if c := read(); time.Since(c.At) > time.Minute || len(c.Leaps) != 0 {
			t.Errorf("%v", c)
		}
		k.exec(`update retention_clock set at = at - 100000000`) // more than a day
		k.prune()
		k.exec(`update retention_clock set at = at + 100000000`)
		k.prune()
		if c := read(); time.Since(c.At) > time.Minute || len(c.Leaps) != 2 || !c.Leaps[0].After.After(c.Leaps[0].Before) || !c.Leaps[1].After.Before(c.Leaps[1].Before) {
			t.Errorf("%v", c)
		}
	})
}

// A pass that has no time left says that there is more, and the next goes on where
// it was.
func TestAPassIsBounded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 40 {
			k.run(row{id: number(i), days: 100})
		}
		done, err := k.s.Prune(t.Context(), Options{Budget: 1})
		if err != nil || !done.More || k.count(`runs`) != 41 {
			t.Errorf("%+v, %v; %d runs are left", done, err, k.count(`runs`))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.s.Prune(ctx, Options{}); err == nil {
			t.Error("it goes on when nobody waits")
		}
		if done = k.prune(); done.More || k.count(`runs`) != 1 {
			t.Errorf("%+v; %d runs are left", done, k.count(`runs`))
		}
	})
}

// The job of the house prunes, and asks to be run again.
func TestTheJobPrunes(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		k.run(row{id: "old", days: 100})
		k.exec(`insert into idempotency_keys (owner, key, request, status, answer, created_at) values ('u', 'old', '', 200, '', $1), ('u', 'new', '', 200, '', $2)`, ago(2), ago(0))
		if err := k.s.Task().Run(t.Context(), &queue.Job{}); !reflect.DeepEqual(reflect.TypeOf(err), reflect.TypeOf(queue.Snooze(time.Now()))) {
			t.Errorf("it must ask to be run again: %v", err)
		}
		k.left("id", "runs", "z")
		k.left("key", "idempotency_keys", "new")
		if job := Job(); job.Task != Name || job.Key != Name {
			t.Errorf("%+v", job)
		}
	})
}

// What is forgotten beside history goes in batches, until none is left that is old.
func TestWhatIsForgottenGoesInBatches(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`insert into idempotency_keys (owner, key, request, status, answer, created_at)
			with recursive n (i) as (select 1 union all select i + 1 from n where i < $2) select 'u', 'k' || i, '', 200, '', $1 from n`, ago(2), 2*mostRows+1)
		k.exec(`insert into idempotency_keys (owner, key, request, status, answer, created_at) values ('u', 'new', '', 200, '', $1)`, ago(0))
		k.prune() // notes the time
		if more, err := k.s.forgetRest(t.Context()); err != nil || more {
			t.Errorf("more: %v, %v", more, err)
		}
		if n := k.count("idempotency_keys"); n != 1 {
			t.Errorf("%d are left", n)
		}
	})
}

// What is removed from a file makes it smaller, also if a process dies on either side
// of a step; PostgreSQL sees to that by itself.
func TestSpaceIsGivenBack(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 40 {
			k.run(row{id: number(i), days: 100})
			k.exec(`update run_reads set answer = $2 where run_id = $1`, number(i), strings.Repeat("x", 200_000))
		}
		size := func() int64 {
			s, err := k.db.Storage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.Bytes
		}
		before := size()
		for kill := range 4 {
			left := 2 + kill%2
			k.s = New(Config{DB: k.db, fault: func(at string) error {
				if strings.HasSuffix(at, space) {
					left--
				}
				if left == 0 {
					return errKilled
				}
				return nil
			}})
			if _, err := k.s.Prune(t.Context(), Options{}); k.db.Name() == "sqlite" && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		k.keeps()
		if done, after := k.prune(), size(); k.db.Name() == "sqlite" && (done.Given == 0 || after > before/2) {
			t.Errorf("%d bytes were %d: %+v", after, before, done)
		}
		k.left("id", "runs", "z")
	})
}
