package workflow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// mechanic proposes what a test tells it to.
type mechanic struct {
	asked   []repair.Evidence
	propose func(e repair.Evidence) (repair.Proposal, error)
}

func (*mechanic) Name() string { return "mechanic" }

func (m *mechanic) Propose(_ context.Context, e repair.Evidence) (repair.Proposal, error) {
	m.asked = append(m.asked, e)
	return m.propose(e)
}

// brokenDefinition fails for the event "bad" in prepare.
func brokenDefinition() definition {
	d := orderDefinition()
	d.handlers["consumers.order.prepare"] = func(c *goCtx, args []json.RawMessage) any {
		if ids := c.peek("in"); len(ids) > 0 && ids[0] == "bad" {
			throw("cannot read it")
		}
		return takeOneAgain(c)
	}
	d.names = "; ctx.tools.desk.order()"
	return d
}

// takeOneAgain peeks a second time, as brokenDefinition does.
func takeOneAgain(c *goCtx) any { return takeOne("in")(c, nil) }

// mendedDefinition reads as brokenDefinition does, and takes everything.
func mendedDefinition() definition {
	d := orderDefinition()
	d.handlers["consumers.order.prepare"] = func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if len(ids) > 0 && ids[0] == "bad" {
			return take("in", ids[0])
		}
		return takeOneAgain(c)
	}
	return d
}

func (k *kit) repairs(w workflowstore.Workflow) (states []string) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list, err := workflowstore.In(tx).ListRepairs(ctx, w.ID, store.Place{}, 10)
		for _, r := range list {
			states = append(states, strings.TrimSpace(r.State+" "+r.Reason))
		}
		return err
	})
	return states
}

// context 3.9: a script that failed is
// replaced by a proposal that was checked, and the retry comes at once.
func TestFailedScriptIsFixedAndRetriedAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		m := &mechanic{}
		k.s.cfg.Repair = m
		w := k.deploy("shop", "1", brokenDefinition())
		k.publish(w, "in", "good")
		k.settle(w)
		mended := k.define("shop", "2", mendedDefinition())
		m.propose = func(repair.Evidence) (repair.Proposal, error) {
			return repair.Proposal{Script: mended, Explanation: "takes it"}, nil
		}
		k.publish(w, "in", "bad")
		k.settle(w)
		if diff := cmp.Diff([]string{"activated"}, k.repairs(w)); diff != "" {
			t.Fatalf("proposals (-want +got):\n%s", diff)
		}
		if e := m.asked[0]; e.Handler != "consumers.order" || !strings.Contains(e.Error, "cannot read it") || len(e.Reads) == 0 || e.Types == "" {
			t.Errorf("the evidence is %+v", e)
		}
		if got := k.workflow("shop").Version; got != VersionOf("w.ts", mended) {
			t.Error("the proposal is not in force")
		}
		if got := k.statuses(w, "in")["bad"]; got != eventstore.EventConsumed {
			t.Errorf("the event is %s", got)
		}
		if d, err := k.s.Describe(t.Context(), "shop"); err != nil || d.State != run.Idle {
			t.Errorf("people see %s (%v)", d.State, err)
		}
	})
}

// Proposals that fail, widen or change what went well are refused, and after
// two a person is needed; a restart grants no new budget.
func TestBadProposalsAreRefusedAndTheBudgetHolds(t *testing.T) {
	for name, test := range map[string]struct {
		propose func(k *kit) (repair.Proposal, error)
		reason  string
	}{
		"no proposal": {func(*kit) (repair.Proposal, error) {
			return repair.Proposal{}, &repair.Error{Class: pawl.ClassInternal, Msg: "idle talk", Rejected: true}
		}, "rejected idle talk"},
		"no script": {func(*kit) (repair.Proposal, error) { return repair.Proposal{Script: "nonsense"}, nil }, "rejected no such script"},
		"still broken": {func(k *kit) (repair.Proposal, error) {
			return repair.Proposal{Script: k.define("shop", "same", brokenDefinition())}, nil
		}, "rejected the run fails with it too: Error: cannot read it"},
		"another topic": {func(k *kit) (repair.Proposal, error) {
			d := mendedDefinition()
			d.config.Topics = append(d.config.Topics, "more")
			return repair.Proposal{Script: k.define("shop", "wide", d)}, nil
		}, "rejected "},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				m := &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) { return test.propose(k) }}
				k.s.cfg.Repair = m
				w := k.deploy("shop", "1", brokenDefinition())
				before := w.Version
				k.publish(w, "in", "good")
				k.settle(w)
				k.publish(w, "in", "bad")
				k.settle(w)
				k.start("n2")
				k.s.cfg.Repair = m
				k.settle(w)
				got := k.repairs(w)
				if len(got) != maxFixes || !strings.HasPrefix(got[0], test.reason) {
					t.Errorf("proposals: %q, want %d that begin with %q", got, maxFixes, test.reason)
				}
				if len(m.asked) == maxFixes && len(m.asked[1].Attempts) != 1 {
					t.Errorf("the second question tells of %d earlier proposals", len(m.asked[1].Attempts))
				}
				if k.workflow("shop").Version != before {
					t.Error("a bad proposal came into force")
				}
				if d, err := k.s.Describe(t.Context(), "shop"); err != nil || d.State != run.NeedsAttention || d.Issue != run.IssueFixesUsedUp {
					t.Errorf("people see %s, %s (%v)", d.State, d.Issue, err)
				}
			})
		})
	}
}

// A repairer that does not answer uses up no proposal: it is asked again, later
// and later, and the proposal that comes then counts as the first.
func TestRepairerThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		mended := k.define("shop", "2", mendedDefinition())
		begun := time.Now()
		var at []time.Duration
		m := &mechanic{}
		m.propose = func(e repair.Evidence) (repair.Proposal, error) {
			at = append(at, time.Since(begun))
			if len(e.Attempts) > 0 {
				t.Errorf("it is told of %d proposals that nobody made", len(e.Attempts))
			}
			if len(at) < run.TransientAttempts {
				return repair.Proposal{}, &repair.Error{Class: pawl.ClassTransient, Msg: "away"}
			}
			return repair.Proposal{Script: mended}, nil
		}
		k.s.cfg.Repair = m
		w := k.deploy("shop", "1", brokenDefinition())
		k.publish(w, "in", "bad")
		k.work(w)
		if d := k.look("shop"); d.Issue != run.IssueFixing || !sameInstant(d.NextAt, begun.Add(10*time.Second)) {
			t.Errorf("people see %s, and the next attempt at %v", d.Issue, d.NextAt)
		}
		k.start("n2") // a restart neither asks at once nor begins to count anew
		k.s.cfg.Repair = m
		k.settle(w)
		seconds := []time.Duration{0, 10, 30, 70, 150, 310}
		for i := range seconds {
			seconds[i] *= time.Second
		}
		if diff := cmp.Diff(seconds, at); diff != "" {
			t.Errorf("it was asked at (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"activated", "failed away", "failed away", "failed away", "failed away", "failed away"}, k.repairs(w)); diff != "" {
			t.Errorf("proposals (-want +got):\n%s", diff)
		}
		if got := k.statuses(w, "in")["bad"]; got != eventstore.EventConsumed {
			t.Errorf("the event is %s", got)
		}
	})
}

// After so many questions without an answer a person is needed, who gets them
// all anew by resuming.
func TestRepairerThatNeverAnswersIsGivenUp(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		m := &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) {
			return repair.Proposal{}, &repair.Error{Class: pawl.ClassTransient, Msg: "away"}
		}}
		k.s.cfg.Repair = m
		w := k.deploy("shop", "1", brokenDefinition())
		k.publish(w, "in", "bad")
		k.settle(w)
		expect(t, "questions", len(m.asked), run.TransientAttempts)
		if d := k.look("shop"); d.State != run.NeedsAttention || d.Issue != run.IssueFixesUsedUp {
			t.Errorf("people see %s, %s", d.State, d.Issue)
		}
		k.resume("shop")
		k.settle(w)
		expect(t, "questions after a person resumed it", len(m.asked), 2*run.TransientAttempts)
	})
}

// Lesson 42: a version that a person deployed meanwhile is not overwritten, and
// a crash after the answer asks again.
func TestFixDoesNotOverwriteANewerVersion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		m := &mechanic{}
		k.s.cfg.Repair = m
		w := k.deploy("shop", "1", brokenDefinition())
		k.settle(w)
		k.publish(w, "in", "bad")
		m.propose = func(repair.Evidence) (repair.Proposal, error) {
			k.deploy("shop", "by hand", mendedDefinition())
			return repair.Proposal{Script: k.define("shop", "by machine", mendedDefinition())}, nil
		}
		k.settle(w)
		if diff := cmp.Diff([]string{"rejected another version was deployed meanwhile"}, k.repairs(w)); diff != "" {
			t.Errorf("proposals (-want +got):\n%s", diff)
		}
		if got := k.statuses(w, "in")["bad"]; got != eventstore.EventConsumed {
			t.Errorf("the event is %s", got)
		}
	})
}

func TestCrashAfterAProposalAsksAgain(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		mended := k.define("shop", "2", mendedDefinition())
		m := &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) { return repair.Proposal{Script: mended}, nil }}
		k.s.cfg.Repair = m
		w := k.deploy("shop", "1", brokenDefinition())
		k.publish(w, "in", "bad")
		if !k.crashAt(w, "proposed", 1) {
			t.Fatal("nothing was proposed")
		}
		k.s.cfg.Repair = m
		k.settle(w)
		if diff := cmp.Diff([]string{"activated"}, k.repairs(w)); diff != "" {
			t.Errorf("proposals (-want +got):\n%s", diff)
		}
	})
}
