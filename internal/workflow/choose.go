package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// action is what a session does next.
type action string

const (
	actWait      action = "wait"
	actRecover   action = "recover"   // end a run that nobody executes
	actExecute   action = "execute"   // a run that recovery made
	actRetry     action = "retry"     // make the successor of the newest run
	actResume    action = "resume"    // let the newest run go on
	actReconcile action = "reconcile" // ask what became of its call
	actFix       action = "fix"       // ask for a corrected script
	actRemind    action = "remind"    // a question to a person expires, or will soon
	actConsume   action = "consume"
	actProduce   action = "produce"
)

// starts reports whether the step begins something that waits while everything is
// halted. What a crash cut off goes on to its end, and asking what became of a call
// starts nothing.
func (a action) starts() bool {
	switch a {
	case actConsume, actProduce, actRetry, actResume, actFix:
		return true
	case actWait, actRecover, actExecute, actReconcile, actRemind:
	}
	return false
}

// What caused a run.
const (
	triggerSchedule = "schedule"
	triggerManual   = "manual"
	triggerEvent    = "event"
	triggerWake     = "wake"
)

// step is a choice, with its reason in words.
type step struct {
	do           action
	handler      string
	trigger      string
	scheduledFor time.Time
	until        time.Time // actWait: the next instant worth looking at; zero is none
	asked        bool      // actRetry: a person wants it
	reason       string
}

// consumersInRow is how many consumers may run while a producer is due.
const consumersInRow = 100

// choose picks the next step of a lane. It depends on the view, the lane's
// flags and the age of events, and on nothing else. oldest returns the
// ids of the oldest pending events of some topics, by topic; it is asked once,
// and only when consumers compete.
//
// The order is: what became of the newest run, consumers by their oldest
// event, due wakeAt, producers by their time.
func choose(v *view, l *memory, oldest func(topics []string) (map[string]int64, error)) (step, error) {
	if v.workflow.Desired != desiredActive {
		if v.newest.Status == pawl.StatusActive && !v.row.StartedAt.IsZero() {
			return step{do: actRecover, reason: "nobody executes run " + v.row.ID}, nil
		}
		if v.open != nil && v.newest.Status == pawl.StatusPausedReconciliation {
			// To ask what became of a call starts nothing, and without an
			// answer nobody could resolve it or delete the workflow.
			if d := run.Decide(v.newest); d.Exit == run.ExitReconcile {
				return v.chooseReconcile(d), nil
			}
		}
		return step{do: actWait, reason: "the workflow is " + v.workflow.Desired}, nil
	}
	if st, decided := v.chooseForRun(); decided {
		return st, nil
	}
	if v.part != nil && v.part.RejectedRun != "" {
		return step{do: actWait, reason: "run " + v.part.RejectedRun + " was rejected"}, nil
	}
	due := v.dueProducer()
	if due.do == actProduce && l.inRow >= consumersInRow {
		due.reason += fmt.Sprintf(", and %d consumers ran before it", l.inRow)
		return due, nil
	}
	consumer, err := v.chooseConsumer(l, oldest)
	if err != nil || consumer.do == actConsume {
		return consumer, err
	}
	if due.do == actProduce {
		return due, nil
	}
	return step{do: actWait, until: earlier(consumer.until, due.until), reason: "nothing is due"}, nil
}

// chooseForRun is the step that the newest run asks for, if it is not over.
func (v *view) chooseForRun() (step, bool) {
	switch {
	case v.newest.Status == "":
		return step{}, false
	case v.newest.Status == pawl.StatusActive && v.row.StartedAt.IsZero():
		return v.named(step{do: actExecute, reason: "run " + v.row.ID + " goes on after a crash"}), true
	case v.newest.Status == pawl.StatusActive:
		return step{do: actRecover, reason: "nobody executes run " + v.row.ID}, true
	case !run.Halts(v.newest, v.exhausted()):
		return step{}, false
	}
	d := run.Decide(v.newest)
	switch {
	case d.Halted():
		return step{do: actWait, reason: d.Reason}, true
	case d.Resume && (d.Exit == run.ExitNow || v.cleared() || v.approvedCall() || v.untried):
		return v.named(step{do: actResume, reason: d.Reason}), true
	case d.Resume && v.asked != nil && v.asked.State == mutationstore.ApprovalPending:
		return v.chooseReminder(d), true
	case d.Resume || d.Exit == run.ExitUser && !v.cleared():
		return step{do: actWait, reason: d.Reason}, true
	case d.Exit == run.ExitReconcile:
		return v.chooseReconcile(d), true
	case d.Successor == run.SuccessorNone:
		return step{do: actWait, reason: d.Reason}, true
	}
	return v.chooseRetry(d), true
}

func (v *view) named(st step) step {
	st.handler, st.trigger = v.row.Handler, v.row.Trigger
	return st
}

func (v *view) chooseReconcile(d run.Decision) step {
	if v.open == nil || v.open.NextReconcileAt.After(v.now) {
		st := step{do: actWait, reason: d.Reason}
		if v.open != nil {
			st.until = v.open.NextReconcileAt
		}
		return st
	}
	return v.named(step{do: actReconcile, reason: d.Reason})
}

// chooseRetry says when the successor of the newest run may start.
func (v *view) chooseRetry(d run.Decision) step {
	retry := v.named(step{do: actRetry, asked: v.cleared(), reason: d.Reason})
	if !v.hasHandler(v.row) {
		return step{do: actWait, reason: vanished(v.row)}
	}
	switch {
	case v.cleared() || d.Exit == run.ExitNow && !v.exhausted():
		return retry
	case d.Exit == run.ExitBackoff && !v.exhausted():
		if v.retry.NextAt.After(v.now) {
			return step{do: actWait, until: v.retry.NextAt, reason: "it backs off"}
		}
		return retry
	case d.Exit == run.ExitFix && v.workflow.Version != v.row.ScriptVersion:
		retry.reason = "a new version was deployed"
		return retry
	case d.Exit == run.ExitFix && v.fixable && v.fixAt.After(v.now):
		return step{do: actWait, until: v.fixAt, reason: "no answer came to the question for a corrected script; it is asked again"}
	case d.Exit == run.ExitFix && v.fixable:
		return v.named(step{do: actFix, reason: "the script failed"})
	}
	return step{do: actWait, reason: d.Reason}
}

func vanished(r runstore.Run) string {
	return fmt.Sprintf("the %s %q of run %s is not in the active version", r.HandlerType, r.Handler, r.ID)
}

// hasHandler reports whether the version in force still has the handler of a
// run.
func (v *view) hasHandler(r runstore.Run) bool {
	if r.HandlerType == pawl.HandlerProducer {
		_, ok := v.config.Producer(r.Handler)
		return ok
	}
	_, ok := v.config.Consumer(r.Handler)
	return ok
}

// dueProducer is the first producer that is due or asked for, else when one
// will be.
func (v *view) dueProducer() step {
	var next time.Time
	for _, p := range v.schedules {
		if _, ok := v.config.Producer(p.Producer); !ok {
			continue
		}
		start := v.startOf(p)
		switch {
		case !p.RequestedAt.IsZero():
			return step{do: actProduce, handler: p.Producer, trigger: triggerManual, reason: "a run was requested"}
		case !start.IsZero() && !start.After(v.now):
			return step{do: actProduce, handler: p.Producer, trigger: triggerSchedule, scheduledFor: p.NextRunAt, reason: "its schedule is due"}
		}
		next = earlier(next, start)
	}
	return step{do: actWait, until: next}
}

// chooseConsumer is the consumer whose turn it is, else when one wakes.
func (v *view) chooseConsumer(l *memory, oldest func([]string) (map[string]int64, error)) (step, error) {
	type candidate struct {
		step
		oldest int64
		wake   time.Time
	}
	var list []candidate
	var next time.Time
	for _, c := range v.config.Consumers {
		if !v.runs(c) {
			continue
		}
		wake := v.wakes[c.Name]
		st := step{do: actConsume, handler: c.Name}
		switch {
		case l.isDirty(c, v.seqs):
			st.trigger, st.reason = triggerEvent, "there are events that it has not seen"
		case !wake.IsZero() && !wake.After(v.now):
			st.trigger, st.scheduledFor, st.reason = triggerWake, wake, "its wakeAt has come"
		default:
			next = earlier(next, wake)
			continue
		}
		list = append(list, candidate{step: st, wake: wake})
	}
	if len(list) == 0 {
		return step{do: actWait, until: next}, nil
	}
	if len(list) == 1 {
		return list[0].step, nil
	}
	var topics []string
	for _, c := range list {
		k, _ := v.config.Consumer(c.handler)
		topics = append(topics, k.Subscribe...)
	}
	slices.Sort(topics)
	ages, err := oldest(slices.Compact(topics))
	if err != nil {
		return step{}, err
	}
	for i, c := range list {
		k, _ := v.config.Consumer(c.handler)
		for _, topic := range k.Subscribe {
			if age := ages[topic]; zeroLast(age, list[i].oldest) < 0 {
				list[i].oldest = age
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(zeroLast(a.oldest, b.oldest), zeroLast(ms(a.wake), ms(b.wake)), cmp.Compare(a.handler, b.handler))
	})
	return list[0].step, nil
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// zeroLast compares numbers of which zero stands for none.
func zeroLast(a, b int64) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case b == 0:
		return -1
	}
	return cmp.Compare(a, b)
}

// earlier is the earlier of two instants of which zero stands for none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
