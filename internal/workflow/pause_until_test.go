package workflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func TestPauseUntil(t *testing.T) {
	hold(t,
		behaviour{"a pause ends by itself and what came meanwhile is done", pauseEndsByItself},
		behaviour{"a crash on either side of the end repeats nothing", crashAroundPauseEnd},
		behaviour{"a pause is replaced, resumed and kept by a deployment", pauseIsReplaced},
		behaviour{"the end of a pause mends no failure", pauseEndMendsNothing},
		behaviour{"a call that is rejected says who paused the workflow", rejectionSaysWho},
	)
}

func (k *kit) pauseFor(name string, d time.Duration, note string) (changed bool) {
	k.t.Helper()
	terms := lane.PauseTerms{Note: note}
	if d != 0 {
		terms.Until = time.Now().Add(d)
	}
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = k.s.Pause(ctx, tx, name, "ada (token x)", terms)
		return err
	})
	return changed
}

// proceed runs the job that ends pauses, as the queue does at the instant for which it is
// armed.
func (k *kit) proceed(w workflowstore.Workflow) (again time.Time) {
	k.t.Helper()
	again, err := k.s.proceed(k.t.Context(), w.Lane)
	if err != nil {
		k.t.Fatal(err)
	}
	return again
}

func (k *kit) pauseOf(w workflowstore.Workflow) (p runstore.Pause) {
	k.read(func(ctx context.Context, tx *store.Tx) error {
		l, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
		p = l.Pause
		return err
	})
	return p
}

func pauseEndsByItself(t *testing.T, k *kit) {
	w := k.deploy("until", "1", producing(map[string]string{"p": "10m"}))
	k.work(w)
	k.pauseFor("until", time.Hour, "the shop moves")
	until := time.Now().Add(time.Hour)
	armed := k.armed.specs[len(k.armed.specs)-1]
	if armed.Task != ContinueName || !armed.RunAt.Equal(until) {
		t.Errorf("armed: %+v", armed)
	}
	d := k.look("until")
	want := "It is paused until " + pawl.FormatTime(until) + ", by ada since " + pawl.FormatTime(time.Now()) + ": the shop moves. It then continues by itself."
	if d.State != run.Stopped || d.Sentence != want {
		t.Errorf("people see %s: %s", d.State, d.Sentence)
	}
	why, err := k.s.Why(t.Context(), lane.Viewer{}, "until", time.Time{})
	if err != nil || why.Next != "It does nothing until its pause is over, at "+pawl.FormatTime(until)+"." || !why.Gates[0].Until.Equal(until) {
		t.Errorf("why: %s %+v (%v)", why.Next, why.Gates[0], err)
	}
	k.publish(w, "in", "a")
	k.ranSince()
	pass(30 * time.Minute)
	expect(t, "next look", k.proceed(w), until)
	expect(t, "state", k.look("until").State, run.Stopped)
	pass(30 * time.Minute)
	expect(t, "look after the end", k.proceed(w), time.Time{})
	expect(t, "state", k.look("until").State, run.Idle)
	k.work(w)
	expect(t, "runs after it", k.ranSince(), []string{"consumers.take.prepare", "producers.p.handler"})
	expect(t, "what is left", k.pauseOf(w), runstore.Pause{})
}

func crashAroundPauseEnd(t *testing.T, k *kit) {
	for _, place := range []string{"continuing", "continued"} {
		w := k.deploy("crash-"+place, "1", producing(nil))
		k.pauseFor(w.Name, time.Minute, "")
		pass(time.Minute)
		k.fault = func(at string) error {
			if at == place {
				return errCrash
			}
			return nil
		}
		if _, err := k.s.proceed(t.Context(), w.Lane); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		k.fault = nil
		k.start("after-" + place)
		expect(t, "look again", k.proceed(w), time.Time{})
		expect(t, "state", k.look(w.Name).State, run.Idle)
		n := 0
		k.read(func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select count(*) from audit_log where action = 'workflow.resume' and subject = $1`, "workflow:"+w.Name).Scan(&n)
		})
		expect(t, "lines", n, 1)
	}
}

func pauseIsReplaced(t *testing.T, k *kit) {
	w := k.deploy("replaced", "1", producing(map[string]string{"p": "10m"}))
	k.pauseFor("replaced", time.Minute, "one")
	expect(t, "the same again", k.pauseFor("replaced", time.Minute, "one"), false)
	k.deploy("replaced", "2", producing(map[string]string{"p": "20m"}))
	expect(t, "note after a deployment", k.pauseOf(w).Note, "one")
	pass(30 * time.Second)
	expect(t, "another end", k.pauseFor("replaced", time.Hour, "two"), true)
	pass(time.Minute)
	expect(t, "look at the old end", k.proceed(w), k.pauseOf(w).Until)
	k.resume("replaced")
	expect(t, "after resume", k.pauseOf(w), runstore.Pause{})
	k.pauseFor("replaced", 0, "")
	pass(2 * time.Hour)
	k.proceed(w)
	expect(t, "state after an old end", k.look("replaced").State, run.Stopped)
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Pause(ctx, tx, "replaced", "ada", lane.PauseTerms{Until: time.Now().Add(-time.Second)})
		return err
	})
	if pawl.ErrorCode(err) != pawl.CodeInvalid {
		t.Errorf("the past: %v", err)
	}
}

func pauseEndMendsNothing(t *testing.T, k *kit) {
	w := k.deploy("unmended", "1", orderDefinition())
	k.desk.fail(pawl.ClassAuth)
	k.publish(w, "in", "a")
	k.work(w)
	expect(t, "issue", k.look("unmended").Issue, run.IssueSignIn)
	k.pauseFor("unmended", time.Minute, "")
	pass(time.Minute)
	k.ranSince()
	k.proceed(w)
	k.work(w)
	expect(t, "issue", k.look("unmended").Issue, run.IssueSignIn)
	expect(t, "runs", len(k.ranSince()), 0)
}

func rejectionSaysWho(t *testing.T, k *kit) {
	w := k.deploy("rejected", "1", orderDefinition())
	k.desk.fail(pawl.ClassAuth)
	k.publish(w, "in", "a")
	k.work(w)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Reject(ctx, tx, k.runs(w)[0].ID, "ada (token x)")
		return err
	})
	if p := k.pauseOf(w); p.By != "ada" || !strings.Contains(p.Note, "was rejected") {
		t.Errorf("%+v", p)
	}
}
