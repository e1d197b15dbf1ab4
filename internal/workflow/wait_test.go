package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// process is one life of a service with its queue, as a server has them.
type process struct {
	*kit
	stop func()
}

// restart begins a new process on the database of a kit: with its queue, the
// jobs of a start, and the connections that are given.
func restart(t *testing.T, k *kit, connections ...tool.Named) *process {
	t.Helper()
	tools, err := tool.NewSet(connections...)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{kit: k}
	k.s, err = New(Options{
		DB: k.db, Scripts: &k.scripts, Tools: tools,
		Ledger: ledger.New(ledger.Config{Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: Holdings{}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(queue.Config{
		DB: k.db, Node: store.Node{ID: "node", Share: true}, Workers: 2,
		Tasks: k.s.Tasks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	k.s.Attach(q)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Errorf("run the queue: %v", err)
		}
	})
	var once sync.Once
	p.stop = func() { once.Do(func() { stop(); done.Wait() }) }
	t.Cleanup(p.stop)
	for _, job := range k.s.Standing() {
		if _, err := q.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// until waits for something, in real time.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !holds(); moment(t) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 90 s", what)
		}
	}
}

// after a restart of the service a consumer that left events pending is
// asked once more, also if its lane has a job for a producer that is due
// tomorrow.
func TestARestartAsksForPendingEvents(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKitWithoutOwner(t, url)
		asked := make(chan string, 100)
		d := consuming(func(c *goCtx, _ []json.RawMessage) any {
			asked <- fmt.Sprint(c.peek("in"))
			return take("in")
		}).producer("p", Schedule{Interval: "24h"}, idle)
		first := restart(t, k)
		w := k.deploy("restart", "1", d)
		<-asked
		until(t, "the producer runs", func() bool { return k.schedules(w)["p"].NextRunAt.After(time.Now().Add(time.Hour)) })
		k.publish(w, "in", "a")
		for <-asked != "[a]" {
		}
		until(t, "the lane rests", func() bool {
			see := k.look("restart")
			return see.State == run.Idle && see.NextAt.After(time.Now())
		})
		first.stop()
		for len(asked) > 0 {
			<-asked
		}
		restart(t, k)
		if got := <-asked; got != "[a]" {
			t.Errorf("after the restart it sees %s", got)
		}
	})
}

// newKitWithoutOwner is a kit whose lanes belong to whoever comes.
func newKitWithoutOwner(t *testing.T, url string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, url: url, db: db, desk: newDesk()}
	k.scripts.defs = map[string]definition{}
	return k
}

// A connection that is missing is no fault of the script: the workflow says what
// it waits for, and goes on by itself when the service is started with it.
func TestAMissingConnectionIsWaitedFor(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKitWithoutOwner(t, url)
		first := restart(t, k)
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a")
		until(t, "it waits", func() bool { return k.look("shop").Issue == run.IssuePrecondition })
		see := k.look("shop")
		if see.State != run.NeedsAttention || !strings.Contains(see.Sentence, "continues when the server is started") || !strings.Contains(see.Sentence, `no connection "desk"`) {
			t.Errorf("people see %s: %s", see.State, see.Sentence)
		}
		waits := k.newest(w)
		first.stop()
		second := restart(t, k) // again without it
		until(t, "it waits again", func() bool {
			r := k.newest(w)
			return r.ID == waits.ID && r.Status == pawl.StatusPausedApproval && r.UpdatedAt.After(waits.UpdatedAt)
		})
		second.stop()
		restart(t, k, tool.Named{Name: "desk", Connection: k.desk, Policy: map[string]tool.Policy{"order": tool.Allow}})
		until(t, "it goes on", func() bool { return slices.Equal(k.desk.things(), []string{"a"}) })
	})
}

// A version that uses another connection ends the wait for the old one.
func TestANewVersionDoesNotWaitForTheOldConnection(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, phase := range []string{"prepare", "mutate"} {
			k.desk.clear()
			name := "typo-in-" + phase
			d := orderBy("dask", "order")
			if phase == "prepare" {
				d = orderDefinition().with(map[string]goHandler{"consumers.order.prepare": func(c *goCtx, _ []json.RawMessage) any {
					c.tool("dask", "read", nil)
					return take("in")
				}})
			}
			w := k.deploy(name, "1", d)
			k.publish(w, "in", "a")
			if until := k.work(w); !until.IsZero() || k.look(name).Issue != run.IssuePrecondition {
				t.Errorf("%s: it wants to be woken at %v, and people see %s", phase, until, k.look(name).Issue)
			}
			k.deploy(name, "2", orderDefinition())
			k.settle(w)
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("%s: orders %v", phase, got)
			}
		}
	})
}

// our own limit puts a run off until it allows it, for hours if need be;
// no attempt is spent, the call keeps its key, and people read why.
func TestOurOwnLimitSpendsNothing(t *testing.T) {
	denied := func(wait time.Duration) *tool.Error {
		return &tool.Error{Class: pawl.ClassTransient, Code: "rate_limited", Msg: "not called yet", NotApplied: true, NotSent: true, Deferred: true, RetryAfter: wait}
	}
	inTime(t, func(t *testing.T, k *kit) {
		for _, method := range []string{"read", "order"} {
			k.desk.clear()
			left := 12
			k.desk.refuse = func(c tool.Call) *tool.Error {
				if c.Method != method {
					return nil
				}
				if left--; left > 0 {
					return denied(7 * time.Hour)
				}
				return nil
			}
			name := "limited-" + method
			w := k.deploy(name, "1", orderDefinition().with(map[string]goHandler{"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
				out := takeOne("in")(c, args)
				if len(c.peek("in")) > 0 {
					c.tool("desk", "read", nil)
				}
				return out
			}}))
			k.publish(w, "in", "a")
			begun := time.Now()
			if until := k.work(w); time.Until(until) != 7*time.Hour {
				t.Errorf("%s: it is tried again in %v", method, time.Until(until))
			}
			see := k.look(name)
			if see.State != run.Running || !strings.Contains(see.Sentence, "does not count as an attempt") || !strings.Contains(see.Sentence, "limit that you set") {
				t.Errorf("%s: people see %s: %s", method, see.State, see.Sentence)
			}
			k.settle(w)
			if took := time.Since(begun); took < 70*time.Hour || !slices.Equal(k.desk.things(), []string{"a"}) {
				t.Errorf("%s: after %v the orders are %v; %v", method, took, k.desk.things(), k.story(w))
			}
			rows := k.ledgerRows(w)
			for _, m := range rows {
				if m.IdempotencyKey != rows[0].IdempotencyKey {
					t.Errorf("%s: the rows are %+v", method, rows)
				}
			}
		}
	})
}

// a question that our own limit puts off is no question in vain.
func TestOurOwnLimitSpendsNoQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		asked := 0
		k.plug("far", goTool{
			call: func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errLost },
			reconcile: func(context.Context, tool.Call) (tool.Answer, error) {
				if asked++; asked < 20 {
					return tool.Answer{}, &tool.Error{Class: pawl.ClassTransient, Code: "rate_limited", Deferred: true, RetryAfter: 3 * time.Hour}
				}
				return tool.Answer{State: tool.Applied}, nil
			},
		})
		w := k.deploy("shop", "1", orderBy("far", "act"))
		k.publish(w, "in", "a")
		begun := time.Now()
		k.settle(w)
		rows := k.ledgerRows(w)
		if len(rows) != 1 || rows[0].State != pawl.MutationApplied || time.Since(begun) != 19*3*time.Hour || rows[0].ReconcileAttempts != 0 {
			t.Errorf("after %v and %d questions the rows are %+v", time.Since(begun), asked, rows)
		}
	})
}

// What became of a call is asked also while the workflow is paused, so that it
// can be resolved and deleted; nothing else is done.
func TestAPausedWorkflowIsAskedAboutItsCall(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, how := range []string{"found", "unknown", "crashed"} {
			k.desk.clear()
			k.desk.knowNothing()
			w := k.deploy(how, "1", orderDefinition())
			k.publish(w, "in", "a", "b")
			if how == "crashed" {
				k.crashAt(w, "called", 1)
			} else {
				k.desk.loseAnswers()
				k.work(w)
			}
			k.desk.answer = nil
			k.pause(how)
			if err := k.remove(how); reasonOf(err) != "outcome_unknown" && reasonOf(err) != ReasonRunActive {
				t.Errorf("%s: it can be deleted: %v", how, err)
			}
			if how == "found" {
				k.desk.inquiry = nil
			}
			k.settle(w)
			m := k.ledgerRows(w)[0]
			if want := map[bool]pawl.MutationState{true: pawl.MutationApplied, false: pawl.MutationIndeterminate}[how == "found"]; m.State != want {
				t.Errorf("%s: the row is %s, want %s", how, m.State, want)
			}
			if how != "found" {
				if err := k.resolve(k.newest(w), DidNotHappen, ""); err != nil {
					t.Errorf("%s: it cannot be resolved: %v", how, err)
				}
				k.settle(w)
			}
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("%s: a paused workflow went on: orders %v", how, got)
			}
			if err := k.remove(how); err != nil {
				t.Errorf("%s: it cannot be deleted: %v", how, err)
			}
		}
	})
}

// A workflow that is deleted asks nobody any more.
func TestDeletingEndsTheQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderBy("desk", "sign"))
		k.publish(w, "in", "a")
		k.work(w)
		r := k.newest(w)
		if err := k.remove("shop"); err != nil {
			t.Fatal(err)
		}
		if got := k.newest(w); got.Status != pawl.StatusCancelled {
			t.Errorf("the run is %s", got.Status)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			a, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
			if err != nil || a.State != mutationstore.ApprovalExpired {
				t.Errorf("the question is %s (%v)", a.State, err)
			}
			return nil
		})
	})
}

// lesson 33: that a person pauses a workflow that needs him is no recovery; it
// is one when the workflow goes on.
func TestPausingIsNoRecovery(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var told []string
		k.s.cfg.Notify = func(_ context.Context, _ *store.Tx, n lane.Notice) error {
			told = append(told, n.What)
			return nil
		}
		w := k.deploy("shop", "1", orderDefinition())
		k.desk.fail(pawl.ClassAuth)
		k.publish(w, "in", "a")
		k.work(w)
		k.pause("shop")
		k.work(w)
		expect(t, "told", told, []string{lane.NoticeAttention})
		k.desk.fail("")
		k.resume("shop")
		k.work(w)
		expect(t, "told when it goes on", told, []string{lane.NoticeAttention, lane.NoticeRecovered})
	})
}

// A-133, lesson 33: a fault inside Pawl is told to people, as everything that
// halts a workflow for good.
func TestFaultsInsideAreTold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for class, issue := range map[pawl.Class]run.Issue{pawl.ClassInternal: run.IssueInternal, pawl.ClassAuth: run.IssueSignIn, pawl.ClassLogic: run.IssueFixesUsedUp} {
			var told []lane.Notice
			k.s.cfg.Notify = func(_ context.Context, _ *store.Tx, n lane.Notice) error {
				told = append(told, n)
				return nil
			}
			w := k.deploy("halts-"+string(class), "1", orderDefinition())
			k.desk.fail(class)
			k.publish(w, "in", "a")
			k.work(w)
			if len(told) != 1 || told[0].What != lane.NoticeAttention || told[0].Issue != issue || told[0].Text == "" || told[0].RunID != k.newest(w).ID {
				t.Errorf("%s: people were told %+v", class, told)
			}
		}
	})
}

// A script process that somebody kills is no reason to halt a workflow: its run
// is repeated once. One that ends so again halts it.
func TestAKilledScriptProcessIsRepeatedOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for kills, want := range map[int]pawl.Status{1: pawl.StatusCommitted, 2: pawl.StatusFailedInternal} {
			k.desk.clear()
			left := kills
			k.s.cfg.Scripts = killedScripts{&k.scripts, func() bool { left--; return left >= 0 }}
			w := k.deploy(fmt.Sprint("killed-", kills), "1", consuming(takeOne("in")))
			k.publish(w, "in", "a")
			if wait := time.Until(k.work(w)); wait != 10*time.Second {
				t.Errorf("%d kills: it is tried again in %v", kills, wait)
			}
			k.settle(w)
			if r := k.newest(w); r.Status != want {
				t.Errorf("%d kills: the run is %s (%s); %v", kills, r.Status, r.ErrorMessage, k.story(w))
			}
		}
	})
}

// killedScripts are scripts whose process is killed while it runs.
type killedScripts struct {
	*fakeScripts
	kill func() bool
}

func (k killedScripts) Run(ctx context.Context, r script.Request, h script.Host, l script.Limits) (script.Result, error) {
	if k.kill() {
		return script.Result{}, fmt.Errorf("run a script: %w", script.ErrWorkerCrashed)
	}
	return k.fakeScripts.Run(ctx, r, h, l)
}

// An ordinary unknown outcome contradicts no rule, whether the tool can be asked
// or not.
func TestAnUnknownOutcomeIsNoAlarm(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.desk.loseAnswers()
		k.desk.knowNothing()
		for _, method := range []string{"order", "mail"} {
			w := k.deploy("by-"+method, "1", orderBy("desk", method))
			k.publish(w, "in", "a")
			k.settle(w)
			if m := k.ledgerRows(w)[0]; m.State != pawl.MutationIndeterminate {
				t.Errorf("%s: the row is %s", method, m.State)
			}
		}
		for _, e := range k.events {
			if e.Alarm != "" {
				t.Errorf("%s of run %s: %s", e.What, e.Run.ID, e.Alarm)
			}
		}
	})
}

// people read of inputs, not of events; nor of handlers and
// topics, whatever state the workflow is in.
func TestPeopleReadOfInputs(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		two := definition{handlers: map[string]goHandler{}}.consumer("zorp", func(*goCtx, []json.RawMessage) any { return take("quux") }, "quux", "quuz").producer("blarg", Schedule{Interval: "1h"}, idle)
		two.config.Producers[0].Publishes = []string{"quux"}
		w := k.deploy("shop", "1", two)
		k.work(w)
		k.publish(w, "quux", "a")
		k.publish(w, "quuz", "a") // of the same input
		k.publish(w, "quux", "b")
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := k.s.PublishExternal(ctx, tx, "shop", ExternalEvent{Topic: "quux", MessageID: "of nothing"}, "tester")
			return err
		})
		k.work(w)
		if see := k.look("shop"); see.Pending != 3 {
			t.Errorf("%d are pending, want 2 inputs and an event of none", see.Pending)
		}
		expectPlain := func(when string) {
			t.Helper()
			why, err := k.s.Why(t.Context(), lane.Viewer{}, "shop", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			text := why.Sentence + why.Next + why.LastText
			for _, g := range why.Gates {
				text += g.Text
			}
			for _, word := range []string{"zorp", "blarg", "quux", "producer", "consumer", "handler", "topic"} {
				if strings.Contains(text, word) {
					t.Errorf("%s: people read of a %s: %s", when, word, text)
				}
			}
		}
		expectPlain("at rest")
		pass(2 * time.Hour)
		expectPlain("due")
		k.crashAt(w, "begun", 1)
		expectPlain("running")
		k.deploy("shop", "2", consuming(takeOne("in")))
		k.work(w)
		expectPlain("without its handler")
	})
}
