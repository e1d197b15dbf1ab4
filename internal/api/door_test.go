package api

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// newDoorRig is a rig on PostgreSQL whose tasks the database knows.
func newDoorRig(t testing.TB) *rig {
	t.Helper()
	r := newRig(t, pgtest.URL(t))
	r.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.ServeTasks(ctx, []string{"echo", "block", "fail"}, testMaxPayload)
	})
	return r
}

// inDatabase calls a function of the database in a transaction of its own.
func inDatabase[T any](r *rig, sql string, args ...any) (v T) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select `+sql, args...).Scan(&v)
	})
	return v
}

// Jobs of both doors have one space of keys, run at once, and are known at both.
func TestJobsOfTheDatabaseMeetThoseOfTheAPI(t *testing.T) {
	r := newDoorRig(t)
	first := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "1h"})
	id := inDatabase[string](r, `pawl.add_job('echo', '{"n": 2}', key => 'k', run_at => now() + interval '2 hours')::text`)
	got := r.do("GET", "/api/v1/jobs/"+id, nil).want(200).job()
	if got.ID != first.ID || string(got.Payload) != `{"n":2}` || got.CreatedBy != "postgres" || got.State != "scheduled" || *got.MaxAttempts != 10 {
		t.Errorf("%+v", got)
	}
	again := r.enqueue(map[string]any{"task": "echo", "key": "k", "payload": map[string]int{"n": 3}})
	if again.ID != first.ID || r.waitRun() != `echo {"n":3}` {
		t.Errorf("%+v", again)
	}
	r.waitState(first.ID, store.JobSucceeded)
	if told := inDatabase[string](r, `task || ' ' || state || ' ' || attempts from pawl.job_state where id = $1::text::uuid`, id); told != "echo succeeded 0" && told != "echo succeeded 1" {
		t.Errorf("the view tells %s", told)
	}
	inDatabase[string](r, `pawl.add_job('echo', '{"n": 4}', lane => 'l')::text`)
	if ran := r.waitRun(); ran != `echo {"n": 4}` {
		t.Errorf("ran %s", ran)
	}
	id = inDatabase[string](r, `pawl.add_job('block')::text`)
	if ran := r.waitRun(); ran != "block" || !inDatabase[bool](r, `pawl.cancel_job($1::text::uuid)`, id) {
		t.Errorf("%s is not cancelled", id)
	}
	n, _ := store.ParseJobID(id)
	r.eventually("the run stops", func() bool { return !r.queue.IsRunning(n) })
	if got := r.do("GET", "/api/v1/jobs/"+strconv.FormatInt(n, 10), nil).want(200).job(); got.State != "cancelled" {
		t.Errorf("%+v", got)
	}
	r.do("DELETE", "/api/v1/jobs/"+id, nil).problem(409, "conflict")
	id = inDatabase[string](r, `pawl.add_job('fail')::text`)
	r.waitState(id, store.JobFailed)
	r.do("POST", "/api/v1/jobs/"+id+"/retry", nil).want(200)
	for _, action := range []string{"job.create", "job.cancel"} {
		if n := r.count(`select count(*) from audit_log where action = $1 and actor = 'database role postgres'`, action); n == 0 {
			t.Errorf("nobody is said to have done %s", action)
		}
	}
}

// An event that is published in the database leaves the rows that one of the API
// leaves, new, known, changed, too late, of a skipped input or forgotten.
func TestPublishInTheDatabaseIsThatOfTheAPI(t *testing.T) {
	r := newDoorRig(t)
	const odd = "<a>&'\"\\ \u2028\b\u0001ü🙂\t"
	ids := map[string]string{}
	for _, name := range []string{"ours", "theirs"} {
		r.deploy(name, strings.ReplaceAll(orders, `"orders"`, `"`+name+`"`))
		r.do("POST", "/api/v1/workflows/"+name+"/pause", nil).want(200)
		ids[name] = r.text(`select id from workflows where name = $1`, name)
	}
	for _, step := range []struct {
		what, id, payload, input string
		news                     bool
		before                   string // of both
	}{
		{what: "new", id: "m", payload: `{"n":1}`, news: true},
		{what: "known", id: "m", payload: `{"n":1}`},
		{what: "changed", id: "m", payload: `{"n":2}`},
		{what: "null", id: "z", payload: `null`, news: true},
		{what: "of an input", id: "i", payload: `1`, input: `{"source":"shop","type":"order","id":"<4>","title":" a\nb\u202e "}`, news: true},
		{what: "of another input", id: "i", payload: `2`, input: `{"source":"ürsprung","type":"order","id":"5"}`},
		{what: "without an input", id: "i", payload: `2`},
		{what: "of a skipped input", id: "s", payload: `1`, input: `{"source":"shop","type":"order","id":"<4>"}`, news: true, before: `update inputs set skipped_at = 1 where external_id = '<4>'`},
		{what: "odd", id: odd, payload: `1`, news: true},
		{what: "too late", id: odd, payload: `2`, before: `update events set status = 'consumed' where message_id not in ('m', 'i')`},
		{what: "forgotten", id: odd, payload: `3`, before: "forget"},
		{what: "not forgotten", id: odd + "x", payload: `3`, news: true},
	} {
		if step.before == "forget" {
			r.write(func(ctx context.Context, tx *store.Tx) error {
				for _, id := range ids {
					list, err := eventstore.In(tx).EventsByMessage(ctx, id, "order", []string{odd})
					if err != nil || len(list) != 1 {
						return fmt.Errorf("%d events: %w", len(list), err)
					}
					if n, err := eventstore.In(tx).DeleteEvents(ctx, id, "order", []int64{list[0].ID}); err != nil || n != 1 {
						return fmt.Errorf("%d removed: %w", n, err)
					}
				}
				return nil
			})
		} else if step.before != "" {
			r.exec(step.before)
		}
		body := fmt.Sprintf(`{"topic":"order","messageId":%s,"payload":%s`, store.JSONText(step.id), step.payload)
		if step.input != "" {
			body += `,"input":` + step.input
		}
		r.do("POST", "/api/v1/workflows/theirs/events", body+"}").want(map[bool]int{true: 201, false: 200}[step.news])
		if news := inDatabase[bool](r, `pawl.publish('ours', 'order', $1, $2::text::jsonb, nullif($3, '')::jsonb)`, step.id, step.payload, step.input); news != step.news {
			t.Errorf("%s: it is new: %t", step.what, news)
		}
		ours, theirs := r.eventRows(ids["ours"]), r.eventRows(ids["theirs"])
		if ours != theirs {
			t.Errorf("%s: ours\n%s, theirs\n%s", step.what, ours, theirs)
		}
	}
	want := script.InputID(ids["ours"], "ürsprung", "order", "5")
	if n := r.count(`select count(*) from inputs where id = $1 and title = 'ürsprung order 5'`, want); n != 1 {
		t.Errorf("%d inputs %s", n, want)
	}
	if n := r.count(`select count(*) from audit_log where action = 'event.publish' and actor = 'database role postgres' and subject = 'workflow:ours'`); n == 0 {
		t.Error("nobody is said to have published")
	}
}

// eventRows is all that publishing writes, but for ids and times.
func (r *rig) eventRows(id string) string {
	r.t.Helper()
	return r.text(`select concat_ws(E'\n',
		(select string_agg(concat_ws(' ', topic, seq, payload_seq, message_id, payload::jsonb, status, jsonb_array_length(caused_by::jsonb), attempt, duplicates,
			(select string_agg(i.external_id, ',') from event_causes c join inputs i on i.id = c.input_id where c.event_id = e.id)), E'\n' order by seq) from events e where workflow_id = $1),
		(select string_agg(concat_ws(' ', name, seq, subscribed, forgotten), E'\n' order by name) from topics where workflow_id = $1),
		(select string_agg(concat_ws(' ', source, type, external_id, title, skipped_at), E'\n' order by source, external_id) from inputs where workflow_id = $1))`, id)
}

// armed is the job of a workflow as a transaction leaves it that publishes and is
// rolled back.
func (r *rig) armed(publish func(ctx context.Context, tx *store.Tx) error) (row string) {
	r.t.Helper()
	rolledBack := errors.New("rolled back")
	err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `delete from jobs where key = 'workflow:ours'`); err != nil {
			return err
		}
		for range 2 { // made, and changed
			if err := publish(ctx, tx); err != nil {
				return err
			}
			var now string
			if err := tx.QueryRow(ctx, `select concat_ws(' ', bucket, key, lane, payload::jsonb, task, rev, owner, priority, max_attempts, state, created_by, trace, abs(run_at - extract(epoch from clock_timestamp()) * 1000) < 60000)
				from jobs where key = 'workflow:ours'`).Scan(&now); err != nil {
				return err
			}
			row += now + "\n"
		}
		return rolledBack
	})
	if !errors.Is(err, rolledBack) {
		r.t.Fatal(err)
	}
	return row
}

// The job that wakes a workflow is the one that Go arms.
func TestPublishInTheDatabaseArmsTheWorkflow(t *testing.T) {
	r := newDoorRig(t)
	r.deploy("ours", strings.ReplaceAll(orders, `"orders"`, `"ours"`))
	n := 0
	theirs := r.armed(func(ctx context.Context, tx *store.Tx) error {
		n++
		_, _, err := r.api.workflows.PublishExternal(ctx, tx, "ours", workflow.ExternalEvent{Topic: "order", MessageID: strconv.Itoa(n)}, "me")
		return err
	})
	ours := r.armed(func(ctx context.Context, tx *store.Tx) error {
		n++
		_, err := tx.Exec(ctx, `select pawl.publish('ours', 'order', $1, '{}')`, strconv.Itoa(n))
		return err
	})
	if ours != theirs {
		t.Errorf("ours\n%s, theirs\n%s", ours, theirs)
	}
}

// A workflow runs for what is published in the database, once it is committed.
func TestPublishInTheDatabaseWakesTheWorkflow(t *testing.T) {
	r := newDoorRig(t)
	r.deploy("orders", orders)
	if !inDatabase[bool](r, `pawl.publish('orders', 'order', 'm', '{"n": 1}')`) {
		t.Error("it is not new")
	}
	r.eventually("it is put on the desk", func() bool { return len(r.desk.things()) == 1 })
	if inDatabase[bool](r, `pawl.publish('orders', 'order', 'm', '{"n": 2}')`) {
		t.Error("it is new again")
	}
	for topic, says := range map[string]string{"ordre": `workflow "orders" has no topic "ordre"`, "": `has no topic ""`} {
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `select pawl.publish('orders', $1, 'm', '{}')`, topic)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("topic %q: %v", topic, err)
		}
	}
}

// A task that programs of users serve is enqueued, claimed, completed and told as
// over HTTP, with the same rows.
func TestTasksOfWorkersAreEnqueuedInTheDatabase(t *testing.T) {
	r := newDoorRig(t)
	r.do("PUT", "/api/v1/tasks/mail", map[string]any{}).want(201)
	row := func(id string) string {
		n, _ := store.ParseJobID(id)
		return r.text(`select concat_ws(' ', bucket, state, priority, max_attempts, task, owner, lane, key, payload::jsonb, rev, kept::jsonb - 'runAt') from jobs where id = $1`, n)
	}
	for _, c := range []struct{ sql, body string }{
		{`'mail', '{"n": 1}', lane => 'l', priority => 1`, `{"task":"mail","payload":{"n":1},"lane":"l","priority":1,"maxAttempts":10}`},
		{`'mail', key => 'k'`, `{"task":"mail","key":"k","maxAttempts":10}`},
		{`'echo', key => 'k', run_at => now() + interval '1 hour'`, `{"task":"echo","key":"k","maxAttempts":10,"delay":"1h"}`},
		{`'mail', key => 'k', key_mode => 'keep'`, `{"task":"mail","key":"k","keyMode":"keep","maxAttempts":10}`},
		{`'mail', key => 'k', key_mode => 'preserve_run_at'`, `{"task":"mail","key":"k","keyMode":"preserve_run_at","maxAttempts":10}`},
	} {
		ours := row(inDatabase[string](r, `pawl.add_job(`+c.sql+`)::text`))
		theirs := row(r.do("POST", "/api/v1/jobs", c.body).want(201).job().ID)
		if again := strings.Contains(c.sql, "key"); !again && ours != theirs {
			t.Errorf("%s: ours %s, theirs %s", c.sql, ours, theirs)
		} else if again && cutRev(ours) != cutRev(theirs) {
			t.Errorf("%s: ours %s, theirs %s", c.sql, ours, theirs)
		}
	}
	r.exec(`delete from jobs where task in ('mail', 'echo')`)
	var claims client.Claim
	got := make(chan struct{})
	go func() {
		defer close(got)
		r.do("POST", "/api/v1/tasks/mail/claim", map[string]any{"workerId": "w", "limit": 5, "wait": "20s"}).want(200).into(&claims)
	}()
	id := inDatabase[string](r, `pawl.add_jobs('[{"task": "mail", "payload": {"n": 1}}]')::text`)
	<-got
	if len(claims.Items) != 1 {
		t.Fatalf("claimed %+v", claims)
	}
	state := func() string {
		return r.text(`select concat_ws(' ', state, attempts, result) from pawl.job_state where id = $1::text::uuid`, id)
	}
	if told := state(); told != "running 0" {
		t.Errorf("it is %s", told)
	}
	c := claims.Items[0]
	r.do("POST", "/api/v1/tasks/mail/complete", map[string]any{"items": []any{map[string]any{"id": c.ID, "leaseToken": c.LeaseToken, "result": map[string]bool{"sent": true}}}}).want(200)
	if told := state(); told != `succeeded 1 {"sent": true}` {
		t.Errorf("it is %s", told)
	}
}

// cutRev leaves the revision out, which the second writer of a key raises.
func cutRev(row string) string {
	return regexp.MustCompile(` \d+( \{[^}]*\}?\}?)?$`).ReplaceAllString(row, "$1")
}
