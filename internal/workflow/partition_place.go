package workflow

import (
	"context"
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// A partition has a place while it is at work, and its job is there as long. Whoever
// changes a place holds the row of the consumer's sorting first.

// armPart makes a partition work at the instant.
func (s *Service) armPart(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, id string, at time.Time) error {
	payload, err := json.Marshal(jobPayload{Workflow: w.ID, Partition: id})
	if err != nil {
		return err
	}
	key := jobKey(runstore.PartLane(w.Lane, id))
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: PartName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key, Trace: telemetry.Requested(ctx)})
	return err
}

// handOut gives free places of a consumer to partitions that wait, and arms them; but
// for one whose session is about to begin.
func (s *Service) handOut(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, config Config, handler, begins string) error {
	c, _ := config.Consumer(handler)
	got, err := partitionstore.In(tx).HandOut(ctx, w.ID, handler, c.places())
	if err != nil {
		return err
	}
	for _, id := range got {
		if id == begins {
			continue
		}
		if err := s.armPart(ctx, tx, w, id, tx.Now); err != nil {
			return err
		}
	}
	return nil
}

// stir lets all partitions of a workflow that may have something to do look.
func (s *Service) stir(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
	if !w.Partitioned {
		return nil
	}
	config, err := s.config(ctx, tx, w.ID, w.Version)
	if err != nil {
		return err
	}
	handlers, err := partitionstore.In(tx).Consumers(ctx, w.ID)
	if err != nil {
		return err
	}
	for _, handler := range handlers {
		if _, err := partitionstore.In(tx).HoldSorting(ctx, w.ID, handler); err != nil {
			return err
		}
		if err := partitionstore.In(tx).QueueOpen(ctx, w.ID, handler); err != nil {
			return err
		}
		if err := s.handOut(ctx, tx, w, config, handler, ""); err != nil {
			return err
		}
	}
	return nil
}

// stirOnce is stir for the owner of the lane, which does so once for each revision of
// the workflow and once when it takes the lane over.
func (e *session) stirOnce(ctx context.Context, v *view) error {
	err := e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).ExpectRevision(ctx, e.id, v.workflow.Revision); err != nil {
			return err
		}
		return e.stir(ctx, tx, v.workflow)
	})
	if err == nil {
		e.memory.stirred = v.workflow.Revision
	}
	return err
}

// wakePart lets a partition look at what a person said: at once, or once more if it is
// at work.
func (s *Service) wakePart(ctx context.Context, tx *store.Tx, v *view) error {
	sorting, err := partitionstore.In(tx).HoldSorting(ctx, v.workflow.ID, v.part.Handler)
	if err != nil {
		return err
	}
	sorting.News++
	if err := partitionstore.In(tx).SetSorting(ctx, sorting); err != nil {
		return err
	}
	told := partitionstore.Partition{WorkflowID: v.workflow.ID, ID: v.part.ID, Handler: v.part.Handler, Name: v.part.Name, Fault: v.part.Fault, News: sorting.News}
	if err := partitionstore.In(tx).Tell(ctx, []partitionstore.Partition{told}); err != nil {
		return err
	}
	return s.handOut(ctx, tx, v.workflow, v.config, v.part.Handler, "")
}

// takePlace makes sure that the partition has a place. Without one its session ends:
// whoever gives one back arms its job.
func (e *session) takePlace(ctx context.Context) (ok bool, err error) {
	if err := e.cfg.fault("before place"); err != nil {
		return false, err
	}
	var p partitionstore.Partition
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = partitionstore.In(tx).Get(ctx, e.id, e.partID)
		return err
	})
	if err != nil || p.Place == partitionstore.PlaceTaken {
		return err == nil, pawl.IgnoreNotFound(err)
	}
	err = e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		ok = false
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		w, err := workflowstore.In(tx).GetWorkflow(ctx, e.id)
		if err != nil {
			return err
		}
		config, err := e.config(ctx, tx, w.ID, w.Version)
		if err != nil {
			return err
		}
		if _, err := partitionstore.In(tx).HoldSorting(ctx, e.id, p.Handler); err != nil {
			return err
		}
		if err := partitionstore.In(tx).Queue(ctx, e.id, e.partID); err != nil {
			return err
		}
		if err := e.handOut(ctx, tx, w, config, p.Handler, e.partID); err != nil {
			return err
		}
		now, err := partitionstore.In(tx).Get(ctx, e.id, e.partID)
		ok = now.Place == partitionstore.PlaceTaken
		return err
	})
	if err != nil {
		return false, err
	}
	return ok, e.cfg.fault("placed")
}

// leave gives the place of the partition to another one, and notes how it stands. It
// fails with pawl.ErrConflict if somebody changed the workflow since the view. behind
// says that there is more to do, after others had their turn.
func (e *session) leave(ctx context.Context, v *view, until time.Time, behind bool) error {
	if err := e.cfg.fault("before leave"); err != nil {
		return err
	}
	left := 0
	err := e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).ExpectRevision(ctx, e.id, v.workflow.Revision); err != nil {
			return err
		}
		if err := e.settlePart(ctx, tx, v.workflow, e.partID); err != nil {
			return err
		}
		if _, err := partitionstore.In(tx).HoldSorting(ctx, e.id, v.part.Handler); err != nil {
			return err
		}
		c, _ := v.config.Consumer(v.part.Handler)
		waiting, err := eventstore.In(tx).OldestOfPart(ctx, e.id, e.partID, c.Subscribe)
		if err != nil {
			return err
		}
		left = len(waiting)
		p := *v.part
		p.NextAt, p.Place = until, partitionstore.PlaceNone
		p.Open = behind || left > 0 || !until.IsZero() || !p.WakeAt.IsZero() || p.RejectedRun != "" || v.workflow.Desired != desiredActive || run.Halts(v.newest, v.exhausted()) || v.newest.Status == pawl.StatusActive
		if behind {
			p.Place = partitionstore.PlaceWaiting
		}
		if err := partitionstore.In(tx).LeavePlace(ctx, p); err != nil {
			return err
		}
		return e.handOut(ctx, tx, v.workflow, v.config, v.part.Handler, "")
	})
	if err != nil {
		return err
	}
	if left == 0 && until.IsZero() {
		e.forgetMemory(memoryKey(e.id, e.partID)) // there is nothing that it must not look at again
	}
	return e.cfg.fault("left")
}

// settlePart writes how a partition stands, and its workflow if that differs.
func (s *Service) settlePart(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, id string) error {
	v, err := s.loadPart(ctx, tx, w, id)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	now := *v.part
	state, issue := v.status()
	switch {
	case w.Desired != desiredActive: // what is the matter with it stays
		return nil
	case issue == run.IssueNone || state == run.Idle:
		now.Issue, now.Attention, now.IssueSince = "", false, time.Time{}
	default:
		now.Issue, now.Attention = string(issue), state == run.NeedsAttention
		if v.part.Issue == "" || v.part.Attention != now.Attention {
			now.IssueSince = tx.Now
		}
	}
	if now.Issue == "" && v.part.Issue == "" {
		return nil
	}
	if now.Issue != v.part.Issue || now.Attention != v.part.Attention {
		if err := partitionstore.In(tx).SetIssue(ctx, now); err != nil {
			return err
		}
	}
	return s.settleLane(ctx, tx, w.ID) // it may be about another run
}

// settleView writes how the lane of a view stands.
func (s *Service) settleView(ctx context.Context, tx *store.Tx, v *view) error {
	if v.part != nil {
		return s.settlePart(ctx, tx, v.workflow, v.part.ID)
	}
	return s.settleLane(ctx, tx, v.workflow.ID)
}

// changedView is changed for the lane of a view.
func (s *Service) changedView(ctx context.Context, tx *store.Tx, v *view) error {
	if v.part == nil {
		return s.changed(ctx, tx, v.workflow)
	}
	if err := s.settlePart(ctx, tx, v.workflow, v.part.ID); err != nil {
		return err
	}
	return s.wakePart(ctx, tx, v)
}

// openParts reads the partitions of a workflow that may have something left to do.
func (s *Service) openParts(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) (list []partitionstore.Partition, err error) {
	for after := ""; w.Partitioned; {
		page, err := partitionstore.In(tx).Open(ctx, w.ID, after, sweepBatch)
		if list = append(list, page...); err != nil || len(page) < sweepBatch {
			return list, err
		}
		after = page[len(page)-1].ID
	}
	return nil, nil
}

// lanesOf are the lanes of a workflow in which a run can be active.
func (s *Service) lanesOf(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) ([]string, error) {
	parts, err := s.openParts(ctx, tx, w)
	lanes := []string{w.Lane}
	for _, p := range parts {
		if p.Place == partitionstore.PlaceTaken {
			lanes = append(lanes, runstore.PartLane(w.Lane, p.ID))
		}
	}
	return lanes, err
}
