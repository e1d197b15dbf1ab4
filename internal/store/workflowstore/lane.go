package workflowstore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// FindWorkflows reads up to limit workflows that fit, by name, those after the
// given one.
func (tx Tx) FindWorkflows(ctx context.Context, f runstore.LaneFilter, after string, limit int) ([]Workflow, error) {
	rows, err := runstore.In(tx.Tx).FindLanes(ctx, pawl.KindWorkflow, "workflows", store.Prefixed("t", workflowColumns), f, after, "", limit)
	return store.ScanAll(rows, err, "find workflows", scanWorkflow)
}

// DueProducer is a producer of a workflow that is meant to run.
type DueProducer struct {
	ProducerSchedule
	Workflow string // its name
}

// DueProducers reads up to limit producers that come due before an instant, the
// soonest first, of workflows that are meant to run and do not need a person.
func (tx Tx) DueProducers(ctx context.Context, before time.Time, limit int) ([]DueProducer, error) {
	rows, err := tx.Query(ctx, `select `+scheduleColumns+`, l.name from producer_schedules p join workflows w on w.id = p.workflow_id
		join lanes l on l.kind = 'workflow' and l.lane = w.lane and l.state not in ('Stopped', 'Needs attention')
		where p.next_run_at < $1 order by p.next_run_at, p.id limit $2`, store.Millis(before), limit)
	return store.ScanAll(rows, err, "find producers that are due", func(row store.Scanner) (d DueProducer, err error) {
		d.ProducerSchedule, err = scanSchedule(store.Also(row, &d.Workflow))
		return d, err
	})
}
