package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// readFirst is orderDefinition with a read in prepare, and one in a producer if
// there is to be one.
func readFirst(producer bool) definition {
	d := orderDefinition().with(map[string]goHandler{
		"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
			taken := takeOne("in")(c, args)
			c.tool("desk", "read", nil)
			return taken
		},
	})
	if producer {
		d.config.Producers = []Producer{{Name: "poll", Publishes: []string{"in"}, Schedule: Schedule{Interval: "1h"}}}
		d.handlers["producers.poll.handler"] = func(c *goCtx, _ []json.RawMessage) any {
			c.tool("desk", "read", nil)
			return map[string]any{"polled": true}
		}
	}
	return d
}

// failureCase is a class of failure: what becomes of the run, what people see,
// and who ends it.
type failureCase struct {
	class  pawl.Class
	status pawl.Status
	keeps  bool // the reservations of a run that fails in mutate
	word   run.State
	issue  run.Issue
	exit   run.Exit
}

var failureCases = []failureCase{
	{pawl.ClassTransient, pawl.StatusPausedTransient, false, run.Running, run.IssueBackingOff, run.ExitBackoff},
	{pawl.ClassLogic, pawl.StatusFailedLogic, false, run.NeedsAttention, run.IssueFixesUsedUp, run.ExitFix},
	{pawl.ClassAuth, pawl.StatusPausedApproval, true, run.NeedsAttention, run.IssueSignIn, run.ExitUser},
	{pawl.ClassPermission, pawl.StatusPausedApproval, true, run.NeedsAttention, run.IssuePermission, run.ExitUser},
	{pawl.ClassPrecondition, pawl.StatusPausedApproval, true, run.NeedsAttention, run.IssuePrecondition, run.ExitUser},
	{pawl.ClassInternal, pawl.StatusFailedInternal, false, run.NeedsAttention, run.IssueInternal, run.ExitUser},
}

// ..A-118, A-132, A-133, A-136..A-139, X-07,
// X-21, context 3.8: every class of failure in every phase that can meet it
// gives the run its status and leaves its phase; the reservations stay where
// the same run goes on; and only the one who is to end it does.
func TestClassDecidesWhatFollows(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, c := range failureCases {
			for _, phase := range []pawl.Phase{pawl.PhaseExecuting, pawl.PhasePreparing, pawl.PhaseMutating} {
				t.Logf("%s at %s", c.class, phase)
				k.desk.clear()
				name := fmt.Sprintf("%s-%s", c.class, phase)
				d := readFirst(phase == pawl.PhaseExecuting)
				method := "read"
				if phase == pawl.PhaseMutating {
					method = "order"
				}
				k.desk.refuseTimes(method, c.class)
				w := k.deploy(name, "1", d)
				if phase != pawl.PhaseExecuting {
					k.publish(w, "in", "a")
				} else { // the consumers look first, and read: only the producer is to fail
					k.desk.refuse = nil
					k.write(func(ctx context.Context, tx *store.Tx) error {
						for _, c := range []string{"order", "tell"} {
							if err := workflowstore.In(tx).SetWakeAt(ctx, w.ID, c, time.Time{}); err != nil {
								return err
							}
						}
						return nil
					})
					k.desk.refuseTimes("read", c.class)
				}
				until := k.work(w)
				k.checkInvariants(w)
				failed := k.lastRun(w)
				expectRun(t, failed, phase, c.status)
				if failed.ErrorClass != c.class || failed.ErrorCode != "refused" || !strings.Contains(failed.ErrorMessage, "refused as "+string(c.class)) {
					t.Errorf("the error is %s of class %s: %s", failed.ErrorCode, failed.ErrorClass, failed.ErrorMessage)
				}
				if see := k.look(w.Name); see.State != c.word || see.Issue != c.issue {
					t.Errorf("people see %s, %s", see.State, see.Issue)
				}
				k.expectHeld(t, w, failed, c.keeps)
				k.expectExit(t, w, d, c, failed, until)
				k.work(w)
				if want := []string{"a"}; phase != pawl.PhaseExecuting && !slices.Equal(k.desk.things(), want) {
					t.Errorf("in the end the orders are %v, want %v", k.desk.things(), want)
				}
				if last := k.lastRun(w); last.Status != pawl.StatusCommitted {
					t.Errorf("in the end the newest run is %s at %s", last.Status, last.Phase)
				}
			}
		}
	})
}

// expectHeld compares what a run that failed holds.
func (k *kit) expectHeld(t *testing.T, w workflowstore.Workflow, failed runstore.Run, keeps bool) {
	t.Helper()
	if failed.HandlerType == pawl.HandlerProducer {
		return
	}
	e := k.find(w, "in", "a")
	attempt := 0
	if failed.Phase == pawl.PhaseMutating && !keeps {
		attempt = 1
	}
	switch held := keeps && failed.Phase == pawl.PhaseMutating; {
	case held && (e.Status != eventstore.EventReserved || e.ReservedBy != failed.ID):
		t.Errorf("the event is %s by %q, and the run is to hold it", e.Status, e.ReservedBy)
	case !held && (e.Status != eventstore.EventPending || e.ReservedBy != "" || e.Attempt != attempt):
		t.Errorf("the event is %s by %q after %d releases, and is to be pending after %d", e.Status, e.ReservedBy, e.Attempt, attempt)
	}
}

// expectExit holds that nobody but the one of the case ends the wait, and lets
// that one do it.
func (k *kit) expectExit(t *testing.T, w workflowstore.Workflow, d definition, c failureCase, failed runstore.Run, until time.Time) {
	t.Helper()
	if c.exit == run.ExitBackoff {
		if wait := time.Until(until); wait != 10*time.Second {
			t.Errorf("it is tried again in %v, not in 10 s", wait)
		}
		pass(time.Until(until))
		k.work(w)
		k.expectSuccessor(t, w, failed, failed.ScriptVersion)
		return
	}
	if !until.IsZero() {
		t.Errorf("it wants to be woken at %v, although only a person can help", until)
	}
	pass(24 * time.Hour)
	k.start("n-later")
	k.work(w)
	if now := k.lastRun(w); now.ID != failed.ID || now.Status != failed.Status {
		t.Errorf("time and a restart were enough to go on: %v", k.story(w))
	}
	w = k.deploy(w.Name, "2", d)
	k.work(w)
	if c.exit == run.ExitFix {
		k.expectSuccessor(t, w, failed, w.Version)
		return
	}
	if now := k.lastRun(w); now.ID != failed.ID || now.Status != failed.Status {
		t.Errorf("a new version was enough to go on: %v", k.story(w))
	}
	if !k.resume(w.Name) {
		t.Error("resume changes nothing")
	}
	k.work(w)
	if run.Resumable(failed.Status) { // the same row
		for _, r := range k.runs(w) {
			if r.ID == failed.ID && r.Status != pawl.StatusCommitted || r.RetryOf != "" {
				t.Errorf("the run did not go on in its own row: %v", k.story(w))
			}
		}
		return
	}
	k.expectSuccessor(t, w, failed, failed.ScriptVersion)
}

// expectSuccessor holds that a run is followed by one that committed.
func (k *kit) expectSuccessor(t *testing.T, w workflowstore.Workflow, failed runstore.Run, version string) {
	t.Helper()
	for _, r := range k.runs(w) {
		if r.ID == failed.ID && (r.Status != failed.Status || r.Phase != failed.Phase || r.ErrorMessage != failed.ErrorMessage) {
			t.Errorf("the run that failed was rewritten: %s at %s", r.Status, r.Phase)
		}
		if r.RetryOf != failed.ID {
			continue
		}
		if r.Status != pawl.StatusCommitted || r.Attempt != failed.Attempt+1 || r.ScriptVersion != version {
			t.Errorf("the successor is %s, attempt %d, version %.8s; want committed, %d, %.8s", r.Status, r.Attempt, r.ScriptVersion, failed.Attempt+1, version)
		}
		return
	}
	t.Errorf("nothing follows run %s: %v", failed.ID, k.story(w))
}

// lessons 34..36: what failed first is why the phase failed,
// whatever the handler does after it; a class is never guessed from a text.
func TestFirstFailureOfAPhaseWins(t *testing.T) {
	read := func(c *goCtx) { caught(func() { c.tool("desk", "read", nil) }) }
	order := func(c *goCtx) { caught(func() { c.tool("desk", "order", "x") }) }
	both(t, func(t *testing.T, k *kit) {
		for i, c := range []struct {
			name   string
			class  pawl.Class // of the desk's refusal of a read
			probe  func(c *goCtx)
			status pawl.Status
			code   string
		}{
			{"caught and returned", pawl.ClassTransient, read, pawl.StatusPausedTransient, "refused"},
			{"caught, then a violation", pawl.ClassTransient, func(c *goCtx) { read(c); order(c) }, pawl.StatusPausedTransient, "refused"},
			{"caught, then thrown", pawl.ClassAuth, func(c *goCtx) { read(c); throw("timeout, connection reset, 503") }, pawl.StatusPausedApproval, "refused"},
			{"a violation, then a failure", pawl.ClassAuth, func(c *goCtx) { order(c); read(c) }, pawl.StatusFailedLogic, "phase"},
			{"a violation, then thrown", "", func(c *goCtx) { order(c); throw("x") }, pawl.StatusFailedLogic, "phase"},
			{"a text that looks like a network", "", func(*goCtx) { throw("ECONNRESET: connection reset, HTTP 503") }, pawl.StatusFailedLogic, "Error"},
		} {
			k.desk.refuse = nil
			if c.class != "" {
				k.desk.refuseTimes("read", c.class)
			}
			_, r := k.probeRun(fmt.Sprintf("w%d", i), "prepare", func(g *goCtx, _ string) { c.probe(g) })
			expectRun(t, r, pawl.PhasePreparing, c.status)
			if r.ErrorCode != c.code {
				t.Errorf("%s: the error is %s: %s", c.name, r.ErrorCode, r.ErrorMessage)
			}
		}
	})
}

// of two calls that are under way and both fail, the first that fails is
// why.
func TestFirstOfTwoFailuresAtOnceWins(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		gate := map[string]chan struct{}{`"transient"`: make(chan struct{}), `"auth"`: make(chan struct{})}
		k.plug("slow", goTool{call: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			<-gate[string(c.Args)]
			return nil, refusal(pawl.Class(strings.Trim(string(c.Args), `"`)))
		}})
		_, r := k.probeRun("shop", "prepare", func(c *goCtx, _ string) {
			var both sync.WaitGroup
			for class := range gate {
				both.Go(func() { caught(func() { c.tool("slow", "look", json.RawMessage(class)) }) })
			}
			for _, class := range []string{`"auth"`, `"transient"`} {
				synctest.Wait()
				close(gate[class])
			}
			both.Wait()
		})
		expectRun(t, r, pawl.PhasePreparing, pawl.StatusPausedApproval)
	})
}

// context 3.8.2, A-98: an error without a class is a fault of the host and never
// one of the script; a store or a script worker that is away for a moment is
// tried again.
func TestErrorsWithoutAClassAreInternal(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		away := &pawl.Error{Code: pawl.CodeUnavailable, Msg: "away for a moment"}
		for i, c := range []struct {
			name   string
			err    error
			status pawl.Status
		}{
			{"plain", errors.New("timeout 503 ECONNRESET"), pawl.StatusFailedInternal},
			{"away", away, pawl.StatusPausedTransient},
			{"deadline", fmt.Errorf("read: %w", context.DeadlineExceeded), pawl.StatusPausedTransient},
		} {
			k.plug("odd", goTool{call: func(context.Context, tool.Call) (json.RawMessage, error) { return nil, c.err }})
			_, r := k.probeRun(fmt.Sprintf("w%d", i), "prepare", func(g *goCtx, _ string) { g.tool("odd", "look", nil) })
			expectRun(t, r, pawl.PhasePreparing, c.status)
		}
		w := k.deploy("workers", "1", orderDefinition())
		k.s.cfg.Scripts = brokenScripts{&k.scripts, away}
		k.work(w)
		expectRun(t, k.lastRun(w), pawl.PhasePreparing, pawl.StatusPausedTransient)
	})
}

// brokenScripts cannot run anything.
type brokenScripts struct {
	Scripts
	err error
}

func (b brokenScripts) Run(context.Context, script.Request, script.Host, script.Limits) (script.Result, error) {
	return script.Result{}, fmt.Errorf("wait for a script worker: %w", b.err)
}

// X-24, context 3.8: a read that is cut off because its phase was ended is not
// why the phase failed: a script that loops while it reads is a fault of the
// script, and no trouble of the network.
func TestReadsThatAreCutOffAreNotTheReason(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		entered := make(chan struct{})
		k.plug("slow", goTool{call: func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
			close(entered)
			<-ctx.Done()
			return nil, &tool.Error{Class: pawl.ClassTransient, Code: "cut_off", Msg: "cut off", Err: ctx.Err()}
		}})
		w := k.deploy("shop", "1", orderDefinition())
		k.s.cfg.Scripts = loopingScripts{&k.scripts, entered}
		k.work(w)
		r := k.lastRun(w)
		expectRun(t, r, pawl.PhasePreparing, pawl.StatusFailedLogic)
		if r.ErrorCode != "limit_cpu" {
			t.Errorf("the error is %s: %s", r.ErrorCode, r.ErrorMessage)
		}
	})
}

// loopingScripts read, do not wait for the answer, and loop until they are
// ended, as a pool ends them.
type loopingScripts struct {
	Scripts
	entered chan struct{}
}

func (l loopingScripts) Run(ctx context.Context, _ script.Request, host script.Host, _ script.Limits) (script.Result, error) {
	ctx, end := context.WithCancel(ctx)
	answered := make(chan error)
	go func() {
		_, err := host.Call(ctx, "tool", json.RawMessage(`{"connection":"slow","method":"look"}`))
		answered <- err
	}()
	<-l.entered
	end()
	if err := <-answered; fmt.Sprintf("%T", err) == fmt.Sprintf("%T", script.Abort(nil)) { // it wins over a limit
		return script.Result{}, &script.Aborted{Op: "tool", Cause: err}
	}
	return script.Result{}, &script.LimitError{Limit: script.LimitCPU, Allowed: "30s"}
}
