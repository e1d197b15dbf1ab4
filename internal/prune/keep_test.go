package prune

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// What is older than its kind is kept goes, what is younger stays, and what runs
// have goes before they do.
func TestWhatIsOldGoes(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, r := range []row{{id: "new", days: 0}, {id: "d1", days: 0.9}, {id: "d8", days: 8}, {id: "d31", days: 31}, {id: "d89", days: 89}, {id: "d91", days: 91},
			{id: "s-new", kind: "source", lane: "s", days: 0}, {id: "s91", kind: "source", lane: "s", days: 91}} {
			k.run(r)
		}
		k.exec(`insert into source_runs (run_id, source_id, version, definition, rows_new, started_at, updated_at) values ('s91', 's', 'v', '{}', 1, 0, 0)`)
		k.exec(`insert into job_history (id, task, state, run_at, finished_at, attempt) values (1, 't', 'succeeded', 0, $1, 1), (2, 't', 'succeeded', 0, $2, 1)`, ago(8), ago(6))
		k.exec(`insert into audit_log (id, at, actor, action, subject) values (1, $1, 'ann', 'a', 's'), (2, $2, 'ann', 'a', 's')`, ago(401), ago(399))
		k.exec(`insert into _rejects (id, source_name, run_id, page, row_number, reason, raw, created_at) values ($1, 's', 's91', 1, 1, '', '', $3), ($2, 's', 's91', 1, 2, '', '', $4)`, k.number(31), k.number(29), ago(31), ago(29))
		done := k.prune()
		k.left("id", "runs", "new", "d1", "d8", "d31", "d89", "s-new")
		k.left("run_id", "run_logs", "new", "d1", "d8", "s-new")
		k.left("run_id", "run_reads where run_id not like 's%'", "new", "d1")
		k.left("run_id", "source_runs")
		k.left("cast(id as text)", "job_history", "2")
		k.left("cast(id as text)", "audit_log", "2")
		k.left("cast(row_number as text)", "_rejects", "2")
		var told []string
		for _, r := range done.Removed {
			if r.Oldest.IsZero() || r.Bytes == 0 {
				t.Errorf("%+v", r)
			}
			told = append(told, string(r.Kind)+" "+r.Name+" "+strings.Repeat("x", int(r.Rows)))
		}
		want := []string{"runs s x", "runs w x", "reads w xxxx", "logs s x", "logs w xxx", "rejects s x", "audit  x", "job-history  x"}
		if !slices.Equal(told, want) || done.More || done.Leapt {
			t.Errorf("%q\nwant %q (%+v)", told, want, done)
		}
		if again := k.prune(); again.Rows() != 0 {
			t.Errorf("the second time %+v", again)
		}
	})
}

// what is unresolved, waited for or referred to stays, whatever its age.
func TestRunsThatAreNeededStay(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "newest", days: 500})
		gone := []string{}
		old := func(id string, then ...func(id string)) {
			k.run(row{id: id, days: 600})
			for _, f := range then {
				f(id)
			}
		}
		old("plain")
		gone = append(gone, "plain")
		old("called", func(id string) {
			k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
				values ('m1', 'id-w', $1, 1, 't', 'm', '{}', 'k1', 'applied', 0, $2, $2, $2)`, id, ago(300))
		})
		old("doubted", func(id string) {
			k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, created_at, updated_at)
				values ('m2', 'id-w', $1, 1, 't', 'm', '{}', 'k2', 'needs_reconcile', 1, $2, $2)`, id, ago(600))
		})
		old("keyed", func(id string) {
			k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at, kept_for)
				values ('m3', 'id-w', $1, 1, 't', 'm', '{}', 'k3', 'failed', 0, $2, $2, $2, 'act')`, id, ago(600))
		})
		old("called-long-ago", func(id string) {
			k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
				values ('m4', 'id-w', $1, 1, 't', 'm', '{}', 'k4', 'applied', 0, $2, $2, $2)`, id, ago(600))
			k.exec(`insert into mutation_inputs (input_id, mutation_id) values ('i', 'm4')`)
		})
		gone = append(gone, "called-long-ago")
		old("published", func(id string) { k.event("by published", "pending", id, "", 600, 600) })
		old("holds", func(id string) { k.event("held", "reserved", "x", id, 601, 600) })
		old("asked", func(id string) {
			k.exec(`insert into approvals (id, workflow_id, run_id, tool, method, arguments, hash, state, phase_at, created_at, expires_at) values ('a1', 'id-w', $1, 't', 'm', '{}', 'h', 'pending', 0, 0, 0)`, id)
		})
		old("answered", func(id string) {
			k.exec(`insert into approvals (id, workflow_id, run_id, tool, method, arguments, hash, state, phase_at, created_at, expires_at) values ('a2', 'id-w', $1, 't', 'm', '{}', 'h', 'used', 0, 0, 0)`, id)
		})
		gone = append(gone, "answered")
		old("proposed", func(id string) {
			k.exec(`insert into repairs (id, workflow_id, run_id, base_version, state, repairer, created_at) values ('p1', 'id-w', $1, 'v', 'proposed', 'm', 0)`, id)
		})
		old("wants a right", func(id string) {
			k.exec(`insert into workflow_rights (workflow_id, tool, method, how, subject, created_at) values ('id-w', 't', 'm', 'asked', $1, 0)`, id)
		})
		k.run(row{id: "waits", status: "paused:approval", days: 600})
		k.run(row{id: "reconciles", status: "paused:reconciliation", days: 600})
		k.run(row{id: "active", status: "active", lane: "other", days: 600})
		k.run(row{id: "other", lane: "other", days: 599})
		// A consumer whose event is there for longer than usual.
		k.run(row{id: "consumed", prepared: `{"reservations":[{"topic":"t","ids":["late"]}]}`, days: 600})
		k.event("late", "consumed", "x", "consumed", 700, 10)
		k.run(row{id: "consumed-long-ago", prepared: `{"reservations":[{"topic":"t","ids":["early"]}]}`, days: 600})
		k.event("early", "consumed", "x", "consumed-long-ago", 700, 600)
		gone = append(gone, "consumed-long-ago")

		before := k.texts(`select id from runs`)
		k.prune()
		k.left("id", "runs", slices.DeleteFunc(before, func(id string) bool { return slices.Contains(gone, id) })...)
		k.left("id", "mutations", "m1", "m2", "m3")
		k.left("mutation_id", "mutation_inputs")
		k.left("id", "approvals", "a1")
		k.left("message_id", "events", "by published", "held", "late")
		// The open ones keep what they read and logged.
		k.left("run_id", "run_reads", "active", "newest", "other", "reconciles", "waits")
	})
}

// Attempts of one chain go together, when the last one has ended; what hangs on
// one of them holds all.
func TestChainsGoAsAWhole(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		chain := func(name, end string, days float64) {
			k.run(row{id: name + "1", status: "crashed", days: days + 2})
			k.run(row{id: name + "2", status: "paused:transient", retryOf: name + "1", days: days + 1})
			k.run(row{id: name + "3", status: end, retryOf: name + "2", days: days})
		}
		chain("ended", "committed", 100)
		chain("open", "failed:logic", 100)
		chain("young", "committed", 89) // its first attempts are older than ninety days
		chain("used", "committed", 100)
		k.exec(`insert into users (id, name, role, created_at) values ('u', 'u', 'admin', 0)`)
		k.exec(`insert into billing_accounts (id, owner_id, name, created_at) values ('acc', 'u', 'a', 0)`)
		k.exec(`insert into charge_receipts (id, billing_account_id, run_id, attempt, source_system, source_reference, executor, amount, created_at) values ('c', 'acc', 'used1', 1, 's', 'r', 'e', 1, $1)`, ago(100))
		k.prune()
		k.left("id", "runs", "z", "open1", "open2", "open3", "young1", "young2", "young3", "used1", "used2", "used3")
		k.keeps("receipts=30d")
		k.prune()
		k.left("id", "charge_receipts")
		k.left("id", "runs", "z", "open1", "open2", "open3", "young1", "young2", "young3")
	})
}

// A chain of more attempts than one transaction removes goes from its beginning,
// and is never open in between.
func TestLongChainsGoFromTheirBeginning(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		const attempts = mostAttempts + 300
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			for i := range attempts {
				status, before := "paused:transient", store.NullText("")
				if i == attempts-1 {
					status = "committed"
				}
				if i > 0 {
					before = store.NullText(number(i - 1))
				}
				if _, err := tx.Exec(ctx, `insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, created_at, updated_at)
					values ($1, 'workflow', 'w', 'old', 'consumer', 'event', $2, 'preparing', $3, $4, $5, $5)`, number(i), before, status, i+1, ago(200)+int64(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		k.prune()
		if n := k.count(`runs where id <> 'z'`); n != 300 {
			t.Fatalf("%d attempts are left, want the last 300", n)
		}
		if open := k.count(`runs r where r.status <> 'committed' and not exists (select 1 from runs s where s.retry_of = r.id)`); open != 0 {
			t.Errorf("%d attempts look open", open)
		}
		k.prune()
		k.left("id", "runs", "z")
	})
}

// The last good runs of each handler stay with what they read and published: a
// proposal of another script is tried with them.
func TestGoodRunsStay(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		for i := range 6 {
			k.run(row{id: "look" + string(rune('a'+i)), handler: "look", days: float64(100 - i)})
			k.run(row{id: "act" + string(rune('a'+i)), handler: "act", days: float64(100 - i)})
		}
		k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
			values ('m', 'id-w', 'acta', 1, 't', 'm', '{}', 'k', 'applied', 0, 1, 1, 1)`)
		k.event("of a good one", "consumed", "lookf", "gone", 95, 95)
		k.event("of another", "consumed", "looka", "gone", 100, 100)
		k.prune()
		want := []string{"z", "lookd", "looke", "lookf", "actd", "acte", "actf", "acta"}
		k.left("id", "runs", want...)
		k.left("run_id", "run_reads", want...)
		k.left("message_id", "events", "of a good one")
		k.left("id", "mutations", "m")
	})
}

// Slots that are open, the last one of a schedule, and those of a backfill that is
// not at its end stay.
func TestSlotsThatAreNeededStay(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		const id = "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e"
		k.exec(`insert into users (id, name, role, created_at) values ('u', 'u', 'admin', 0)`)
		k.exec(`insert into billing_accounts (id, owner_id, name, created_at) values ('acc', 'u', 'a', 0)`)
		k.exec(`insert into execution_grants (id, user_id, billing_account_id, scopes, created_at) values ('g', 'u', 'acc', '[]', 0)`)
		k.exec(`insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, labels, created_at, updated_at)
			values ($1, 'poet', 'u', 'g', 'http:poet', '{}', '0 8 * * *', 'UTC', 'Allow', '{}', 0, 0)`, id)
		for _, state := range []string{"running", "done"} {
			k.exec(`insert into backfills (id, schedule_id, from_at, to_at, plan, hash, state, per_minute, total, created_by, created_at, updated_at) values ($1, $2, 0, 0, '[]', '', $1, 1, 1, 'u', 0, 0)`, state, id)
		}
		slot := func(name string, days float64, completed any, backfill string) {
			k.run(row{id: "run-" + name, kind: "schedule", lane: id + "/" + name, days: days})
			k.exec(`insert into schedule_runs (id, schedule_id, run_id, scheduled_for, completed_at, status, trigger, backfill_id, revision, created_at, updated_at)
				values ($1, $2, $3, $4, $5, 'success', 'schedule', $6, 0, 0, 0)`, name, id, "run-"+name, ago(days), completed, store.NullText(backfill))
			k.exec(`insert into execution_requests (idempotency_key, request_hash, run_id, graph_id, grant_id, ok, created_at, updated_at) values ($1, '', $2, 'g', 'g', 1, 0, 0)`, name, "run-"+name)
		}
		slot("old", 500, ago(500), "")
		slot("open", 499, nil, "")
		slot("filling", 498, ago(498), "running")
		slot("filled", 497, ago(497), "done")
		slot("filled-today", 496, ago(0), "done")
		slot("many", 495.8, ago(300), "") // the last of them is not old
		k.exec(`update schedule_runs set through_at = $1, instants = 9 where id = 'many'`, ago(300))
		slot("many-old", 495.6, ago(495.5), "")
		k.exec(`update schedule_runs set through_at = $1, instants = 9 where id = 'many-old'`, ago(495.5))
		slot("last", 495, ago(495), "")
		k.prune()
		k.left("id", "schedule_runs", "open", "filling", "filled-today", "many", "last")
		k.left("idempotency_key", "execution_requests", "open", "filling", "filled-today", "many", "last")
		// The newest run of a schedule is that of all its lanes.
		k.left("id", "runs", "run-open", "run-filling", "run-last")
	})
}

// A message id is known for ever: an event that was consumed is never taken for a
// new one, however long ago that was.
func TestMessagesAreKnownWhenTheirEventsAreGone(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`insert into inputs (id, workflow_id, source, type, external_id, title, created_by, created_at) values ('i', 'id-w', 's', 't', 'e', '', 'x', 0), ('j', 'id-w', 's', 't', 'f', '', 'x', 0)`)
		for _, m := range []string{"consumed", "skipped"} {
			k.event(m, m, "x", "", 40, 31)
			k.exec(`insert into event_causes (input_id, event_id) select 'i', id from events where message_id = $1`, m)
		}
		k.event("pending", "pending", "x", "", 400, 400)
		k.event("young", "consumed", "x", "", 400, 29)
		if done := k.prune(); done.Rows() != 2 {
			t.Errorf("%+v", done)
		}
		k.left("message_id", "events", "pending", "young")
		if p := k.publish("consumed", "skipped", "young", "new", "consumed"); p.New != 1 || p.Duplicate != 3 {
			t.Errorf("published again: %+v", p)
		}
		k.left("message_id", "events", "new", "pending", "young")
		if p := k.publish("consumed"); p.News() || p.Duplicate != 1 {
			t.Errorf("alone: %+v", p)
		}
		k.left("input_id", "event_causes")
		k.left("id", "inputs where ended_at is not null", "i")
	})
}

// What a lane has an age of its own for goes by that.
func TestLanesHaveAgesOfTheirOwn(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.workflow("short", `{}`)
		k.workflow("long", `{}`)
		for _, lane := range []string{"w", "short", "long"} {
			for _, days := range []float64{0, 2, 100} {
				k.run(row{id: lane + map[float64]string{0: "0", 2: "2", 100: "100"}[days], lane: lane, days: days})
			}
		}
		p := &pass{Service: k.s, lanes: map[retention.Lane]*laneFacts{}, sums: map[sumKey]*Removed{}}
		if _, err := p.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.policy.Lanes = map[retention.Lane]retention.Ages{
			{Kind: pawl.KindWorkflow, Lane: "short"}: {retention.Runs: day, retention.Reads: retention.Forever},
			{Kind: pawl.KindWorkflow, Lane: "long"}:  {retention.Runs: retention.Forever},
		}
		for _, w := range p.walks() {
			if _, err := p.walk(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		k.left("id", "runs", "w0", "w2", "short0", "long0", "long2", "long100")
		k.left("run_id", "run_reads", "w0", "w2", "short0", "long0", "long2")
	})
}

// An answer that a run got before is kept once, comes back as it was, and goes when
// no read refers to it any more.
func TestAnswersAreKeptOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		large, other := json.RawMessage(`"`+strings.Repeat("x", 5000)+`"`), json.RawMessage(`"`+strings.Repeat("y", 5000)+`"`)
		add := func(workflow, run string, answers ...json.RawMessage) {
			t.Helper()
			var list []runstore.RunRead
			for _, a := range answers {
				list = append(list, runstore.RunRead{Phase: "prepare", Op: "tool", Call: json.RawMessage(`{}`), Answer: a})
			}
			err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return runstore.In(tx).AddRunReads(ctx, workflow, run, 1, list)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		k.run(row{id: "z", days: 0})
		for i := range 3 {
			k.run(row{id: number(i), days: 8})
			add("id-w", number(i), large, json.RawMessage(`"small"`), large, other, nil)
		}
		add("id-w", "z", large)
		add("id-v", "elsewhere", large)
		k.left("workflow_id", "read_contents", "id-v", "id-w", "id-w")
		var got []runstore.RunRead
		err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			got, err = runstore.In(tx).RunReads(ctx, number(1))
			return err
		})
		if err != nil || len(got) != 6 {
			t.Fatal(len(got), err)
		}
		for i, want := range []string{`{}`, string(large), `"small"`, string(large), string(other), ""} {
			if string(got[i].Answer) != want {
				t.Errorf("read %d is %.20s", i, got[i].Answer)
			}
		}
		k.exec(`update read_contents set at = $1 where workflow_id = 'id-w'`, ago(8))
		k.exec(`insert into read_contents (id, workflow_id, at, content) values ('young', 'id-w', $1, 'c')`, ago(1))
		if done := k.prune(); done.Rows() != 3*6+1 { // the reads of three runs, and one answer
			t.Errorf("%+v", done)
		}
		k.left("workflow_id || substr(content, 1, 2)", "read_contents", `id-v"x`, `id-w"x`, "id-wc")
		k.left("run_id", "run_reads", "z", "z", "elsewhere")
	})
}

// Runs that looked and found nothing to do go sooner than others.
func TestIdleRunsGoSooner(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		const none = `{"reservations":[],"data":null}`
		k.run(row{id: "newest", prepared: none, days: 0})
		k.run(row{id: "young", prepared: none, days: 0.9})
		k.run(row{id: "looked", prepared: none, days: 2})
		k.run(row{id: "produced nothing", prepared: nothing, days: 2})
		k.run(row{id: "took", prepared: `{"reservations":[{"topic":"t","ids":["a"]}],"data":null}`, days: 2})
		k.run(row{id: "published", prepared: nothing, days: 2})
		k.event("p", "consumed", "published", "x", 2, 2)
		k.run(row{id: "called", prepared: none, days: 2})
		k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
			values ('m', 'id-w', 'called', 1, 't', 'm', '{}', 'k', 'applied', 0, $1, $1, $1)`, ago(2))
		k.run(row{id: "failed", status: "crashed", prepared: none, days: 3})
		k.run(row{id: "retried", retryOf: "failed", prepared: none, days: 2})
		k.run(row{id: "good", handler: "look", prepared: none, days: 2})
		// What it published may be removed by now, so nobody knows.
		k.run(row{id: "long ago", prepared: nothing, days: 40})
		k.run(row{id: "s-new", kind: "source", lane: "s", days: 0})
		for id, rows := range map[string]int{"s-nothing": 0, "s-rows": 1} {
			k.run(row{id: id, kind: "source", lane: "s", days: 2})
			k.exec(`insert into source_runs (run_id, source_id, version, definition, rows_new, started_at, updated_at) values ($1, 's', 'v', '{}', $2, 0, 0)`, id, rows)
		}
		k.prune()
		k.left("id", "runs", "newest", "young", "took", "published", "called", "failed", "retried", "good", "long ago", "s-new", "s-rows")
		k.keeps("idle-runs=forever")
		k.exec(`delete from retention_floors`)
		k.run(row{id: "kept", prepared: none, days: 50})
		k.prune()
		if k.count(`runs where id = 'kept'`) != 1 {
			t.Error("what is kept forever is gone")
		}
	})
}
