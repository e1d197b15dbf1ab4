package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func jobKind() kind {
	return kind{
		plural: "jobs", singular: "job", aliases: []string{"j"}, path: client.JobsPath, short: true, removed: "deleted",
		watch:   watchRules{events: []string{"job"}, subject: jobOfEvent},
		filters: []string{"state", "task", "lane", "key"},
		columns: []column{
			{title: "id"}, {title: "task", flex: true}, {title: "state", state: true}, {title: "when"}, {title: "tries"},
			{title: "lane", flex: true}, {title: "error", flex: true},
			{title: "key", wide: true, flex: true}, {title: "run at", wide: true}, {title: "age", wide: true}, {title: "node", wide: true, flex: true}, {title: "payload", wide: true, flex: true},
		},
		row: jobRow, describe: describeJob,
	}
}

// jobOfEvent is the job that an event carries.
func jobOfEvent(data []byte) (json.RawMessage, error) {
	var event struct {
		Job json.RawMessage `json:"job"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	return event.Job, nil
}

func jobRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var j client.Job
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	age := "-"
	if !j.CreatedAt.IsZero() {
		age = compact(now.Sub(j.CreatedAt.Time))
	}
	return []string{
		j.ID, j.Task, j.State, relative(jobTime(j), now), attempts(j),
		orDash(string(j.Lane)), orDash(string(j.LastError)),
		orDash(string(j.Key)), pawl.FormatTime(j.RunAt.Time), age, orDash(string(j.Node)), string(compactJSON(j.Payload)),
	}, nil
}

// jobTime is the instant that matters in the job's state: when it ended,
// started, or is due.
func jobTime(j client.Job) time.Time {
	switch {
	case !j.FinishedAt.IsZero():
		return j.FinishedAt.Time
	case j.State == client.JobRunning && !j.StartedAt.IsZero():
		return j.StartedAt.Time
	}
	return j.RunAt.Time
}

// attempts are those that have ended, and how many there may be.
func attempts(j client.Job) string {
	most := deref(j.MaxAttempts)
	if most == 0 {
		return strconv.Itoa(j.Attempt)
	}
	return fmt.Sprintf("%d/%d", j.Attempt, most)
}

func compactJSON(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

// describeJob tells what a job is, why it is as it is, and what comes next.
func describeJob(raw json.RawMessage, now time.Time) (string, error) {
	var j client.Job
	if err := json.Unmarshal(raw, &j); err != nil {
		return "", fmt.Errorf("read job: %w", err)
	}
	d := newDescription(now)
	d.say("Job %s runs the task %s.", j.ID, j.Task)
	d.say("%s", jobStory(j, now))
	d.gap()
	d.line("State", j.State)
	d.line("Attempts", attempts(j))
	d.line("Lane", string(j.Lane))
	d.line("Key", string(j.Key))
	if priority := deref(j.Priority); priority != 0 {
		d.line("Priority", strconv.Itoa(priority))
	}
	d.line("Node", string(j.Node))
	d.instant("Created", j.CreatedAt.Time)
	d.instant("Run at", j.RunAt.Time)
	d.instant("Started", j.StartedAt.Time)
	d.instant("Finished", j.FinishedAt.Time)
	d.line("Last error", string(j.LastError))
	d.json("Payload", j.Payload)
	return d.String(), nil
}

// jobStory says in one or two sentences how the job stands.
func jobStory(j client.Job, now time.Time) string {
	switch j.State {
	case client.JobScheduled:
		if j.Attempt > 0 {
			return fmt.Sprintf("It failed in %s; the next one is %s.", plural(j.Attempt, "attempt"), relative(j.RunAt.Time, now))
		}
		return fmt.Sprintf("It waits for its time, which is %s.", relative(j.RunAt.Time, now))
	case client.JobPending:
		if j.Lane != "" {
			return fmt.Sprintf("It is due and waits until the lane %s is free: jobs of one lane run one after the other.", j.Lane)
		}
		return "It is due and waits for a free worker."
	case client.JobRunning:
		if j.StartedAt.IsZero() {
			return "It is running."
		}
		return fmt.Sprintf("It is running for %s.", compact(now.Sub(j.StartedAt.Time)))
	case client.JobFailed:
		return fmt.Sprintf("It failed for good after %s. Run it again with: pawl retry job %s", plural(max(1, j.Attempt), "attempt"), j.ID)
	case client.JobSucceeded:
		return "It is done" + lateness(j) + "."
	case client.JobCancelled:
		return "It was cancelled and will not run."
	}
	return "It is " + j.State + "."
}

// lateness says how punctual a job was, which means something for a first
// attempt only.
func lateness(j client.Job) string {
	if j.StartedAt.IsZero() || j.RunAt.IsZero() || j.Attempt > 1 {
		return ""
	}
	return fmt.Sprintf("; it started %s after its time and took %s",
		max(0, j.StartedAt.Sub(j.RunAt.Time)).Round(time.Millisecond), j.FinishedAt.Sub(j.StartedAt.Time).Round(time.Millisecond))
}
