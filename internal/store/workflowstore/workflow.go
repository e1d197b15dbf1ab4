package workflowstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Workflow is what was deployed under a name.
type Workflow struct {
	ID      string
	Name    string
	Lane    string // of its runs and its job; the name, unless an earlier one of that name was deleted
	Desired string // active, paused or archived: what a person wants
	Version string // the version in force
	// Revision is raised by every change of the fields here.
	Revision int64
	// ClearedRun is the run of which a person said that what stopped it is
	// mended; empty mostly.
	ClearedRun string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	DeployedAt time.Time // when the version came into force
	DeletedAt  time.Time // zero while it is there
	// Partitioned says that a version of it had partitions, so that there may be some.
	Partitioned bool
}

const workflowColumns = `id, name, lane, desired, version, revision, cleared_run, created_at, updated_at, deployed_at, deleted_at, partitioned`

func scanWorkflow(row store.Scanner) (Workflow, error) {
	var w Workflow
	var cleared *string
	var created, updated, deployed, partitioned int64
	var deleted *int64
	if err := row.Scan(&w.ID, &w.Name, &w.Lane, &w.Desired, &w.Version, &w.Revision, &cleared, &created, &updated, &deployed, &deleted, &partitioned); err != nil {
		return Workflow{}, err
	}
	w.Partitioned = partitioned == 1
	w.ClearedRun = store.FromNullText(cleared)
	w.CreatedAt, w.UpdatedAt, w.DeployedAt, w.DeletedAt = store.FromMillis(created), store.FromMillis(updated), store.FromMillis(deployed), store.FromNullMillis(deleted)
	return w, nil
}

func noWorkflow(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read workflow", Msg: fmt.Sprintf("there is no workflow %q", name), Hint: "pawl get workflows lists them."}
	}
	return fmt.Errorf("read workflow: %w", err)
}

// WorkflowByName reads a workflow that is not deleted, or fails with
// pawl.ErrNotFound.
func (tx Tx) WorkflowByName(ctx context.Context, name string) (Workflow, error) {
	w, err := scanWorkflow(tx.QueryRow(ctx, `select `+workflowColumns+` from workflows where name = $1 and deleted_at is null`, name))
	return w, noWorkflow(err, name)
}

// GetWorkflow reads a workflow, a deleted one too.
func (tx Tx) GetWorkflow(ctx context.Context, id string) (Workflow, error) {
	w, err := scanWorkflow(tx.QueryRow(ctx, `select `+workflowColumns+` from workflows where id = $1`, id))
	return w, noWorkflow(err, id)
}

// WorkflowByLane reads the workflow of a lane, which may be that of one of its
// partitions; a deleted one too.
func (tx Tx) WorkflowByLane(ctx context.Context, lane string) (Workflow, error) {
	lane, _ = runstore.BaseLane(lane)
	w, err := scanWorkflow(tx.QueryRow(ctx, `select `+workflowColumns+` from workflows where lane = $1`, lane))
	return w, noWorkflow(err, lane)
}

// AskRevision asks which revision the row of a workflow has, and whether somebody
// wants a producer of it to run.
func (tx Tx) AskRevision(ctx context.Context, id string, revision *int64, requested *bool) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		_, err = store.ScanAll(rows, err, "read revision", func(row store.Scanner) (struct{}, error) {
			var requests int
			err := row.Scan(revision, &requests)
			*requested = requests > 0
			return struct{}{}, err
		})
		return err
	}, `select revision, (select count(*) from producer_schedules where workflow_id = workflows.id and requested_at is not null) from workflows where id = $1`, id)
}

// ShareWorkflow reads a workflow and keeps others from changing its row until
// the transaction ends.
func (tx Tx) ShareWorkflow(ctx context.Context, id string) (Workflow, error) {
	w, err := scanWorkflow(tx.QueryRow(ctx, `select `+workflowColumns+` from workflows where id = $1`+tx.ForShare(), id))
	return w, noWorkflow(err, id)
}

// ExpectRevision fails with pawl.ErrConflict unless the row of a workflow is still
// of this revision, and keeps it so until the transaction ends.
func (tx Tx) ExpectRevision(ctx context.Context, id string, revision int64) error {
	otherwise := &pawl.Error{Code: pawl.CodeConflict, Op: "share workflow", Msg: "the workflow was changed"}
	return tx.Expect(ctx, 1, otherwise, `select 1 from workflows where id = $1 and revision = $2`+tx.ForShare(), id, revision)
}

// HoldWorkflow reads a workflow by its name and keeps others from changing or
// sharing its row until the transaction ends.
func (tx Tx) HoldWorkflow(ctx context.Context, name string) (Workflow, error) {
	w, err := scanWorkflow(tx.QueryRow(ctx, `select `+workflowColumns+` from workflows where name = $1 and deleted_at is null`+tx.ForUpdate(), name))
	return w, noWorkflow(err, name)
}

// InsertWorkflow adds a workflow. Its lane is its name, with a number if there
// was one of that name before: what a deleted one did is not its past.
func (tx Tx) InsertWorkflow(ctx context.Context, name, version string) (Workflow, error) {
	if err := store.CheckText("insert workflow", "name", name); err != nil {
		return Workflow{}, err
	}
	var before int
	if err := tx.QueryRow(ctx, `select count(*) from workflows where name = $1`, name).Scan(&before); err != nil {
		return Workflow{}, fmt.Errorf("insert workflow: %w", err)
	}
	lane := name
	if before > 0 {
		lane += "#" + strconv.Itoa(before+1)
	}
	w, err := scanWorkflow(tx.QueryRow(ctx, `insert into workflows (id, name, lane, desired, version, created_at, updated_at, deployed_at)
		values ($1, $2, $3, 'active', $4, $5, $5, $5) returning `+workflowColumns, store.NewID(), name, lane, version, store.Millis(tx.Now)))
	if tx.IsUnique(err) {
		return Workflow{}, &pawl.Error{Code: pawl.CodeConflict, Op: "insert workflow", Msg: fmt.Sprintf("workflow %q was deployed by someone else at the same time", name), Hint: "Try again."}
	}
	if err != nil {
		return Workflow{}, fmt.Errorf("insert workflow: %w", err)
	}
	return w, runstore.In(tx.Tx).InsertLane(ctx, runstore.Lane{Kind: pawl.KindWorkflow, Lane: w.Lane, ID: w.ID, Name: w.Name, State: "Idle"})
}

// SetWorkflowVersion puts a version in force.
func (tx Tx) SetWorkflowVersion(ctx context.Context, id, version string) error {
	return tx.setWorkflow(ctx, id, `version = $3, deployed_at = $2`, version)
}

// SetWorkflowDesired notes what a person wants.
func (tx Tx) SetWorkflowDesired(ctx context.Context, id, desired string) error {
	return tx.setWorkflow(ctx, id, `desired = $3`, desired)
}

// SetWorkflowCleared notes that what stopped a run is mended; empty forgets it.
func (tx Tx) SetWorkflowCleared(ctx context.Context, id, runID string) error {
	return tx.setWorkflow(ctx, id, `cleared_run = $3`, store.NullText(runID))
}

// SetWorkflowPartitioned notes that the workflow may have partitions.
func (tx Tx) SetWorkflowPartitioned(ctx context.Context, id string) error {
	return tx.setWorkflow(ctx, id, `partitioned = $3`, 1)
}

// TouchWorkflow raises the revision: what the owner of the lane keeps in memory
// must be built anew.
func (tx Tx) TouchWorkflow(ctx context.Context, id string) error {
	_, err := tx.Exec(ctx, `update workflows set updated_at = $2, revision = revision + 1 where id = $1`, id, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("change workflow: %w", err)
	}
	return nil
}

// DeleteWorkflow frees the name; the rows stay for whoever asks what happened.
func (tx Tx) DeleteWorkflow(ctx context.Context, w Workflow) error {
	if err := tx.setWorkflow(ctx, w.ID, `deleted_at = $2, desired = $3`, "archived"); err != nil {
		return err
	}
	return runstore.In(tx.Tx).DropLane(ctx, pawl.KindWorkflow, w.Lane)
}

func (tx Tx) setWorkflow(ctx context.Context, id, assignments string, value any) error {
	if _, err := tx.Exec(ctx, `update workflows set updated_at = $2, revision = revision + 1, `+assignments+` where id = $1`, id, store.Millis(tx.Now), value); err != nil {
		return fmt.Errorf("change workflow: %w", err)
	}
	return nil
}

// ListWorkflows reads up to limit workflows by name, those after the given one.
func (tx Tx) ListWorkflows(ctx context.Context, after string, limit int) ([]Workflow, error) {
	rows, err := tx.Query(ctx, `select `+workflowColumns+` from workflows where deleted_at is null and name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list workflows", scanWorkflow)
}

// UnarmedWorkflows reads up to limit workflows by name, those after the given
// one, that could do something by themselves and have no job of the task that
// would see to it. One that is paused ends what it has begun and nothing else.
func (tx Tx) UnarmedWorkflows(ctx context.Context, task, after string, limit int) ([]Workflow, error) {
	rows, err := tx.Query(ctx, `select `+workflowColumns+` from workflows w where deleted_at is null and name > $1
		and not exists (select 1 from jobs j where j.key = 'workflow:' || w.lane and j.owner = '' and j.task = $3 and j.state = 0)
		and (exists (select 1 from runs r where r.kind = 'workflow' and r.lane = w.lane and r.status = 'active')
			or exists (select 1 from mutations m where m.workflow_id = w.id and m.resolved_at is null)
			or desired = 'active' and (exists (select 1 from producer_schedules p where p.workflow_id = w.id)
				or exists (select 1 from handler_state h where h.workflow_id = w.id and h.wake_at is not null)
				or exists (select 1 from retries t where t.kind = 'workflow' and t.lane = w.lane and t.next_retry_at is not null)
				or exists (select 1 from events e where e.workflow_id = w.id and e.status = 'pending')))
		order by name limit $2`, after, limit, task)
	return store.ScanAll(rows, err, "find workflows without a job", scanWorkflow)
}

// WaitingWorkflows reads up to limit workflows by name, those after the given
// one, that are meant to run and have pending events, or whose last run waits
// for something that a new process may have.
func (tx Tx) WaitingWorkflows(ctx context.Context, after, errorCode string, limit int) ([]Workflow, error) {
	rows, err := tx.Query(ctx, `select `+workflowColumns+` from workflows w where deleted_at is null and desired = 'active' and name > $1
		and (exists (select 1 from events e where e.workflow_id = w.id and e.status = 'pending')
			or exists (select 1 from runs r where r.kind = 'workflow' and r.lane = w.lane and r.status = 'paused:approval' and r.error_code = $3)
			or w.partitioned = 1 and exists (select 1 from partitions p where p.workflow_id = w.id and p.open = 1))
		order by name limit $2`, after, limit, errorCode)
	return store.ScanAll(rows, err, "find workflows that wait", scanWorkflow)
}

// ArmedAt reads when the job of a lane is due, or was when it is at work; ok is
// false if there is none.
func (tx Tx) ArmedAt(ctx context.Context, task, key string) (at time.Time, ok bool, err error) {
	var due int64
	err = tx.QueryRow(ctx, `select run_at from jobs where key = $1 and owner = '' and task = $2 and state = 0`, key, task).Scan(&due)
	if errors.Is(err, store.ErrNoRow) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read when a lane is due: %w", err)
	}
	return store.FromMillis(due), true, nil
}

// WorkflowVersion is a script as it was deployed.
type WorkflowVersion struct {
	WorkflowID string
	Version    string // SHA-256 of the source
	Number     int    // 1, 2, ... in the order of arrival
	Filename   string
	Source     string
	Config     json.RawMessage
	CreatedAt  time.Time
	CreatedBy  string
	// Confined: it was made by auto-fix and no person deployed it, so that it
	// may call only what the workflow has a right to.
	Confined bool
}

const versionColumns = `workflow_id, version, number, filename, source, config, created_at, created_by, confined`

func scanVersion(row store.Scanner) (WorkflowVersion, error) {
	var v WorkflowVersion
	var config string
	var created, confined int64
	var by *string
	if err := row.Scan(&v.WorkflowID, &v.Version, &v.Number, &v.Filename, &v.Source, &config, &created, &by, &confined); err != nil {
		return WorkflowVersion{}, err
	}
	v.Confined = confined == 1
	v.Config, v.CreatedAt, v.CreatedBy = json.RawMessage(config), store.FromMillis(created), store.FromNullText(by)
	return v, nil
}

// AddWorkflowVersion keeps a version, unless it is there already.
func (tx Tx) AddWorkflowVersion(ctx context.Context, v WorkflowVersion) error {
	if !store.Storable(v.Source) {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "add workflow version", Msg: "the script has a NUL character or is not UTF-8"}
	}
	confined := 0
	if v.Confined {
		confined = 1
	}
	_, err := tx.Exec(ctx, `insert into workflow_versions (`+versionColumns+`)
		values ($1, $2, (select coalesce(max(number), 0) + 1 from workflow_versions where workflow_id = $1), $3, $4, $5, $6, $7, $8)
		on conflict (workflow_id, version) do nothing`,
		v.WorkflowID, v.Version, v.Filename, v.Source, string(v.Config), store.Millis(tx.Now), store.NullText(v.CreatedBy), confined)
	if err != nil {
		return fmt.Errorf("add workflow version: %w", err)
	}
	return nil
}

// GetWorkflowVersion reads a version, or fails with pawl.ErrNotFound.
func (tx Tx) GetWorkflowVersion(ctx context.Context, workflowID, version string) (WorkflowVersion, error) {
	v, err := scanVersion(tx.QueryRow(ctx, `select `+versionColumns+` from workflow_versions where workflow_id = $1 and version = $2`, workflowID, version))
	if errors.Is(err, store.ErrNoRow) {
		return v, &pawl.Error{Code: pawl.CodeNotFound, Op: "read workflow version", Msg: "there is no such version"}
	}
	return v, err
}

// VersionInForce is which script of a workflow is in force.
type VersionInForce struct {
	WorkflowID string
	Version    string
	Number     int
}

// VersionsInForce reads which scripts are in force, of the workflows by name
// after one and up to another, by the ids of the workflows.
func (tx Tx) VersionsInForce(ctx context.Context, after, last string) (map[string]VersionInForce, error) {
	rows, err := tx.Query(ctx, `select w.id, w.version, v.number from workflows w join workflow_versions v on v.workflow_id = w.id and v.version = w.version
		where w.deleted_at is null and w.name > $1 and w.name <= $2`, after, last)
	list, err := store.ScanAll(rows, err, "read versions in force", func(row store.Scanner) (v VersionInForce, err error) {
		return v, row.Scan(&v.WorkflowID, &v.Version, &v.Number)
	})
	out := make(map[string]VersionInForce, len(list))
	for _, v := range list {
		out[v.WorkflowID] = v
	}
	return out, err
}

// ListWorkflowVersions reads up to limit versions with a number below before,
// the newest first; before zero begins with the newest.
func (tx Tx) ListWorkflowVersions(ctx context.Context, workflowID string, before int64, limit int) ([]WorkflowVersion, error) {
	rows, err := tx.Query(ctx, `select `+versionColumns+` from workflow_versions where workflow_id = $1 and number < $2
		order by number desc limit $3`, workflowID, store.IDBefore(before), limit)
	return store.ScanAll(rows, err, "list workflow versions", scanVersion)
}
