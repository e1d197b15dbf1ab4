package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/client"
)

// describeInput tells what an input is and what was done because of it.
func describeInput(raw json.RawMessage, now time.Time) (string, error) {
	var in client.InputDetail
	if err := json.Unmarshal(raw, &in); err != nil {
		return "", fmt.Errorf("read input: %w", err)
	}
	d := newDescription(now)
	d.say("%s", orDash(in.Title))
	d.say("%s", inputStory(in))
	d.gap()
	d.line("Id", in.ID)
	d.line("Status", in.Status)
	d.line("Workflow", in.Workflow)
	d.line("Source", in.Source)
	d.line("Type", in.Type)
	d.line("External id", in.ExternalID)
	d.instant("Found", in.CreatedAt.Time)
	d.line("Found by", in.CreatedBy)
	d.instant("Skipped", in.SkippedAt.Time)
	d.line("Skipped by", string(in.SkippedBy))
	var rows [][]string
	for _, o := range in.Outputs {
		rows = append(rows, []string{relative(o.At.Time, now), o.State, o.Tool + "." + o.Method, orDash(string(o.Title)), orDash(o.RunID)})
	}
	d.table("Outputs", []column{{title: "when"}, {title: "state"}, {title: "call"}, {title: "title"}, {title: "run"}}, rows)
	rows = nil
	for _, e := range in.Events {
		rows = append(rows, []string{e.Topic, e.MessageID, e.Status, relative(e.CreatedAt.Time, now), orDash(string(e.ReservedBy))})
	}
	d.table("Events", []column{{title: "topic"}, {title: "message"}, {title: "status"}, {title: "when"}, {title: "taken by"}}, rows)
	return d.String(), nil
}

// inputStory says how far the work on an input is.
func inputStory(in client.InputDetail) string {
	switch in.Status {
	case "pending":
		return fmt.Sprintf("Work on it is not finished. Give it up with: pawl skip %s", in.ID)
	case "done":
		return fmt.Sprintf("It is done; it led to %s.", plural(len(in.Outputs), "output"))
	case "skipped":
		return "It was skipped: what was not done yet will not be done."
	case "orphaned":
		return "It was found, but no event was published for it, so nothing follows from it."
	}
	return "It is " + in.Status + "."
}
