package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

func workflowOf(d *workflow.Details, now time.Time) client.Workflow {
	return client.Workflow{
		Lane: laneOf(&d.Lane, now), Desired: d.Workflow.Desired,
		Version: d.Version.Version, VersionNumber: d.Version.Number, Filename: d.Version.Filename, Script: d.Version.Source,
		Config: configOf(&d.Config), Producers: producersOf(d), Handlers: handlersOf(d),
		CreatedAt: client.At(d.Workflow.CreatedAt), DeployedAt: client.At(d.Workflow.DeployedAt),
		IssueRunID: client.NullString(d.About), Partitions: partitionCounts(d.Partitions),
	}
}

func configOf(c *workflow.Config) client.WorkflowConfig {
	out := client.WorkflowConfig{Topics: orEmpty(c.Topics), Producers: []client.DeclaredProducer{}, Consumers: []client.DeclaredConsumer{}, Keep: c.Keep, Expect: c.Expect, Needs: c.Needs}
	for _, p := range c.Producers {
		out.Producers = append(out.Producers, client.DeclaredProducer{Name: p.Name, Publishes: orEmpty(p.Publishes), Schedule: client.DeclaredSchedule(p.Schedule)})
	}
	for _, k := range c.Consumers {
		partition, limit := k.PartitionWords()
		out.Consumers = append(out.Consumers, client.DeclaredConsumer{
			Name: k.Name, Subscribe: orEmpty(k.Subscribe), Publishes: orEmpty(k.Publishes), HasMutate: k.HasMutate, HasNext: k.HasNext, Partition: partition, PartitionLimit: limit,
		})
	}
	return out
}

func producersOf(d *workflow.Details) []client.WorkflowProducer {
	out := []client.WorkflowProducer{}
	for _, s := range d.Schedules {
		words := cmp.Or(d.Words[s.Producer], s.Value) // a zone may have been lost since it was checked
		out = append(out, client.WorkflowProducer{Name: s.Producer, Schedule: words, NextRunAt: client.At(s.NextRunAt), LastRunAt: client.At(s.LastRunAt), RequestedAt: client.At(s.RequestedAt)})
	}
	return out
}

func handlersOf(d *workflow.Details) []client.WorkflowHandler {
	kept := map[string]workflowstore.HandlerState{}
	for _, s := range d.States {
		kept[s.Handler] = s
	}
	out := []client.WorkflowHandler{}
	add := func(name string, kind pawl.HandlerType) {
		s := kept[name]
		out = append(out, client.WorkflowHandler{Name: name, Type: string(kind), HasState: s.State != nil, WakeAt: client.At(s.WakeAt)})
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

const workflowCursor = "workflow"

func (a *API) listWorkflows(ctx context.Context, in *PageInput) (*pageOutput[client.WorkflowSummary], error) {
	after, err := in.place(workflowCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	lanes, next, err := a.workflows.List(ctx, lane.Query{After: lane.Place{Name: after}, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	items, err := a.withVersions(ctx, lanes, after)
	return &pageOutput[client.WorkflowSummary]{pageOf(items, workflowCursor, next.Name)}, err
}

// withVersions adds to workflows, which are those by name after one, which
// scripts are in force.
func (a *API) withVersions(ctx context.Context, lanes []lane.Lane, after string) ([]client.WorkflowSummary, error) {
	items := make([]client.WorkflowSummary, len(lanes))
	if len(lanes) == 0 {
		return items, nil
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		versions, err := workflowstore.In(tx).VersionsInForce(ctx, after, lanes[len(lanes)-1].Name)
		for i, l := range lanes {
			items[i] = client.WorkflowSummary{Lane: laneOf(&l, tx.Now), Version: versions[l.ID].Version, VersionNumber: versions[l.ID].Number}
		}
		return err
	})
	return items, err
}

type workflowOutput struct {
	ETag string `header:"ETag" doc:"Of the script; send it in If-Match to change what you saw."`
	Body client.Workflow
}

func (a *API) getWorkflow(ctx context.Context, in *WorkflowPath) (*workflowOutput, error) {
	w, err := a.describeWorkflow(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &workflowOutput{tagOf(w.Version), w}, nil
}

func (a *API) describeWorkflow(ctx context.Context, name string) (client.Workflow, error) {
	if textFault(name, maxName) != "" {
		return client.Workflow{}, a.noWorkflow(ctx, name)
	}
	d, err := a.workflows.Describe(ctx, name)
	if err != nil {
		return client.Workflow{}, a.aboutWorkflow(ctx, name, err)
	}
	return workflowOf(&d, time.Now()), nil
}

// ofWorkflow reads what belongs to a workflow, in one transaction.
func (a *API) ofWorkflow(ctx context.Context, name string, read func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error) error {
	if textFault(name, maxName) != "" {
		return a.noWorkflow(ctx, name)
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
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

func (a *API) noWorkflow(ctx context.Context, name string) error {
	return a.noLane(ctx, a.workflows, name)
}
