package workflow

import (
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/terms"
)

// gates are the conditions of the next run: it begins when all are met. They are
// told by the rules that the chooser goes by. looks says that somebody is about
// to look at what waits.
func (v *view) gates(l lane.Lane, there run.Workforce, looks bool, stale []terms.Stale) []lane.Gate {
	worker := lane.Gate{Name: "worker", Open: !there.Missing, Text: there.Sentence()}
	wanted := lane.Gate{Name: "wanted", Open: v.workflow.Desired == desiredActive, Text: "It is enabled."}
	if !wanted.Open {
		wanted.Text = "It is " + v.workflow.Desired + "."
		if v.workflow.Desired == desiredPaused {
			wanted.Text, wanted.Until = lane.PausedWords(v.pause), v.pause.Until
		}
	}
	idle := lane.Gate{Name: "idle", Open: v.newest.Status != pawl.StatusActive, Text: "No run is active."}
	if !idle.Open {
		idle.Text = fmt.Sprintf("Run %s has been active since %s.", v.row.ID, pawl.FormatTime(v.row.CreatedAt))
	}
	if idle.Open && v.parts != nil && v.parts.Active {
		idle.Text = "Runs of partitions are active, which hold back only their own partition."
	}
	gates := []lane.Gate{wanted, idle, v.gateHealthy(l), v.gateDue(l, looks)}
	if v.parts != nil {
		gates = append(gates, v.gateParts())
	}
	if len(v.config.Needs) > 0 {
		gates = append(gates, lane.FreshGate(v.config.Needs, stale, v.now))
	}
	return append(gates, worker, lane.HaltGate(there))
}

// gateHealthy is whether anything is left undone that holds back new work.
func (v *view) gateHealthy(l lane.Lane) lane.Gate {
	g := lane.Gate{Name: "healthy", Open: true}
	halted := v.newest.Status != pawl.StatusActive && run.Halts(v.newest, v.exhausted())
	switch st, _ := v.chooseForRun(); {
	case l.Issue == run.IssueInconsistent:
		g.Open, g.Text = false, l.Sentence
	case v.row.ID == "" && v.parts != nil:
		g.Text = "No earlier run is unresolved, partitions apart."
	case v.row.ID == "":
		g.Text = "It has never run."
	case v.newest.Status == pawl.StatusActive:
		g.Text = "No earlier run is unresolved."
	case halted && st.do != actWait:
		g.Text = "Its last run continues: " + st.reason + "."
	case halted:
		_, issue := run.Health(v.newest, v.exhausted() && !v.cleared())
		g.Open, g.Text = false, v.sentence(issue)
		if g.Text == "" { // it goes on as soon as it is meant to run
			g.Text = "Its last run has not finished: " + st.reason + "."
		}
	case v.newest.Status == pawl.StatusCancelled:
		g.Text = "Its last run was cancelled."
	default:
		g.Text = "Its last run has finished."
	}
	return g
}

// gateDue is whether there is something to do, beside what is under way.
func (v *view) gateDue(l lane.Lane, looks bool) lane.Gate {
	due := v.dueProducer()
	if v.newest.Status == pawl.StatusActive && due.handler == v.row.Handler {
		due = step{} // that is what it does
	}
	switch st, decided := v.chooseForRun(); {
	case decided && st.do != actWait && v.newest.Status != pawl.StatusActive:
		return lane.Gate{Name: "due", Open: true, Text: "Its last run continues."}
	case due.do == actProduce && due.trigger == triggerManual:
		return lane.Gate{Name: "due", Open: true, Text: "A run was requested."}
	case due.do == actProduce:
		return lane.Gate{Name: "due", Open: true, Text: "It has been due since " + pawl.FormatTime(due.scheduledFor) + "."}
	case v.wakeIsDue():
		return lane.Gate{Name: "due", Open: true, Text: "It is time for its next check."}
	case v.partsPending(l) && v.partsWork(looks):
		return lane.Gate{Name: "due", Open: true, Text: inputsWait(l) + "."}
	case v.partsPending(l):
		return lane.Gate{Name: "due", Open: false, Text: inputsWait(l) + "; their partitions have seen what is waiting, or need attention, and continue when something new arrives, or at their next check."}
	case l.Pending > 0 && v.takesNothing(looks):
		return lane.Gate{Name: "due", Open: false, Text: inputsWait(l) + "; it has seen what is waiting and continues when something new arrives, or at its next check."}
	case l.Pending > 0:
		return lane.Gate{Name: "due", Open: true, Text: inputsWait(l) + "."}
	case v.newest.Status == pawl.StatusActive:
		return lane.Gate{Name: "due", Open: false, Text: "Nothing is waiting besides the active run."}
	}
	return lane.Gate{Name: "due", Open: false, Text: "Its schedule is not due and nothing is waiting." + v.leftOutWords()}
}

// leftOutWords tell of the time of each producer before its next one, if that is left out.
func (v *view) leftOutWords() (text string) {
	for _, p := range v.config.Producers {
		times, limited := v.times[p.Name]
		if !limited || times.Kind() == "" {
			continue
		}
		if times.Floats() { // whether a time was one depends on when it ran
			if why := times.Excluded(v.now); why != "" {
				text += fmt.Sprintf(" Nothing of %s runs now: %s.", p.Name, why)
			}
			continue
		}
		if at, why, out := times.LeftOut(v.now); out {
			text += fmt.Sprintf(" %s of %s is left out: %s.", pawl.FormatTime(at), p.Name, why)
		}
	}
	return text
}

// takesNothing: whoever works on the lane has looked at all that waits, and
// nothing was left for another look.
func (v *view) takesNothing(looks bool) bool {
	return !looks && v.workflow.Desired == desiredActive && v.row.ID != "" && !run.Open(v.newest.Status)
}

func inputsWait(l lane.Lane) string {
	switch {
	case l.PendingMore && l.Pending > 1:
		return fmt.Sprintf("At least %d inputs are waiting", l.Pending)
	case l.PendingMore:
		return "At least 1 input is waiting"
	case l.Pending == 1:
		return "1 input is waiting"
	}
	return fmt.Sprintf("%d inputs are waiting", l.Pending)
}

// wakeIsDue reports whether a consumer is to be woken.
func (v *view) wakeIsDue() bool {
	for _, c := range v.config.Consumers {
		if at := v.wakes[c.Name]; !at.IsZero() && !at.After(v.now) {
			return true
		}
	}
	return false
}

func (v *view) nextWords(l lane.Lane, there run.Workforce, looks bool) string {
	st, decided := v.chooseForRun()
	switch {
	case l.Issue == run.IssueNoWorker:
		return "It does nothing until a worker is running."
	case there.Halt != nil && v.newest.Status != pawl.StatusActive && (l.State != run.Stopped || l.Issue == run.IssueHalted):
		return there.Halt.NextWords()
	case len(v.waits) > 0 && (l.Issue == run.IssueWaitingFresh || l.Issue == run.IssueStale):
		return "It continues when " + v.waitedSources() + " fetched."
	case v.standing().parted && l.State == run.NeedsAttention:
		return "Its other partitions continue; this one does nothing until then."
	case v.parts != nil && l.State == run.Running && l.Issue == run.IssueNone && v.newest.Status != pawl.StatusActive:
		return "Its partitions are at work."
	case v.partsPending(l) && l.State == run.Idle && l.NextAt.IsZero() && !v.partsWork(looks):
		return "It runs when an event arrives."
	case v.newest.Status == pawl.StatusActive && v.workflow.Desired == desiredActive:
		return "It checks again when the run has ended."
	case v.newest.Status == pawl.StatusActive:
		return "The active run finishes; nothing more is started."
	case decided && st.do != actWait && l.State != run.Stopped:
		return "It continues now."
	case l.NextAt.IsZero() && l.State == run.Idle && l.Pending > 0 && !v.takesNothing(looks):
		return "It is due now."
	case l.NextAt.IsZero() && l.State == run.Idle:
		return "It runs when an event arrives."
	case l.Issue == run.IssuePaused:
		return lane.PausedNext(v.pause)
	case l.NextAt.IsZero():
		return "It does nothing until then."
	case !l.NextAt.After(v.now):
		return "It is due now."
	}
	return "It checks again at " + pawl.FormatTime(l.NextAt) + "."
}
