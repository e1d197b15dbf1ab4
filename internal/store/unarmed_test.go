package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// a workflow and a source whose key is taken by a job of somebody else, or
// of another task, have no job, and the sweeps see that.
func TestUnarmedIsWhatHasNoJobOfItsTask(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for i, spec := range []store.JobSpec{{Task: "sweep"}, {Task: "sweep", Owner: "u1"}, {Task: "other"}} {
			name := fmt.Sprint("n", i)
			w := deployed(t, db, name)
			putSchedules(t, db, store.AtForTest(0), workflowstore.ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "interval", Value: "5m"})
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				src, err := sourcestore.In(tx).InsertSource(ctx, sourcestore.Source{Name: name, Definition: []byte(`{}`), Version: "v", Status: "active"}, "me")
				if err != nil {
					return err
				}
				ofWorkflow, ofSource := spec, spec
				ofWorkflow.Key, ofSource.Key = "workflow:"+w.Lane, "source:"+src.ID
				_, err = tx.Enqueue(ctx, []store.JobSpec{ofWorkflow, ofSource})
				return err
			})
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			flows, err := workflowstore.In(tx).UnarmedWorkflows(ctx, "sweep", "", 9)
			if err != nil {
				return err
			}
			sources, err := sourcestore.In(tx).UnarmedSources(ctx, "sweep", "", 9)
			if err != nil {
				return err
			}
			if len(flows) != 2 || len(sources) != 2 || flows[0].Name != "n1" || flows[1].Name != "n2" || sources[0].Name != "n1" || sources[1].Name != "n2" {
				t.Errorf("without a job are %+v and %+v", flows, sources)
			}
			return nil
		})
	})
}
