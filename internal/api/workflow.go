package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// Workflow is everything about one workflow.
type Workflow struct {
	Lane
	Desired       string             `json:"desired" enum:"active,paused,archived" doc:"What a person wants of it."`
	Version       string             `json:"version" doc:"Of the script in force: a hash of its content."`
	VersionNumber int                `json:"versionNumber" example:"3" doc:"Counts the scripts that were deployed."`
	Filename      string             `json:"filename" example:"mail-to-sheet.workflow.ts"`
	Script        string             `json:"script" doc:"The source in force."`
	Config        WorkflowConfig     `json:"config" doc:"What the script declares."`
	Producers     []WorkflowProducer `json:"producers" nullable:"false" doc:"When producers run, the next one first."`
	Handlers      []WorkflowHandler  `json:"handlers" nullable:"false" doc:"What handlers keep, in the order of the script."`
	CreatedAt     Instant            `json:"createdAt"`
	DeployedAt    Instant            `json:"deployedAt" doc:"When the script came into force."`
}

// WorkflowConfig is what a script declares.
type WorkflowConfig struct {
	Topics    []string           `json:"topics" nullable:"false"`
	Producers []DeclaredProducer `json:"producers" nullable:"false"`
	Consumers []DeclaredConsumer `json:"consumers" nullable:"false"`
}

// DeclaredProducer is a producer as the script declares it.
type DeclaredProducer struct {
	Name      string           `json:"name" example:"pollMail"`
	Publishes []string         `json:"publishes" nullable:"false"`
	Schedule  DeclaredSchedule `json:"schedule"`
}

// DeclaredSchedule is an interval, or a cron expression with its zone.
type DeclaredSchedule struct {
	Interval string `json:"interval,omitempty" example:"5m"`
	Cron     string `json:"cron,omitempty" example:"0 9 * * 1-5"`
	Timezone string `json:"timezone,omitempty" example:"Europe/Berlin"`
}

// DeclaredConsumer is a consumer as the script declares it.
type DeclaredConsumer struct {
	Name      string   `json:"name" example:"addRow"`
	Subscribe []string `json:"subscribe" nullable:"false"`
	Publishes []string `json:"publishes" nullable:"false"`
	HasMutate bool     `json:"hasMutate"`
	HasNext   bool     `json:"hasNext"`
}

// WorkflowProducer is when a producer runs.
type WorkflowProducer struct {
	Name        string   `json:"name" example:"pollMail"`
	Schedule    string   `json:"schedule" example:"Every 5 minutes" doc:"In words."`
	NextRunAt   Instant  `json:"nextRunAt"`
	LastRunAt   *Instant `json:"lastRunAt" nullable:"true"`
	RequestedAt *Instant `json:"requestedAt" nullable:"true" doc:"When somebody asked for a run that has not been yet."`
}

// WorkflowHandler is what a handler keeps.
type WorkflowHandler struct {
	Name     string   `json:"name" example:"addRow"`
	Type     string   `json:"type" enum:"producer,consumer"`
	HasState bool     `json:"hasState" doc:"It returned a state."`
	WakeAt   *Instant `json:"wakeAt" nullable:"true" doc:"When it wants to run without an event."`
}

func workflowOf(d *workflow.Details, now time.Time) Workflow {
	return Workflow{
		Lane: workflowLane(&d.Lane, now), Desired: d.Workflow.Desired,
		Version: d.Version.Version, VersionNumber: d.Version.Number, Filename: d.Version.Filename, Script: d.Version.Source,
		Config: configOf(&d.Config), Producers: producersOf(d), Handlers: handlersOf(d),
		CreatedAt: Instant{d.Workflow.CreatedAt}, DeployedAt: Instant{d.Workflow.DeployedAt},
	}
}

func configOf(c *workflow.Config) WorkflowConfig {
	out := WorkflowConfig{Topics: orEmpty(c.Topics), Producers: []DeclaredProducer{}, Consumers: []DeclaredConsumer{}}
	for _, p := range c.Producers {
		out.Producers = append(out.Producers, DeclaredProducer{p.Name, orEmpty(p.Publishes), DeclaredSchedule(p.Schedule)})
	}
	for _, k := range c.Consumers {
		out.Consumers = append(out.Consumers, DeclaredConsumer{k.Name, orEmpty(k.Subscribe), orEmpty(k.Publishes), k.HasMutate, k.HasNext})
	}
	return out
}

func producersOf(d *workflow.Details) []WorkflowProducer {
	out := []WorkflowProducer{}
	for _, s := range d.Schedules {
		words := s.Value // a zone may have been lost since it was checked
		if p, ok := d.Config.Producer(s.Producer); ok {
			if spec, err := p.Schedule.Spec(); err == nil {
				words = spec.Describe()
			}
		}
		out = append(out, WorkflowProducer{s.Producer, words, Instant{s.NextRunAt}, instantOf(s.LastRunAt), instantOf(s.RequestedAt)})
	}
	return out
}

func handlersOf(d *workflow.Details) []WorkflowHandler {
	kept := map[string]store.HandlerState{}
	for _, s := range d.States {
		kept[s.Handler] = s
	}
	out := []WorkflowHandler{}
	add := func(name string, kind pawl.HandlerType) {
		s := kept[name]
		out = append(out, WorkflowHandler{name, string(kind), s.State != nil, instantOf(s.WakeAt)})
	}
	for _, p := range d.Config.Producers {
		add(p.Name, pawl.HandlerProducer)
	}
	for _, c := range d.Config.Consumers {
		add(c.Name, pawl.HandlerConsumer)
	}
	return out
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// WorkflowPath is the input of requests about one workflow.
type WorkflowPath struct {
	Name string `path:"name" example:"mail-to-sheet" doc:"The workflow's name."`
}

// WorkflowSummary is a workflow as the list of all has it.
type WorkflowSummary struct {
	Lane
	Version       string `json:"version" doc:"Of the script in force: a hash of its content."`
	VersionNumber int    `json:"versionNumber" example:"3" doc:"Counts the scripts that were deployed."`
}

type listWorkflowsOutput struct{ Body Page[WorkflowSummary] }

const workflowCursor = "workflow"

func (a *API) listWorkflows(ctx context.Context, in *PageInput) (*listWorkflowsOutput, error) {
	after, err := in.place(workflowCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	lanes, next, err := a.workflowLanes(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	items, err := a.withVersions(ctx, lanes, after)
	return &listWorkflowsOutput{pageOf(items, workflowCursor, next)}, err
}

// withVersions adds to workflows, which are those by name after one, which
// scripts are in force.
func (a *API) withVersions(ctx context.Context, lanes []Lane, after string) ([]WorkflowSummary, error) {
	items := make([]WorkflowSummary, len(lanes))
	if len(lanes) == 0 {
		return items, nil
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		versions, err := tx.VersionsInForce(ctx, after, lanes[len(lanes)-1].Name)
		for i, l := range lanes {
			items[i] = WorkflowSummary{l, versions[l.ID].Version, versions[l.ID].Number}
		}
		return err
	})
	return items, err
}

type workflowOutput struct {
	ETag string `header:"ETag" doc:"Of the script; send it in If-Match to change what you saw."`
	Body Workflow
}

func (a *API) getWorkflow(ctx context.Context, in *WorkflowPath) (*workflowOutput, error) {
	w, err := a.describeWorkflow(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &workflowOutput{tagOf(w.Version), w}, nil
}

func (a *API) describeWorkflow(ctx context.Context, name string) (Workflow, error) {
	if textFault(name, maxName) != "" {
		return Workflow{}, a.noWorkflow(ctx, name)
	}
	d, err := a.workflows.Describe(ctx, name)
	if err != nil {
		return Workflow{}, a.aboutWorkflow(ctx, name, err)
	}
	return workflowOf(&d, time.Now()), nil
}

// ofWorkflow reads what belongs to a workflow, in one transaction.
func (a *API) ofWorkflow(ctx context.Context, name string, read func(ctx context.Context, tx *store.Tx, w store.Workflow) error) error {
	if textFault(name, maxName) != "" {
		return a.noWorkflow(ctx, name)
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.WorkflowByName(ctx, name)
		if err != nil {
			return err
		}
		return read(ctx, tx, w)
	})
	return a.aboutWorkflow(ctx, name, err)
}

// aboutWorkflow adds what was probably meant to the error of a workflow that
// is not there; other errors stay as they are.
func (a *API) aboutWorkflow(ctx context.Context, name string, err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return a.noWorkflow(ctx, name)
	}
	return err
}

// namesToCompare is among how many workflows the one that was meant is looked
// for.
const namesToCompare = 200

func (a *API) noWorkflow(ctx context.Context, name string) error {
	e := &pawl.Error{Code: pawl.CodeNotFound, Op: "find workflow", Msg: fmt.Sprintf("there is no workflow %q", name), Hint: "pawl get workflows lists them."}
	var names []string
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.ListWorkflows(ctx, "", namesToCompare)
		names = nil
		for _, w := range list {
			names = append(names, w.Name)
		}
		return err
	})
	if near := pawl.Nearest(name, names); err == nil && near != "" { // without a hint it is still the answer
		e.Hint = fmt.Sprintf("Did you mean %q? ", near) + e.Hint
	}
	return e
}
