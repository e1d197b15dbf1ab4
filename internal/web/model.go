package web

import (
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/workflow"
)

// What the API answers, as far as pages show it. See internal/api for what each
// field means.

type laneAnswer struct {
	Name         string            `json:"name"`
	Status       string            `json:"status"`
	Issue        string            `json:"issue"`
	IssueCode    string            `json:"issueCode"`
	Schedule     string            `json:"schedule"`
	NextAt       time.Time         `json:"nextAt"`
	LastActivity activityAnswer    `json:"lastActivity"`
	Pending      int               `json:"pending"`
	Paused       bool              `json:"paused"`
	Labels       map[string]string `json:"labels"`
}

type activityAnswer struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

type workflowAnswer struct {
	laneAnswer
	Desired       string    `json:"desired"`
	Version       string    `json:"version"`
	VersionNumber int       `json:"versionNumber"`
	Filename      string    `json:"filename"`
	CreatedAt     time.Time `json:"createdAt"`
	DeployedAt    time.Time `json:"deployedAt"`
}

type whyAnswer struct {
	laneAnswer
	Next   string       `json:"next"`
	Do     string       `json:"do"`
	Gates  []gateAnswer `json:"gates"`
	Recent []runAnswer  `json:"recent"`
}

type inputAnswer struct {
	ID         string       `json:"id"`
	Source     string       `json:"source"`
	Type       string       `json:"type"`
	ExternalID string       `json:"externalId"`
	Title      string       `json:"title"`
	Status     string       `json:"status"`
	CreatedAt  time.Time    `json:"createdAt"`
	SkippedAt  time.Time    `json:"skippedAt"`
	SkippedBy  string       `json:"skippedBy"`
	Outputs    []callAnswer `json:"outputs"`
}

// callAnswer is a call that has side effects: an output of a workflow, and a
// mutation of a run.
type callAnswer struct {
	ID                string          `json:"id"`
	RunID             string          `json:"runId"`
	Tool              string          `json:"tool"`
	Method            string          `json:"method"`
	Title             string          `json:"title"`
	Arguments         json.RawMessage `json:"arguments"`
	State             string          `json:"state"`
	Result            json.RawMessage `json:"result"`
	Error             *errorAnswer    `json:"error"`
	Inputs            []string        `json:"inputs"`
	At                time.Time       `json:"at"`
	IdempotencyKey    string          `json:"idempotencyKey"`
	ReconcileAttempts int             `json:"reconcileAttempts"`
	NextReconcileAt   time.Time       `json:"nextReconcileAt"`
	ResolvedBy        string          `json:"resolvedBy"`
	ResolvedAt        time.Time       `json:"resolvedAt"`
	CreatedAt         time.Time       `json:"createdAt"`
}

// Name is what the script calls it, or else the method.
func (c callAnswer) Name() string {
	if c.Title != "" {
		return c.Title
	}
	return c.Tool + "." + c.Method
}

// Became is the state as something to be shown: of a call that failed it is
// known that it did not happen.
func (c callAnswer) Became() string {
	if c.State == "failed" {
		return "did not happen"
	}
	return c.State
}

type errorAnswer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Class   string `json:"class"`
}

type runAnswer struct {
	ID            string          `json:"id"`
	Kind          string          `json:"kind"`
	Lane          string          `json:"lane"`
	LaneID        string          `json:"laneId"` // of a schedule
	Handler       string          `json:"handler"`
	HandlerType   string          `json:"handlerType"`
	Trigger       string          `json:"trigger"`
	RetryOf       string          `json:"retryOf"`
	Phase         string          `json:"phase"`
	Status        string          `json:"status"`
	Attempt       int             `json:"attempt"`
	ScheduledFor  time.Time       `json:"scheduledFor"`
	PrepareResult json.RawMessage `json:"prepareResult"`
	Mutation      *callAnswer     `json:"mutation"`
	Error         *errorAnswer    `json:"error"`
	ScriptVersion string          `json:"scriptVersion"`
	CreatedAt     time.Time       `json:"createdAt"`
	UpdatedAt     time.Time       `json:"updatedAt"`
	StartedAt     time.Time       `json:"startedAt"`
	EndedAt       time.Time       `json:"endedAt"`
	Progress      *progressAnswer `json:"progress"` // of a source

	// Of one run only, not in lists.
	Chain     []runAnswer     `json:"chain"`
	Mutations []callAnswer    `json:"mutations"`
	Logs      []logAnswer     `json:"logs"`
	Approval  *approvalAnswer `json:"approval"`
	Actions   []actionAnswer  `json:"actions"`

	// Of one run of a schedule.
	Question *questionAnswer `json:"question"`
	Output   json.RawMessage `json:"output"`
	Slot     *slotAnswer     `json:"slot"`
}

// LaneHref is the page of what it is a run of.
func (r runAnswer) LaneHref() string { return lanePath(r.Kind, r.laneKey()) }

// Follows is what a page about the run follows, see Pulse.
func (r runAnswer) Follows() string {
	return r.Kind + ":" + r.laneKey()
}

// laneKey names the lane of the run: by its id where names are their owners'.
func (r runAnswer) laneKey() string {
	if r.LaneID != "" {
		return r.LaneID
	}
	return r.Lane
}

// Questions reports whether a graph waits for an answer.
func (r runAnswer) Questions() bool {
	return r.Question != nil && r.Question.Open() && r.Can("approve")
}

// Seen is what a decision about the run is bound to: the question that it is
// about. Without one it is that the run only waits.
func (r runAnswer) Seen() string {
	switch {
	case r.Question != nil:
		return pawl.FormatTime(r.Question.AskedAt)
	case isOfSchedule(r.Kind):
		return ""
	case r.Approval != nil && r.Status == string(pawl.StatusPausedApproval) && (r.Error == nil || r.Error.Class == ""):
		return r.Approval.ID // without an error it waits for this, and not for an account
	}
	return workflow.SeenNothing
}

// Decision names what a person is to decide, and is empty if there is nothing:
// pages hold still while somebody is about to, and take something else in its
// place for a shift.
func (r runAnswer) Decision() string {
	if !r.Can("approve") && !r.Can("reject") && !r.Can("resume") && r.Outcomes() == nil {
		return ""
	}
	return r.ID + " " + r.Status + " " + r.Seen()
}

// Can reports whether an action would be accepted.
func (r runAnswer) Can(action string) bool {
	for _, a := range r.Actions {
		if a.Name == action {
			return true
		}
	}
	return false
}

// Outcomes are what can be said about a call.
func (r runAnswer) Outcomes() []string {
	for _, a := range r.Actions {
		if a.Name == "resolve" {
			return a.Outcomes
		}
	}
	return nil
}

// Asks reports whether the run waits for an answer to its question.
func (r runAnswer) Asks() bool { return r.Approval != nil && r.Approval.State == "pending" }

type actionAnswer struct {
	Name     string   `json:"name"`
	Outcomes []string `json:"outcomes"`
}

type logAnswer struct {
	Phase string    `json:"phase"`
	At    time.Time `json:"at"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

type approvalAnswer struct {
	ID        string          `json:"id"`
	Workflow  string          `json:"workflow"`
	RunID     string          `json:"runId"`
	Tool      string          `json:"tool"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
	Address   string          `json:"address"`
	Hash      string          `json:"hash"`
	Title     string          `json:"title"`
	State     string          `json:"state"`
	CreatedAt time.Time       `json:"createdAt"`
	ExpiresAt time.Time       `json:"expiresAt"`
	DecidedAt time.Time       `json:"decidedAt"`
	DecidedBy string          `json:"decidedBy"`
}

// ruleAnswer is a call that a workflow may make without asking.
type ruleAnswer struct {
	Tool      string    `json:"tool"`
	Method    string    `json:"method"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
}

type versionAnswer struct {
	Version   string    `json:"version"`
	Number    int       `json:"number"`
	Filename  string    `json:"filename"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	Active    bool      `json:"active"`
	Script    string    `json:"script"`
}

type jobAnswer struct {
	ID          string          `json:"id"`
	Task        string          `json:"task"`
	Payload     json.RawMessage `json:"payload"`
	RunAt       time.Time       `json:"runAt"`
	Key         string          `json:"key"`
	Lane        string          `json:"lane"`
	State       string          `json:"state"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"maxAttempts"`
	CreatedAt   time.Time       `json:"createdAt"`
	CreatedBy   string          `json:"createdBy"`
	Internal    bool            `json:"internal"`
	StartedAt   time.Time       `json:"startedAt"`
	FinishedAt  time.Time       `json:"finishedAt"`
	LastError   string          `json:"lastError"`
	Node        string          `json:"node"`
}

type tokenAnswer struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	User       string    `json:"user"`
	Scopes     []string  `json:"scopes"`
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	RevokedAt  time.Time `json:"revokedAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`
	Text       string    `json:"token"` // of a new one, this once
}
