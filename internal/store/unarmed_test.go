package store

import (
	"context"
	"fmt"
	"testing"
)

// a workflow and a source whose key is taken by a job of somebody else, or
// of another task, have no job, and the sweeps see that.
func TestUnarmedIsWhatHasNoJobOfItsTask(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for i, spec := range []JobSpec{{Task: "sweep"}, {Task: "sweep", Owner: "u1"}, {Task: "other"}} {
			name := fmt.Sprint("n", i)
			w := deployed(t, db, name)
			putSchedules(t, db, at(0), ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "interval", Value: "5m"})
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				src, err := tx.InsertSource(ctx, Source{Name: name, Definition: []byte(`{}`), Version: "v", Status: "active"}, "me")
				if err != nil {
					return err
				}
				ofWorkflow, ofSource := spec, spec
				ofWorkflow.Key, ofSource.Key = "workflow:"+w.Lane, "source:"+src.ID
				_, err = tx.Enqueue(ctx, []JobSpec{ofWorkflow, ofSource})
				return err
			})
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			flows, err := tx.UnarmedWorkflows(ctx, "sweep", "", 9)
			if err != nil {
				return err
			}
			sources, err := tx.UnarmedSources(ctx, "sweep", "", 9)
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
