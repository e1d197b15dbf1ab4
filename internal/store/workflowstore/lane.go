package workflowstore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func workflowLanes() runstore.LaneTable {
	wanted, noted := `l.desired = 'active'`, runstore.NeedsAttention("workflow", "l.lane")
	return runstore.LaneTable{
		From: "workflows l", There: "l.deleted_at is null", Wanted: wanted, Noted: wanted + " and " + noted,
		Word: `case when l.desired <> 'active' then 'Stopped' when ` + noted + ` then 'Needs attention' else ` + runstore.NewestState("workflow", "l.lane") + ` end`,
	}
}

// FindWorkflows reads up to limit workflows that fit, by name, those after the
// given one.
func (tx Tx) FindWorkflows(ctx context.Context, f runstore.LaneFilter, after string, limit int) ([]Workflow, error) {
	rows, err := runstore.In(tx.Tx).FindLanes(ctx, workflowLanes(), workflowColumns, f, after, limit)
	return store.ScanAll(rows, err, "find workflows", scanWorkflow)
}

// CountWorkflows counts the workflows by their word.
func (tx Tx) CountWorkflows(ctx context.Context) (map[string]int, error) {
	return runstore.In(tx.Tx).CountLanes(ctx, workflowLanes())
}

// DueProducer is a producer of a workflow that is meant to run.
type DueProducer struct {
	ProducerSchedule
	Workflow string // its name
}

// DueProducers reads up to limit producers that come due before an instant, the
// soonest first, of workflows that are meant to run and do not need a person.
func (tx Tx) DueProducers(ctx context.Context, before time.Time, limit int) ([]DueProducer, error) {
	t := workflowLanes()
	rows, err := tx.Query(ctx, `select `+scheduleColumns+`, l.name from producer_schedules p join `+t.From+` on l.id = p.workflow_id
		where p.next_run_at < $1 and `+t.There+` and `+t.Wanted+` and not (`+t.Noted+`) order by p.next_run_at, p.id limit $2`, store.Millis(before), limit)
	return store.ScanAll(rows, err, "find producers that are due", func(row store.Scanner) (d DueProducer, err error) {
		d.ProducerSchedule, err = scanSchedule(store.Also(row, &d.Workflow))
		return d, err
	})
}
