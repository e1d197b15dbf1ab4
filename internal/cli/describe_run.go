package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	rules "github.com/pawlrun/pawl/internal/run"
)

// describeRun tells what a run did, why it is as it is, and what comes next.
func describeRun(raw json.RawMessage, now time.Time) (string, error) {
	var r client.RunDetail
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", fmt.Errorf("read run: %w", err)
	}
	slices.SortStableFunc(r.Chain, func(a, b client.RunSummary) int { return cmp.Compare(a.Attempt, b.Attempt) })
	d := newDescription(now)
	if r.Kind == string(pawl.KindWorkflow) {
		d.say("Run %s is attempt %d of the %s %s of the %s %s.", r.ID, max(1, r.Attempt), r.HandlerType, r.Handler, r.Kind, r.Lane)
	} else {
		d.say("Run %s is attempt %d of the %s %s.", r.ID, max(1, r.Attempt), r.Kind, r.Lane)
	}
	d.say("%s", runStory(r, now))
	if r.Count > 1 {
		d.say("It stands for the %d runs until %s, which found nothing to do and are kept as one. The rest is about the first of them.", r.Count, pawl.FormatTime(r.Through.Time))
	}
	d.gap()
	d.line("Status", r.Status)
	if r.Partition != "" {
		d.line("Partition", strconv.Quote(r.Partition)) // it comes from an event
	}
	d.line("Phases", phaseWords(r))
	d.line("Trigger", triggerWords(r.Trigger))
	d.instant("For", r.ScheduledFor.Time)
	d.instant("Created", r.CreatedAt.Time)
	d.instant("Started", r.StartedAt.Time)
	d.instant("Changed", r.UpdatedAt.Time)
	d.instant("Ended", r.EndedAt.Time)
	d.line("Took", runTook(r.RunSummary))
	d.line("Version", string(r.ScriptVersion[:min(len(r.ScriptVersion), 12)]))
	if r.Error != nil {
		d.line("Error", r.Error.Message)
		d.line("Error class", r.Error.Class)
		d.line("Error code", r.Error.Code)
	}
	describeProgress(d, r.Progress)
	d.json("Prepared", r.PrepareResult)
	if r.Question != nil {
		d.json("Question", r.Question.Question)
		d.json("Answer", r.Question.Answer)
		d.line("Answered by", string(r.Question.AnsweredBy))
	}
	if o := plainOutput(r); o != nil {
		describeOutput(d, o)
	} else {
		d.json("Output", r.Output)
	}
	if r.Approval != nil {
		describeApproval(d, r.Approval)
	}
	for _, c := range callsOf(r) {
		describeCall(d, c)
	}
	describeActions(d, r)
	describeAttempts(d, r)
	describeLogs(d, r.Logs)
	return d.String(), nil
}

// describeProgress tells what a run of a source did.
func describeProgress(d *description, p *client.RunProgress) {
	if p == nil {
		return
	}
	d.line("Fetched", fmt.Sprintf("%s, %s, %s", plural(int(p.Pages), "page"), plural(int(p.Requests), "request"), byteWords(p.Bytes)))
	d.line("Rows", fmt.Sprintf("%d read: %d new, %d changed, %d there already, %d rejected", p.RowsRead, p.RowsNew, p.RowsChanged, p.RowsSame, p.Rejects))
	d.line("Note", string(p.Note))
}

// callsOf are the calls of a run; a server that does not list them tells the
// one that counts.
func callsOf(r client.RunDetail) []client.RunMutation {
	if len(r.Mutations) > 0 || r.Mutation == nil {
		return r.Mutations
	}
	return []client.RunMutation{*r.Mutation}
}

func describeCall(d *description, c client.RunMutation) {
	d.gap()
	d.line("Call", callName(c))
	d.line("Outcome", callStory(c.State))
	d.line("Title", string(c.Title))
	d.instant("Sent", c.CreatedAt.Time)
	d.instant("Known since", c.UpdatedAt.Time)
	d.line("Known by", string(c.ResolvedBy))
	d.line("Key", c.IdempotencyKey)
	if c.Error != nil {
		d.line("Error", c.Error.Message)
	}
	d.json("Arguments", c.Arguments)
	d.json("Result", c.Result)
}

// callStory says what is known about a call.
func callStory(state string) string {
	words := map[pawl.MutationState]string{
		pawl.MutationApplied:        "it happened",
		pawl.MutationFailed:         "it did not happen",
		pawl.MutationInFlight:       "it is in progress",
		pawl.MutationNeedsReconcile: "unknown; the other side is being asked",
		pawl.MutationIndeterminate:  "unknown; a person must say what happened",
		pawl.MutationSkipped:        "a person decided to skip it",
	}
	if text := words[pawl.MutationState(state)]; text != "" {
		return state + ": " + text
	}
	return state
}

func describeAttempts(d *description, r client.RunDetail) {
	if len(r.Chain) < 2 {
		return
	}
	var rows [][]string
	for _, a := range r.Chain {
		mark, failure := "", "-"
		if a.ID == r.ID {
			mark = "this run"
		}
		if a.Error != nil {
			failure = a.Error.Message
		}
		rows = append(rows, []string{strconv.Itoa(a.Attempt), a.ID, a.Status, a.Phase, relative(runTime(a), d.now), orDash(runTook(a)), failure, mark})
	}
	d.table("Attempts", []column{{title: "try"}, {title: "run"}, {title: "status"}, {title: "phase"}, {title: "when"}, {title: "took"}, {title: "error"}, {}}, rows)
}

func describeLogs(d *description, logs []client.LogLine) {
	var rows [][]string
	for _, l := range logs {
		rows = append(rows, []string{pawl.FormatTime(l.At.Time), l.Phase, l.Level, l.Text})
	}
	d.table("Log", []column{{title: "at"}, {title: "phase"}, {title: "level"}, {title: "text"}}, rows)
}

// phaseWords are the phases of the run with the present one marked.
func phaseWords(r client.RunDetail) string {
	phases := pawl.Phases(pawl.HandlerType(r.HandlerType))
	if !slices.Contains(phases, pawl.Phase(r.Phase)) {
		return r.Phase
	}
	var words []string
	for _, p := range phases {
		if string(p) == r.Phase {
			p = "[" + p + "]"
		}
		words = append(words, string(p))
	}
	return strings.Join(words, " > ")
}

// triggerWords say what caused a run.
func triggerWords(trigger string) string {
	switch trigger {
	case "schedule":
		return "schedule (it was due)"
	case "retry":
		return "retry (a person asked for it once more)"
	case "manual":
		return "manual (a run was requested)"
	case "event":
		return "event (there were events that it had not seen)"
	case "wake":
		return "wake (it had asked to be woken)"
	}
	return trigger
}

// runStory says what became of a run and what comes next.
func runStory(r client.RunDetail, now time.Time) string {
	for _, a := range r.Chain {
		if a.Attempt == r.Attempt+1 {
			return fmt.Sprintf("It stopped in phase %s, and attempt %d continues its work: run %s, which is %s.", r.Phase, a.Attempt, a.ID, a.Status)
		}
	}
	if text := waitingStory(r); text != "" {
		return text
	}
	settled := map[pawl.Status]string{
		pawl.StatusCommitted:      "It is done. Nothing follows.",
		pawl.StatusCancelled:      "It was cancelled before anything was sent. Nothing follows.",
		pawl.StatusPausedApproval: "It is waiting for a person. Then it continues where it is, with the events that it holds.",
	}
	if text := settled[pawl.Status(r.Status)]; text != "" {
		return text
	}
	switch rules.ExitOf(pawl.HandlerType(r.HandlerType), pawl.Status(r.Status)) {
	case rules.ExitRunning:
		return fmt.Sprintf("It is running, in phase %s for %s.", r.Phase, compact(now.Sub(r.UpdatedAt.Time)))
	case rules.ExitNow:
		return "It was interrupted. Another attempt follows immediately."
	case rules.ExitBackoff:
		return fmt.Sprintf("It failed for a temporary reason. Another attempt follows automatically; pawl why %s %s shows when.", r.Kind, r.Lane)
	case rules.ExitFix:
		return "The script failed. Another attempt follows when a corrected version is deployed: pawl apply -f FILE"
	case rules.ExitReconcile:
		return "It is unknown whether its call happened. Nothing is sent again until that is known."
	case rules.ExitUser:
		return fmt.Sprintf("Pawl or a connection failed. Another attempt follows when you resume it: pawl resume %s %s", r.Kind, r.Lane)
	case rules.ExitNone:
	}
	return "It is " + r.Status + "."
}
