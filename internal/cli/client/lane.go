package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Where lanes and workflows are.
const (
	LanesPath     = "/api/v1/lanes"
	WorkflowsPath = "/api/v1/workflows"
)

// Lane is a workflow, source or schedule as people see it.
type Lane struct {
	Kind         string            `json:"kind"`
	Name         string            `json:"name"`
	ID           string            `json:"id"`
	IssueCode    string            `json:"issueCode"`
	Status       string            `json:"status"` // Running, Idle, Needs attention or Stopped
	Issue        string            `json:"issue"`  // in words; empty if there is none
	Schedule     string            `json:"schedule"`
	NextAt       time.Time         `json:"nextAt"`
	LastActivity Activity          `json:"lastActivity"`
	Pending      int               `json:"pending"` // inputs and events that wait
	Paused       bool              `json:"paused"`
	Labels       map[string]string `json:"labels"`

	// Of workflows only.
	Version       string `json:"version"`
	VersionNumber int    `json:"versionNumber"`
}

// Version is a script or a definition as it was put in force.
type Version struct {
	Version   string    `json:"version"`
	Number    int       `json:"number"`
	Filename  string    `json:"filename"` // of scripts only
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	Active    bool      `json:"active"`
}

// Activity is something that happened.
type Activity struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Workflow is everything about a workflow.
type Workflow struct {
	Lane
	Desired    string          `json:"desired"`
	Filename   string          `json:"filename"`
	Script     string          `json:"script"`
	Config     WorkflowConfig  `json:"config"`
	Producers  []ProducerState `json:"producers"`
	Handlers   []HandlerState  `json:"handlers"`
	CreatedAt  time.Time       `json:"createdAt"`
	DeployedAt time.Time       `json:"deployedAt"`
}

// WorkflowConfig is what a script declares.
type WorkflowConfig struct {
	Topics    []string `json:"topics"`
	Producers []struct {
		Name      string   `json:"name"`
		Publishes []string `json:"publishes"`
	} `json:"producers"`
	Consumers []struct {
		Name      string   `json:"name"`
		Subscribe []string `json:"subscribe"`
		Publishes []string `json:"publishes"`
		HasMutate bool     `json:"hasMutate"`
		HasNext   bool     `json:"hasNext"`
	} `json:"consumers"`
}

// ProducerState is when a producer runs and ran.
type ProducerState struct {
	Name        string    `json:"name"`
	Schedule    string    `json:"schedule"` // in words
	NextRunAt   time.Time `json:"nextRunAt"`
	LastRunAt   time.Time `json:"lastRunAt"`
	RequestedAt time.Time `json:"requestedAt"` // zero unless somebody asked for a run that has not begun
}

// HandlerState is what a handler keeps between its runs.
type HandlerState struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	HasState bool      `json:"hasState"`
	WakeAt   time.Time `json:"wakeAt"`
}

// Why is why a lane ran, did not run, or waits.
type Why struct {
	Lane
	At     time.Time `json:"at"`
	Next   string    `json:"next"`
	Do     string    `json:"do"` // the command that ends what its status tells
	Gates  []Gate    `json:"gates"`
	Recent []Run     `json:"recent"`
	Around *struct {
		At   time.Time `json:"at"`
		Text string    `json:"text"`
	} `json:"around"` // what was at the instant that was asked for
}

// Gate is one condition of running.
type Gate struct {
	Name string `json:"name"`
	Open bool   `json:"open"`
	Text string `json:"text"`
}

// Deploy is a script to put in force.
type Deploy struct {
	Script   string `json:"script"`
	Filename string `json:"filename"`
	DryRun   bool   `json:"dryRun,omitempty"`
}

// Deployed is what a deploy did.
type Deployed struct {
	Name           string `json:"name"`
	What           string `json:"what"` // created, updated or unchanged
	Version        string `json:"version"`
	PreviousScript string `json:"previousScript"`
}

// WorkflowPath is where a workflow is, or something below it.
func WorkflowPath(name string, below ...string) string {
	return WorkflowsPath + "/" + strings.Join(append([]string{url.PathEscape(name)}, below...), "/")
}

// WhyPath is where a lane explains itself.
func WhyPath(kind, name string) string {
	return LanesPath + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name) + "/why"
}

// Apply deploys a workflow.
func (c *Client) Apply(ctx context.Context, name string, d Deploy) (out Deployed, err error) {
	raw, err := c.Put(ctx, WorkflowPath(name), d)
	if err != nil {
		return Deployed{}, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return Deployed{}, c.strange("an answer to a deploy that cannot be read", err)
	}
	return out, nil
}
