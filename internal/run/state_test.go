package run

import (
	"testing"

	"github.com/pawlrun/pawl"
)

// the word and the issue for what a person wants and what
// the newest run says.
func TestWords(t *testing.T) {
	c := func(p pawl.Phase, s pawl.Status, l pawl.MutationState) Run { return consumer(p, s, l) }
	with := func(r Run, class pawl.Class) Run { r.Class = class; return r }
	at := func(ht pawl.HandlerType, s pawl.Status) Run { return Run{Type: ht, Phase: FirstPhase(ht), Status: s} }
	mutating, approval, waiting := pawl.PhaseMutating, pawl.StatusPausedApproval, pawl.StatusPausedReconciliation
	unaskable := c(mutating, waiting, needs)
	unaskable.CanReconcile = false
	source, schedule, producer := pawl.HandlerSource, pawl.HandlerSchedule, pawl.HandlerProducer
	active := at(producer, pawl.StatusActive)

	tests := []struct {
		name      string
		desired   Desired
		newest    Run
		exhausted bool
		word      State
		issue     Issue
	}{
		{"paused", DesiredPaused, active, false, Stopped, IssuePaused},
		{"archived", DesiredArchived, active, false, Stopped, IssueArchived},
		{"undeployed", DesiredUndeployed, Run{}, false, Stopped, IssueNotDeployed},
		{"unknown wish", "other", active, false, Stopped, IssueNotDeployed},
		{"never ran", DesiredActive, Run{}, false, Idle, IssueNone},
		{"running", DesiredActive, active, false, Running, IssueNone},
		{"committed", DesiredActive, c(pawl.PhaseCommitted, pawl.StatusCommitted, applied), false, Idle, IssueNone},
		{"cancelled", DesiredActive, at(producer, pawl.StatusCancelled), false, Idle, IssueNone},
		{"backoff", DesiredActive, at(producer, pawl.StatusPausedTransient), false, Running, IssueBackingOff},
		{"no retries", DesiredActive, at(producer, pawl.StatusPausedTransient), true, NeedsAttention, IssueRetriesUsedUp},
		{"crashed", DesiredActive, c(mutating, pawl.StatusCrashed, inFlight), false, Running, IssueRecovering},
		{"crash loop", DesiredActive, at(source, pawl.StatusCrashed), true, NeedsAttention, IssueCrashLoop},
		{"auth", DesiredActive, with(c(mutating, approval, failed), pawl.ClassAuth), false, NeedsAttention, IssueSignIn},
		{"permission", DesiredActive, with(at(producer, approval), pawl.ClassPermission), false, NeedsAttention, IssuePermission},
		{"precondition", DesiredActive, with(at(producer, approval), pawl.ClassPrecondition), false, NeedsAttention, IssuePrecondition},
		{"approval", DesiredActive, c(mutating, approval, none), false, NeedsAttention, IssueApproval},
		{"reconciling", DesiredActive, c(mutating, waiting, needs), false, Running, IssueReconciling},
		{"unaskable", DesiredActive, unaskable, false, NeedsAttention, IssueOutcomeUnknown},
		{"indeterminate", DesiredActive, c(mutating, waiting, indeterminate), false, NeedsAttention, IssueOutcomeUnknown},
		{"resolved applied", DesiredActive, c(pawl.PhaseMutated, waiting, applied), false, Running, IssueRecovering},
		{"resolved failed", DesiredActive, c(mutating, waiting, failed), false, Running, IssueRecovering},
		{"fixing", DesiredActive, at(producer, pawl.StatusFailedLogic), false, Running, IssueFixing},
		{"no fixes", DesiredActive, at(producer, pawl.StatusFailedLogic), true, NeedsAttention, IssueFixesUsedUp},
		{"logic with open call", DesiredActive, c(mutating, pawl.StatusFailedLogic, needs), false, Running, IssueReconciling},
		{"internal", DesiredActive, at(producer, pawl.StatusFailedInternal), false, NeedsAttention, IssueInternal},
		{"source failed", DesiredActive, at(source, pawl.StatusFailedLogic), false, Running, IssueBackingOff},
		{"source auth", DesiredActive, with(at(source, pawl.StatusFailedLogic), pawl.ClassAuth), false, NeedsAttention, IssueSignIn},
		{"source refused", DesiredActive, with(at(source, pawl.StatusFailedLogic), pawl.ClassPermission), false, NeedsAttention, IssuePermission},
		{"source spent", DesiredActive, at(source, pawl.StatusFailedLogic), true, NeedsAttention, IssueRetriesUsedUp},
		{"source precondition", DesiredActive, with(at(source, pawl.StatusFailedLogic), pawl.ClassPrecondition), false, NeedsAttention, IssuePrecondition},
		{"slot failed", DesiredActive, at(schedule, pawl.StatusFailedLogic), false, NeedsAttention, IssueFailed},
		{"slot auth", DesiredActive, with(at(schedule, pawl.StatusFailedLogic), pawl.ClassAuth), false, NeedsAttention, IssueSignIn},
		{"impossible", DesiredActive, c(pawl.PhaseEmitting, pawl.StatusCancelled, applied), false, NeedsAttention, IssueInconsistent},
		{"producer reconciling", DesiredActive, at(producer, waiting), false, NeedsAttention, IssueInconsistent},
	}
	for _, tt := range tests {
		word, issue := StateOf(tt.desired, tt.newest, tt.exhausted)
		if word != tt.word || issue != tt.issue {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, word, issue, tt.word, tt.issue)
		}
	}
}

// for every combination, Stopped is the wish of a person and nothing
// else, attention always has an issue, and whatever waits for a person needs
// attention.
func TestWordsForEveryCombination(t *testing.T) {
	for r := range everyRun {
		for _, exhausted := range []bool{false, true} {
			word, issue := Health(r, exhausted)
			d := Decide(r)
			fail := func(why string) { t.Errorf("%+v exhausted %v: %s: %s (%s)", r, exhausted, why, word, issue) }
			if word == Stopped {
				fail("a run stopped the lane")
			}
			if word == NeedsAttention && issue == IssueNone {
				fail("no issue")
			}
			if word == Idle && (issue != IssueNone || (r.Status != "" && !Terminal(r.Status))) {
				fail("idle with something to do")
			}
			if r.Status != "" && d.Exit == ExitUser && word != NeedsAttention {
				fail("waits for a person unseen")
			}
			if exhausted && r.Status == pawl.StatusPausedTransient && word != NeedsAttention {
				fail("used up its budget unseen")
			}
		}
	}
}
