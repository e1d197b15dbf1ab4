package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func TestProducers(t *testing.T) {
	hold(t,
		behaviour{"an interval runs every N after its last commit", intervalRunsEveryN},
		behaviour{"a cron expression runs at its local time", cronRunsAtLocalTime},
		behaviour{"firings while a consumer works collapse into one run", firingsWhileBusyCollapse},
		behaviour{"all producers that are due while a consumer works run after it", allDueRunAfterABusyTime},
		behaviour{"times and states survive the process", timesAndStatesSurvive},
		behaviour{"schedules are in a table of their own", schedulesHaveTheirTable},
		behaviour{"firings while the host is down collapse into one run that is logged", firingsWhileDownCollapse},
		behaviour{"each producer has its own time", producersHaveTheirOwnTimes},
		behaviour{"handlers of a workflow never run at once", handlersNeverRunAtOnce},
		behaviour{"a commit writes state, events, inputs, schedule and run at once", producerCommitsAtOnce},
		behaviour{"a failed attempt publishes nothing", failedAttemptPublishesNothing},
		behaviour{"a handler that returns no state keeps the one before", noStateKeepsState},
		behaviour{"a schedule that has become unusable halts the lane", unusableScheduleHalts},
	)
}

// at the deploy, and then N after the commit of the run
// before; the row says when it ran and when it will.
func intervalRunsEveryN(t *testing.T, k *kit) {
	slow := func(*goCtx, []json.RawMessage) any { pass(time.Minute); return nothing{} }
	w := k.deploy("interval", "1", producing(nil).producer("p", Schedule{Interval: "9m"}, slow))
	begun := time.Now()
	k.follow(w, 35*time.Minute)
	var at []time.Duration
	for _, r := range k.runs(w) {
		if r.Handler == "p" {
			at = append(at, r.StartedAt.Sub(begun))
			expect(t, "trigger", r.Trigger, triggerSchedule)
		}
	}
	expect(t, "runs after the deploy", at, []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute})
	row := k.schedules(w)["p"]
	if !sameInstant(row.LastRunAt, begun.Add(31*time.Minute)) || !sameInstant(row.NextRunAt, begun.Add(40*time.Minute)) {
		t.Errorf("it ran at %v and will at %v", row.LastRunAt, row.NextRunAt)
	}
}

// once at the deploy, then when the clock of its zone says so.
func cronRunsAtLocalTime(t *testing.T, k *kit) {
	w := k.deploy("cron", "1", producing(nil).producer("p", Schedule{Cron: "0 9 * * 1-5", Timezone: "Asia/Tokyo"}, idle))
	begun := time.Now()
	k.follow(w, 7*24*time.Hour)
	runs := k.runs(w)
	var at []string
	for _, r := range runs {
		if r.Handler == "p" && r.CreatedAt.Sub(begun) > time.Second {
			at = append(at, r.CreatedAt.UTC().Format("15:04"))
			if day := r.CreatedAt.UTC().Weekday(); day == time.Saturday || day == time.Sunday {
				t.Errorf("it ran on a %s", day)
			}
			if !r.ScheduledFor.Equal(r.CreatedAt) {
				t.Errorf("a run of %v stands for %v", r.CreatedAt, r.ScheduledFor)
			}
		}
	}
	expect(t, "runs of a week", at, []string{"00:00", "00:00", "00:00", "00:00", "00:00"})
}

// next_run_at stays while a consumer runs
// for an hour, so that the firing is seen afterwards; six of them are one run.
func firingsWhileBusyCollapse(t *testing.T, k *kit) {
	var seen []time.Time
	d := producing(map[string]string{"p": "10m"})
	d.handlers["consumers.take.prepare"] = func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if len(ids) == 0 {
			return take("in")
		}
		for range 60 {
			pass(time.Minute)
			seen = append(seen, k.schedules(k.workflow("busy"))["p"].NextRunAt)
		}
		return take("in", ids...)
	}
	w := k.deploy("busy", "1", d)
	k.work(w)
	due := k.schedules(w)["p"].NextRunAt
	k.publish(w, "in", "a")
	k.ranSince()
	k.follow(w, time.Hour)
	expect(t, "runs in the hour and after it", k.ranSince(), []string{"consumers.take.prepare", "producers.p.handler"})
	for _, at := range seen {
		if !at.Equal(due) {
			t.Fatalf("next_run_at moved to %v while the workflow was busy", at)
		}
	}
	if got := k.schedules(w)["p"].NextRunAt; !sameInstant(got, time.Now().Add(10*time.Minute)) {
		t.Errorf("after the late run the next one is at %v", got)
	}
}

// on an idle lane whatever is due starts as scheduled; on a
// busy one every producer that comes due waits, and each runs once after it.
func allDueRunAfterABusyTime(t *testing.T, k *kit) {
	d := producing(map[string]string{"a": "10m", "b": "30m", "c": "5h"})
	d.handlers["consumers.take.prepare"] = func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if len(ids) > 0 {
			pass(time.Hour)
		}
		return take("in", ids...)
	}
	w := k.deploy("all-due", "1", d)
	k.work(w)
	k.ranSince()
	pass(10 * time.Minute)
	k.work(w) // idle
	expect(t, "runs of an idle lane", k.ranSince(), []string{"producers.a.handler"})
	k.publish(w, "in", "x")
	k.work(w) // busy for an hour, and then the session ends
	k.work(w)
	expect(t, "runs of a busy lane", k.ranSince(), []string{"consumers.take.prepare", "producers.a.handler", "producers.b.handler"})
	for _, name := range []string{"a", "b"} {
		for _, cause := range k.triggers(w, name) {
			expect(t, "cause", cause, triggerSchedule)
		}
	}
}

// what a lane needs to go on is in the store: when producers run, when
// consumers wake, and what both keep.
func timesAndStatesSurvive(t *testing.T, k *kit) {
	d := consuming(napping(40*time.Minute)).handler("consumers.take.next", func(*goCtx, []json.RawMessage) any { return map[string]int{"taken": 1} })
	d = d.producer("p", Schedule{Interval: "1h"}, func(*goCtx, []json.RawMessage) any { return map[string]int{"made": 1} })
	w := k.deploy("survives", "1", d)
	k.publish(w, "in", "x")
	k.work(w)
	due, wake := k.schedules(w)["p"].NextRunAt, k.kept(w, "take").WakeAt
	if !sameInstant(due, time.Now().Add(time.Hour)) || !sameInstant(wake, time.Now().Add(40*time.Minute)) {
		t.Fatalf("it runs at %v and wakes at %v", due, wake)
	}
	k.start("another")
	expect(t, "the next look of a new process", k.work(w), wake)
	expect(t, "the next run", k.schedules(w)["p"].NextRunAt, due)
	expect(t, "what they keep", []string{string(k.kept(w, "p").State), string(k.kept(w, "take").State)}, []string{`{"made":1}`, `{"taken":1}`})
}

// a producer has one row, found by workflow and by time, and a
// workflow has no time of its own that anybody could consult.
func schedulesHaveTheirTable(t *testing.T, k *kit) {
	w := k.deploy("own-table", "1", producing(map[string]string{"p": "1h"}))
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `insert into producer_schedules (id, workflow_id, producer_name, schedule_type, schedule_value, next_run_at, created_at, updated_at)
			select 'twice', workflow_id, producer_name, schedule_type, schedule_value, next_run_at, created_at, updated_at from producer_schedules where workflow_id = $1`, w.ID)
		return err
	})
	if err == nil {
		t.Error("a producer can have two rows")
	}
	indexes, columns := `select indexname from pg_indexes where tablename = 'producer_schedules'`, `select column_name from information_schema.columns where table_name = 'workflows'`
	if strings.HasPrefix(k.url, "sqlite:") {
		indexes, columns = `select name from pragma_index_list('producer_schedules')`, `select name from pragma_table_info('workflows')`
	}
	there := k.words(indexes)
	for _, name := range []string{"idx_producer_schedules_workflow", "idx_producer_schedules_next_run"} {
		if !slices.Contains(there, name) {
			t.Errorf("there is no index %s: %v", name, there)
		}
	}
	for _, column := range k.words(columns) {
		if strings.Contains(column, "next_run") {
			t.Errorf("workflows have %s", column)
		}
	}
}

// words are the texts of a query's one column.
func (k *kit) words(query string) (list []string) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var word string
			if err := rows.Scan(&word); err != nil {
				return err
			}
			list = append(list, word)
		}
		return rows.Err()
	})
	if len(list) == 0 {
		k.t.Fatalf("%s finds nothing", query)
	}
	return list
}

// what fired while nobody was there is one run after
// the restart, and the log says that it was missed. One that is not due stays.
func firingsWhileDownCollapse(t *testing.T, k *kit) {
	w := k.deploy("down", "1", producing(map[string]string{"often": "10m", "rarely": "2d"}))
	k.work(w)
	pass(24 * time.Hour)
	k.start("second")
	var log bytes.Buffer
	k.s.log = slog.New(slog.NewTextHandler(&log, nil))
	k.ranSince()
	k.work(w)
	expect(t, "runs after the restart", k.ranSince(), []string{"producers.often.handler"})
	var missed []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "overdue") {
			missed = append(missed, line)
		}
	}
	if len(missed) != 1 || !strings.Contains(missed[0], "producer=often") || !strings.Contains(missed[0], "late=23h50m0s") {
		t.Errorf("the log tells of missed firings: %q", missed)
	}
}

// five minutes and an hour do not touch each other.
func producersHaveTheirOwnTimes(t *testing.T, k *kit) {
	w := k.deploy("two", "1", producing(map[string]string{"five": "5m", "hour": "1h"}))
	k.work(w)
	slow := k.schedules(w)["hour"]
	k.follow(w, 59*time.Minute)
	ran := k.ranSince()
	expect(t, "runs of the quick one", count(ran, "producers.five.handler"), 12)
	expect(t, "runs of the slow one", count(ran, "producers.hour.handler"), 1)
	expect(t, "the schedule of the slow one", k.schedules(w)["hour"], slow)
	k.follow(w, time.Minute)
	ran = k.ranSince()
	expect(t, "runs on the hour", []int{count(ran, "producers.five.handler"), count(ran, "producers.hour.handler")}, []int{1, 1})
}

// while a handler runs the store takes no other
// run of its lane, and all that is due comes one after another.
func handlersNeverRunAtOnce(t *testing.T, k *kit) {
	k.writeThrough()
	busy, runs := false, 0
	alone := func(*goCtx, []json.RawMessage) any {
		if busy {
			t.Error("two handlers run at once")
		}
		busy = true
		runs++
		w := k.workflow("alone")
		err := k.do(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.ledger.Begin(ctx, tx, k.fence, ledger.Spec{Kind: pawl.KindWorkflow, Lane: w.Lane, Handler: "q", HandlerType: pawl.HandlerProducer})
			return err
		})
		if !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("a second run begins while one is active: %v", err)
		}
		pass(time.Second)
		busy = false
		return nothing{}
	}
	d := producing(nil)
	for _, name := range []string{"p", "q", "r"} {
		d = d.producer(name, Schedule{Interval: "1h"}, alone)
	}
	w := k.deploy("alone", "1", d)
	k.work(w)
	expect(t, "runs of producers", runs, 3)
	k.allCommitted(w)
}

// up to the commit nothing of the run is there; with it all is.
func producerCommitsAtOnce(t *testing.T, k *kit) {
	const name = "at-once"
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "x")
		return map[string]int{"n": 1}
	}))
	k.work(w) // takes the first event as well
	before := k.schedules(w)["p"]
	k.scripts.defs[name+" 1"].handlers["producers.p.handler"] = func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "y")
		return map[string]int{"n": 2}
	}
	pass(time.Hour)
	k.crashAt(w, "before commit", 1)
	expect(t, "events before the commit", len(k.statuses(w, "in")), 1)
	expect(t, "state before the commit", string(k.kept(w, "p").State), `{"n":1}`)
	expect(t, "schedule before the commit", k.schedules(w)["p"], before)
	expect(t, "input before the commit", k.knows(w, "y"), false)
	k.work(w)
	expect(t, "event after the commit", k.statuses(w, "in")["y"], eventstore.EventConsumed)
	expect(t, "state after the commit", string(k.kept(w, "p").State), `{"n":2}`)
	expect(t, "input after the commit", k.knows(w, "y"), true)
	for _, r := range k.runs(w) {
		if r.Handler == "p" && r.Status == pawl.StatusCommitted && (len(r.OutputState) == 0 || r.EndedAt.IsZero() || r.Phase != pawl.PhaseCommitted) {
			t.Errorf("the committed run has the state %s and ended at %v in %s", r.OutputState, r.EndedAt, r.Phase)
		}
	}
}

// knows reports whether an input is registered.
func (k *kit) knows(w workflowstore.Workflow, id string) (known bool) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		found, err := eventstore.In(tx).KnownInputs(ctx, w.ID, []string{thingID(w, id)})
		known = found[thingID(w, id)]
		return err
	})
	return known
}

// X-22, lesson 43: what a handler published before it threw is not there.
func failedAttemptPublishesNothing(t *testing.T, k *kit) {
	const name = "throws"
	d := producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "x")
		throw("no")
		return nil
	})
	w := k.deploy(name, "1", d)
	k.work(w)
	expect(t, "status of the run", k.lastRun(w).Status, pawl.StatusFailedLogic)
	expect(t, "events", len(k.statuses(w, "in")), 0)
	expect(t, "input", k.knows(w, "x"), false)
	expect(t, "schedule", k.schedules(w)["p"].LastRunAt, time.Time{})
}

// the first run gets no state at all; no return keeps what there
// is; null is a state of its own.
func noStateKeepsState(t *testing.T, k *kit) {
	var got []string
	returns := []any{nothing{}, map[string]int{"n": 1}, nothing{}, nil, nothing{}}
	w := k.deploy("keeps", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(_ *goCtx, args []json.RawMessage) any {
		if len(args) == 0 {
			got = append(got, "absent")
		} else {
			got = append(got, string(args[0]))
		}
		return returns[len(got)-1]
	}))
	k.follow(w, 4*time.Hour)
	expect(t, "states that the handler saw", got, []string{"absent", "absent", `{"n":1}`, `{"n":1}`, "null"})
}

// nothing is guessed; the lane halts as an internal fault and the time of
// the producer stays.
func unusableScheduleHalts(t *testing.T, k *kit) {
	w := k.deploy("unusable", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	due := k.schedules(w)["p"].NextRunAt
	config := k.s.configs.entries[w.ID]
	config.config.Producers[0].Schedule = Schedule{Cron: "0 0 30 2 *"}
	pass(time.Hour)
	if until := k.work(w); !until.IsZero() {
		t.Errorf("a halted lane wants to be woken at %v", until)
	}
	expect(t, "status of the run", k.lastRun(w).Status, pawl.StatusFailedInternal)
	expect(t, "next run", k.schedules(w)["p"].NextRunAt, due)
}
