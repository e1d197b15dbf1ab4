package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/when"
)

// status is the state and the issue of the lane, by the rules that the chooser
// goes by.
func (v *view) status() (run.State, run.Issue) {
	if v.part != nil && v.part.RejectedRun != "" && v.workflow.Desired == desiredActive {
		return run.Stopped, run.IssuePaused
	}
	state, issue := v.statusOfRun()
	if state == run.Idle && len(v.waits) > 0 {
		return v.statusOfWait()
	}
	if state != run.Stopped && v.lostItsHandler() {
		return run.NeedsAttention, run.IssueInconsistent
	}
	return state, issue
}

func (v *view) statusOfRun() (run.State, run.Issue) {
	if v.newest.Status == pawl.StatusFailedLogic && v.workflow.Desired == desiredActive && (v.cleared() || v.workflow.Version != v.row.ScriptVersion) {
		return run.Running, run.IssueRecovering // a new version is there; the retry comes at once
	}
	if v.proposed() && v.workflow.Desired == desiredActive {
		return run.NeedsAttention, run.IssueApproval
	}
	return run.StateOf(run.Desired(v.workflow.Desired), v.newest, v.exhausted() && !v.cleared())
}

// sentence says an issue in plain language: what is the matter and, where a
// person can do something, what.
func (v *view) sentence(issue run.Issue) string {
	why := v.row.ErrorMessage
	tell := func(text string) string {
		if why == "" {
			return text + "."
		}
		return text + ": " + strings.TrimSuffix(why, ".") + "."
	}
	switch issue {
	case run.IssueNone:
		return ""
	case run.IssuePaused:
		if v.part != nil && v.part.RejectedRun != "" {
			return "It is stopped, because run " + v.part.RejectedRun + " was rejected; resume the workflow to let it continue."
		}
		return lane.PausedSentence(v.pause)
	case run.IssueArchived:
		return "It is archived."
	case run.IssueNotDeployed:
		return "Nothing is deployed."
	case run.IssueWaitingFresh, run.IssueStale:
		return v.waitingWords()
	case run.IssueNoWorker, run.IssueHalted, run.IssueExpectation: // which are not its own
		return ""
	case run.IssueBackingOff:
		if v.row.ErrorCode == codeDeferred {
			return tell("It has reached the limit that you set for the service and continues " + soon(v.now, v.retry.NextAt) + "; this does not count as an attempt")
		}
		return tell("The last attempt failed; it is tried again " + soon(v.now, v.retry.NextAt))
	case run.IssueRetriesUsedUp:
		return tell(fmt.Sprintf("It failed %s in a row and is not retried automatically; resume it when the cause is fixed", times(v.retry.Count)))
	case run.IssueFixing:
		return tell("The script failed and is being fixed")
	case run.IssueFixesUsedUp:
		return tell("The script failed; deploy a corrected version, or resume it if the cause was external")
	case run.IssueReconciling:
		return "The outcome of its last call is being checked" + v.callName() + "; nothing else runs meanwhile."
	case run.IssueOutcomeUnknown:
		return "It is unknown whether its last call" + v.callName() + " happened; check there and record the outcome: happened, did-not-happen or skip."
	case run.IssueApproval:
		if v.proposed() {
			return tell("The script failed, and a repaired one is waiting for your approval")
		}
		return tell("It is waiting for your approval")
	case run.IssueSignIn:
		return tell("An account must be connected again")
	case run.IssuePermission:
		return tell("A permission is missing; grant it and resume")
	case run.IssuePrecondition:
		if v.row.ErrorCode == codeNoConnection {
			return tell("It is waiting for a connection that this server does not have, and continues when the server is started with it")
		}
		return tell("Something that it needs is missing; add it and resume")
	case run.IssueRecovering:
		return "It continues after an interruption."
	case run.IssueCrashLoop:
		return fmt.Sprintf("It was interrupted %s in a row and is not retried automatically; resume it to try once more.", times(v.retry.Crashes))
	case run.IssueFailed:
		return tell("The last run failed")
	case run.IssueInternal:
		return tell("Pawl or a connection failed; resume it when that is fixed")
	case run.IssueInconsistent:
		if v.lostItsHandler() {
			return "The deployed version lacks the part of the script that its unfinished run belongs to; deploy one that has it, or cancel run " + v.row.ID + "."
		}
		return "The stored state of its last run is inconsistent; nothing runs until it has been checked."
	}
	return tell(string(issue))
}

// runSentence is what became of the newest run, for somebody who wants to know
// what happened last.
func (v *view) runSentence() string {
	why := ""
	if v.row.ErrorMessage != "" {
		why = ": " + strings.TrimSuffix(v.row.ErrorMessage, ".")
	}
	switch v.row.Status {
	case pawl.StatusActive:
		return "Working"
	case pawl.StatusCommitted:
		return "Checked; nothing to do"
	case pawl.StatusCancelled:
		return "A run was cancelled"
	case pawl.StatusCrashed:
		return "A run was interrupted"
	case pawl.StatusPausedReconciliation:
		return "Lost the answer to a call" + v.callName()
	case pawl.StatusPausedApproval:
		if v.row.ErrorClass == "" {
			return "Asked for approval"
		}
	case pawl.StatusPausedTransient:
		if v.putOff() {
			return "Delayed" + why
		}
	case pawl.StatusFailedLogic, pawl.StatusFailedInternal:
	}
	return "Failed" + why
}

// putOff: the last attempt was stopped by our own limits, which is nobody's
// failure.
func (v *view) putOff() bool {
	return v.row.Status == pawl.StatusPausedTransient && v.row.ErrorCode == codeDeferred
}

// remedy is the command that ends what a lane stands in.
func (v *view) remedy(l lane.Lane) string {
	resume := run.Command("resume", "workflow", v.workflow.Name)
	switch l.Issue {
	case run.IssueNone:
		if v.newest.Status == pawl.StatusActive {
			return run.Command("cancel", v.row.ID)
		}
		return ""
	case run.IssueNoWorker:
		return run.StartWorker
	case run.IssueHalted:
		return run.Unhalt
	case run.IssueNotDeployed:
		return "pawl apply -f FILE"
	case run.IssueWaitingFresh:
		return run.Command("why", "source", v.waits[0].Source)
	case run.IssueStale:
		return lane.StaleRemedy(v.waits[0])
	case run.IssueExpectation:
		return lane.ExpectationRemedy(pawl.KindWorkflow, v.workflow.Name)
	case run.IssueApproval:
		return run.Command("approve", v.row.ID)
	case run.IssueOutcomeUnknown:
		return run.Command("resolve", v.row.ID, "--outcome", "happened")
	case run.IssueReconciling, run.IssueRecovering, run.IssueInconsistent:
		return run.Command("describe", "run", v.row.ID)
	default: // a person says that the cause is gone
		return resume
	}
}

// times counts attempts.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// soon is a countdown within a sentence.
func soon(now, at time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return strings.TrimPrefix(when.Until(now, at), "Next ")
}

func (v *view) callName() string {
	if v.open == nil {
		return ""
	}
	return fmt.Sprintf(" (%s.%s)", v.open.Tool, v.open.Method)
}

// scheduleWords is how often the workflow checks, for people: the
// schedules of its producers, each once.
func (v *view) scheduleWords() string {
	var list []string
	for _, p := range v.config.Producers {
		text := v.wordsOf(p)
		if text == "" {
			continue
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return "When there are events"
	}
	return strings.Join(list, "; ")
}

// nextAt is when the workflow will do something by itself; zero if it cannot,
// or does not know (lesson 29).
func (v *view) nextAt() time.Time {
	if v.workflow.Desired != desiredActive || v.newest.Status == pawl.StatusPausedApproval { // which waits for a person
		return time.Time{}
	}
	if st, decided := v.chooseForRun(); decided {
		return st.until
	}
	next := v.dueProducer().until
	if v.parts != nil {
		next = earlier(next, v.parts.counts.NextAt)
	}
	for _, c := range v.config.Consumers {
		next = earlier(next, v.wakes[c.Name])
	}
	for _, p := range v.schedules {
		next = earlier(next, v.startOf(p))
	}
	return next
}

// wordsOf is when a producer runs, for people; empty if its zone was lost.
func (v *view) wordsOf(p Producer) string {
	spec, limited := v.times[p.Name]
	if !limited {
		var err error
		if spec, err = p.Schedule.Spec(); err != nil {
			return ""
		}
	}
	if spec.Kind() == "" {
		return ""
	}
	return spec.Describe()
}
