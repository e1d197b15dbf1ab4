package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/terms"
)

// describeWorkflow tells how a workflow is, when it runs and of what it is
// made.
func describeWorkflow(raw json.RawMessage, now time.Time) (string, error) {
	var w client.Workflow
	if err := json.Unmarshal(raw, &w); err != nil {
		return "", fmt.Errorf("read workflow: %w", err)
	}
	d := newDescription(now)
	laneStory(d, w.Lane, now)
	d.gap()
	d.line("Status", w.Status)
	d.line("Wanted", w.Desired)
	d.line("Schedule", w.Schedule)
	d.instant("Next", w.NextAt.Time)
	if w.LastActivity.Text != "" {
		d.line("Activity", w.LastActivity.Text+" ("+relative(w.LastActivity.At.Time, now)+")")
	}
	d.line("Pending", pendingText(w.Pending, w.PendingMore))
	d.line("Labels", labelWords(w.Labels))
	d.line("Version", versionWords(w.Version, w.VersionNumber))
	d.line("File", w.Filename)
	d.instant("Deployed", w.DeployedAt.Time)
	d.instant("Created", w.CreatedAt.Time)
	d.line("Id", w.ID)
	d.line("Keeps", terms.KeepWords(w.Config.Keep))
	d.line("Needs", terms.NeedsWords(w.Config.Needs))
	describeExpectations(d, w.Expectations)
	d.line("Topics", strings.Join(w.Config.Topics, ", "))
	describeProducers(d, w)
	describeConsumers(d, w)
	d.gap()
	d.say("More: pawl why workflow %s, pawl get runs --workflow %s, pawl get inputs %s", w.Name, w.Name, w.Name)
	return d.String(), nil
}

// laneStory says in a few sentences how a lane stands.
func laneStory(d *description, l client.Lane, now time.Time) {
	switch l.Status {
	case "Needs attention":
		d.say("The %s %s needs attention.", l.Kind, l.Name)
	default:
		d.say("The %s %s is %s.", l.Kind, l.Name, strings.ToLower(l.Status))
	}
	if l.Issue != "" {
		d.say("%s", l.Issue)
	}
	switch {
	case l.NextAt.IsZero():
	case l.NextAt.After(now):
		d.say("It looks for work again %s.", relative(l.NextAt.Time, now))
	default:
		d.say("It is due now.")
	}
}

func describeProducers(d *description, w client.Workflow) {
	states := map[string]client.WorkflowProducer{}
	for _, s := range w.Producers {
		states[s.Name] = s
	}
	var rows [][]string
	for _, p := range w.Config.Producers {
		s := states[p.Name]
		next := relative(s.NextRunAt.Time, d.now)
		if !s.RequestedAt.IsZero() {
			next = "now, as asked " + relative(s.RequestedAt.Time, d.now)
		}
		rows = append(rows, []string{p.Name, orDash(s.Schedule), next, relative(s.LastRunAt.Time, d.now), strings.Join(p.Publishes, ", ")})
	}
	d.table("Producers", []column{{title: "name"}, {title: "schedule"}, {title: "next"}, {title: "last"}, {title: "publishes"}}, rows)
}

func describeConsumers(d *description, w client.Workflow) {
	states := map[string]client.WorkflowHandler{}
	for _, s := range w.Handlers {
		states[s.Name] = s
	}
	var rows [][]string
	for _, c := range w.Config.Consumers {
		phases := "prepare"
		if c.HasMutate {
			phases += ", mutate"
		}
		if c.HasNext {
			phases += ", next"
		}
		if c.Partition != "" {
			phases += fmt.Sprintf("; apart by %s, %d at once", c.Partition, c.PartitionLimit)
		}
		rows = append(rows, []string{
			c.Name, strings.Join(c.Subscribe, ", "), phases, orDash(strings.Join(c.Publishes, ", ")), relative(states[c.Name].WakeAt.Time, d.now),
		})
	}
	d.table("Consumers", []column{{title: "name"}, {title: "subscribes to"}, {title: "phases"}, {title: "publishes"}, {title: "wakes"}}, rows)
}
