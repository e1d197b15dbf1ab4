package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func workflowKind() kind {
	return kind{
		plural: "workflows", singular: string(pawl.KindWorkflow), aliases: []string{"w", "wf", "flow", "flows"}, path: client.WorkflowsPath,
		removed: "deleted", loses: "Nothing of it will run again. What it did can still be read.",
		verbs:    []string{verbRun, verbPause, verbResume, verbWhy},
		watch:    watchRules{events: []string{"workflow", "run"}, changed: workflowOfEvent, brief: briefWorkflow},
		columns:  append(laneColumns(), column{title: "version", wide: true}),
		describe: describeWorkflow,
		more: func(ctx context.Context, c *client.Client, raw json.RawMessage, now time.Time) (string, error) {
			return describeRepairs(ctx, c, nameOf(raw), now)
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var l client.WorkflowSummary
			if err := json.Unmarshal(raw, &l); err != nil {
				return nil, err
			}
			return append(laneCells(l.Lane, now), versionWords(l.Version, l.VersionNumber)), nil
		},
	}
}

// versionWords is the number of a version and the beginning of its identity.
func versionWords(version string, number int) string {
	short := version[:min(len(version), 12)]
	switch {
	case number == 0:
		return orDash(short)
	case short == "":
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d (%s)", number, short)
}

// workflowOfEvent is the workflow that an event is about: its own, or that of
// one of its runs.
func workflowOfEvent(e client.StreamEvent) (string, error) {
	var event struct {
		Workflow string           `json:"workflow"`
		Run      client.RunDetail `json:"run"`
	}
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return "", fmt.Errorf("read event: %w", err)
	}
	switch {
	case event.Workflow != "":
		return event.Workflow, nil
	case event.Run.Kind == string(pawl.KindWorkflow):
		return event.Run.Lane, nil
	}
	return "", nil
}

// briefWorkflow leaves out what only the answer about one workflow has.
func briefWorkflow(raw json.RawMessage) (json.RawMessage, error) {
	return without(raw, "desired", "filename", "script", "config", "producers", "handlers", "createdAt", "deployedAt", "nextText")
}
