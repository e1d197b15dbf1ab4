package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Job is a job as the API tells it.
type Job struct {
	ID          string          `json:"id"`
	Task        string          `json:"task"`
	Payload     json.RawMessage `json:"payload"`
	RunAt       time.Time       `json:"runAt"`
	Key         string          `json:"key"`
	Lane        string          `json:"lane"`
	Priority    int             `json:"priority"`
	State       string          `json:"state"`
	Attempt     int             `json:"attempt"`     // attempts that have ended
	MaxAttempts int             `json:"maxAttempts"` // 0 is unlimited
	CreatedAt   time.Time       `json:"createdAt"`
	StartedAt   time.Time       `json:"startedAt"`
	FinishedAt  time.Time       `json:"finishedAt"`
	LastError   string          `json:"lastError"`
	Node        string          `json:"node"`
}

// The states of a job.
const (
	JobScheduled = "scheduled" // its time has not come
	JobPending   = "pending"   // due, and waiting for its lane or a worker
	JobRunning   = "running"
	JobFailed    = "failed" // for good
	JobSucceeded = "succeeded"
	JobCancelled = "cancelled"
)

// JobSpec asks for a job.
type JobSpec struct {
	Task        string    `json:"task"`
	Payload     any       `json:"payload,omitempty"`
	RunAt       time.Time `json:"runAt,omitzero"`
	Key         string    `json:"key,omitempty"`
	KeyMode     string    `json:"keyMode,omitempty"`
	Lane        string    `json:"lane,omitempty"`
	MaxAttempts int       `json:"maxAttempts,omitempty"`
}

// JobsPath is where jobs are; a job has its id below it.
const JobsPath = "/api/v1/jobs"

// AddJob asks for a job.
func (c *Client) AddJob(ctx context.Context, spec JobSpec) (Job, error) {
	return c.decodeJob(c.Post(ctx, JobsPath, spec))
}

// GetJob reads a job, waiting or ended.
func (c *Client) GetJob(ctx context.Context, id string) (Job, error) {
	return c.decodeJob(c.Get(ctx, JobsPath+"/"+url.PathEscape(id)))
}

func (c *Client) decodeJob(raw json.RawMessage, err error) (Job, error) {
	var j Job
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		return j, c.strange("a job that cannot be read", err)
	}
	return j, nil
}
