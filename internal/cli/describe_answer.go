package cli

import (
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// waitingStory says what a run waits for, if that is something that a person
// says, and how to say it; else it is empty.
func waitingStory(r client.RunDetail) string {
	switch words := outcomesOf(r); {
	case r.Status == string(pawl.StatusPausedApproval):
		return askingStory(r)
	case words != nil:
		return fmt.Sprintf("It is unknown whether its call happened, and only a person can find out. Look there, then say it: pawl resolve %s --outcome %s", r.ID, strings.Join(words, "|"))
	}
	return ""
}

func askingStory(r client.RunDetail) string {
	switch q := r.Approval; {
	case r.Question != nil && (len(r.Question.Answer) == 0 || string(r.Question.Answer) == "null"):
		return fmt.Sprintf("The graph asks the question below. Answer it: pawl approve %s --answer JSON", r.ID)
	case r.Error != nil && r.Error.Class != "": // an account or a permission
		return fmt.Sprintf("Fix the cause, then resume the run: pawl resume run %s", r.ID)
	case q == nil:
		return ""
	case q.State == client.ApprovalPending:
		return fmt.Sprintf("It asks whether it may call %s.%s with the arguments below. Let it: pawl approve %s", q.Tool, q.Method, r.ID)
	case q.State == client.ApprovalExpired:
		return fmt.Sprintf("Its question was not answered in time. Let it ask again: pawl resume run %s", r.ID)
	case q.State == client.ApprovalApproved:
		return fmt.Sprintf("Its call is approved. It continues now, unless the workflow is paused: pawl resume workflow %s", r.Lane)
	}
	return ""
}

// outcomesOf are what can be said about the call of a run, nil if nothing.
func outcomesOf(r client.RunDetail) []string {
	i := slices.IndexFunc(r.Actions, func(a client.RunAction) bool { return a.Name == "resolve" })
	if i < 0 {
		return nil
	}
	return r.Actions[i].Outcomes
}

// describeActions lists the commands that would do something about a run, with
// what each does.
func describeActions(d *description, r client.RunDetail) {
	var rows [][]string
	add := func(effect, format string, args ...any) {
		rows = append(rows, []string{"pawl " + fmt.Sprintf(format, args...), effect})
	}
	for _, a := range r.Actions {
		switch a.Name {
		case "approve":
			if r.Kind == string(pawl.KindSchedule) {
				add("answers the question of the graph; without --answer it is true", "approve %s --answer JSON", r.ID)
			} else if q := question(r); q != nil { // else it is the same as to resume
				add("lets it make this call, and no other", "approve %s", r.ID)
				add(fmt.Sprintf("the same, and %s may call %s.%s without asking from now on", q.Workflow, q.Tool, q.Method), "approve %s --always", r.ID)
			}
		case "reject":
			add(endsWords(r, "ends it; what it took waits again, and the workflow is paused"), "reject %s", r.ID)
		case "resolve":
			for _, o := range a.Outcomes {
				add(outcomeEffect(o), "resolve %s --outcome %s", r.ID, o)
			}
		case "resume":
			add("resumes the run once the cause is fixed", "resume run %s", r.ID)
		case "cancel":
			add(endsWords(r, "ends it; what it took waits again"), "cancel %s", r.ID)
		}
	}
	d.table("What you can do", []column{{title: "command"}, {title: "effect"}}, rows)
}

// endsWords say what it means to end a run; ofWorkflow is for those that took
// something.
func endsWords(r client.RunDetail, ofWorkflow string) string {
	switch pawl.Kind(r.Kind) {
	case pawl.KindSource:
		return "ends it; the pages that it wrote stay"
	case pawl.KindSchedule:
		return "ends it; its slot counts as failed"
	default:
		return ofWorkflow
	}
}

func outcomeEffect(outcome string) string {
	switch outcome {
	case "happened":
		return "it happened: the run continues; --result JSON is what the call returned"
	case "did-not-happen":
		return "it did not: the work starts again, and the call is made again"
	case "skip":
		return "whatever it was: the run continues without it, and its events are skipped"
	case "try-again":
		return "asks the other side once more"
	}
	return outcome
}
