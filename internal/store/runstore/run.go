package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Run is one attempt, and one row. What may become of it is decided by
// internal/run and done by internal/ledger; here are only the statements.
type Run struct {
	ID          string
	Kind        pawl.Kind
	Lane        string
	Handler     string
	HandlerType pawl.HandlerType
	Trigger     string // what caused the work; the same along a chain
	RetryOf     string // the attempt before this one; empty for the first
	Phase       pawl.Phase
	Status      pawl.Status
	Attempt     int // place in its chain, counted from 1

	ScheduledFor time.Time // the slot it stands for; zero if none

	PrepareResult  json.RawMessage
	MutationResult json.RawMessage
	OutputState    json.RawMessage

	ErrorCode    string
	ErrorClass   pawl.Class
	ErrorMessage string

	ScriptVersion string
	Owner         store.Fence // of whoever last made it active; the zero Fence if nobody did

	CreatedAt time.Time // grows along a lane
	UpdatedAt time.Time
	StartedAt time.Time // zero until somebody executes it
	EndedAt   time.Time // zero while active and in a pause that the same row leaves again

	// It stands for runs after it that found nothing to do either: when the last of
	// them was made, and how many there are with it. Zero: it stands for itself.
	Through time.Time
	Count   int64

	// What follows is not stored with it, but for Brought when it commits.
	Trace   string // the traceparent of the first of its events that has one
	Brought *int64 // how many events it published, nil: nobody counts
}

// LongestStretch is how much later than a run itself the last one is that it stands for.
const LongestStretch = 24 * time.Hour

// Covers reports whether the run stands for others on both sides of the instant.
func (r *Run) Covers(at time.Time) bool {
	return r.Count > 1 && !at.Before(r.CreatedAt) && !at.After(r.Through)
}

// LastMade is when the last run that it stands for was made.
func (r *Run) LastMade() time.Time {
	if r.Count > 1 {
		return r.Through
	}
	return r.CreatedAt
}

const (
	runColumns = ownColumns + `, through_at, run_count`
	ownColumns = `id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for,
	prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version,
	node, bucket, epoch, created_at, updated_at, started_at, ended_at`
)

// scanRun reads runColumns.
func scanRun(row store.Scanner) (Run, error) {
	var r Run
	var retryOf, prepared, mutated, output, code, class, message, version, node *string
	var scheduled, bucket, epoch, started, ended, through, count *int64
	var created, updated int64
	err := row.Scan(&r.ID, &r.Kind, &r.Lane, &r.Handler, &r.HandlerType, &r.Trigger, &retryOf, &r.Phase, &r.Status, &r.Attempt, &scheduled,
		&prepared, &mutated, &output, &code, &class, &message, &version,
		&node, &bucket, &epoch, &created, &updated, &started, &ended, &through, &count)
	if err != nil {
		return Run{}, err
	}
	r.RetryOf, r.ScheduledFor = store.FromNullText(retryOf), store.FromNullMillis(scheduled)
	r.PrepareResult, r.MutationResult, r.OutputState = store.FromNullJSON(prepared), store.FromNullJSON(mutated), store.FromNullJSON(output)
	r.ErrorCode, r.ErrorClass, r.ErrorMessage = store.FromNullText(code), pawl.Class(store.FromNullText(class)), store.FromNullText(message)
	r.ScriptVersion = store.FromNullText(version)
	if bucket != nil && epoch != nil {
		r.Owner = store.Fence{Bucket: int(*bucket), Node: store.FromNullText(node), Epoch: *epoch}
	}
	r.CreatedAt, r.UpdatedAt, r.StartedAt, r.EndedAt = store.FromMillis(created), store.FromMillis(updated), store.FromNullMillis(started), store.FromNullMillis(ended)
	if count != nil && *count > 1 {
		r.Through, r.Count = store.FromNullMillis(through), *count
	}
	return r, nil
}

func scanRuns(rows store.Rows, err error) ([]Run, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Run
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// jsonOrNull keeps JSON; what PostgreSQL refuses in a text is replaced.
func jsonOrNull(raw json.RawMessage) *string { return store.NullText(string(raw)) }

// InsertRun adds a run and returns it as stored. It fails with
// pawl.ErrConflict when the lane has an active run already, or the run before
// it a successor: the unique indexes say so, nobody looks first. The
// transaction can go on after that.
//
// created_at is the transaction's instant, or later if the lane has a run of
// that instant or, by the clock of another node, of a later one: so the newest
// run of a lane is always the one inserted last.
func (tx Tx) InsertRun(ctx context.Context, r Run) (Run, error) {
	stored, err := scanRun(tx.QueryRow(ctx, `insert into runs (`+ownColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
			$12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
			coalesce((select case when created_at >= $22 then created_at + 1 else $22 end from runs
				where kind = $2 and lane = $3 order by created_at desc limit 1), $22), $22, $23, null)
		on conflict do nothing returning `+runColumns,
		r.ID, r.Kind, r.Lane, r.Handler, r.HandlerType, r.Trigger, store.NullText(r.RetryOf), r.Phase, r.Status, r.Attempt, store.NullMillis(r.ScheduledFor),
		jsonOrNull(r.PrepareResult), jsonOrNull(r.MutationResult), jsonOrNull(r.OutputState),
		store.NullText(r.ErrorCode), store.NullText(string(r.ErrorClass)), store.NullText(r.ErrorMessage), store.NullText(r.ScriptVersion),
		ownerNode(r.Owner), ownerBucket(r.Owner), ownerEpoch(r.Owner), store.Millis(tx.Now), store.NullMillis(r.StartedAt)))
	if errors.Is(err, store.ErrNoRow) {
		return Run{}, tx.whyRefused(ctx, r)
	}
	if err != nil {
		return Run{}, fmt.Errorf("insert run: %w", err)
	}
	return stored, nil
}

// PutRun adds a first attempt as it is, wherever it is by now, with an instant that its caller knows to
// be behind that of every other run of the lane. If the lane has an active run
// already the transaction fails with pawl.ErrConflict.
func (tx Tx) PutRun(ctx context.Context, r Run) error {
	return tx.Expect(ctx, 1, runConflict("insert run", "run_active: a run of %s %s is active", r.Kind, r.Lane),
		`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, scheduled_for, script_version, node, bucket, epoch,
			created_at, updated_at, started_at, prepare_result, mutation_result)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) on conflict do nothing`,
		r.ID, r.Kind, r.Lane, r.Handler, r.HandlerType, r.Trigger, r.Phase, r.Status, r.Attempt, store.NullMillis(r.ScheduledFor), store.NullText(r.ScriptVersion),
		ownerNode(r.Owner), ownerBucket(r.Owner), ownerEpoch(r.Owner), store.Millis(r.CreatedAt), store.Millis(r.UpdatedAt), store.NullMillis(r.StartedAt),
		jsonOrNull(r.PrepareResult), jsonOrNull(r.MutationResult))
}

// A fence has an epoch from 1 on; before that nobody owned the bucket.
func ownerNode(f store.Fence) *string { return store.NullText(f.Node) }

func ownerBucket(f store.Fence) *int64 {
	if f.Epoch == 0 {
		return nil
	}
	bucket := int64(f.Bucket)
	return &bucket
}

func ownerEpoch(f store.Fence) *int64 {
	if f.Epoch == 0 {
		return nil
	}
	return &f.Epoch
}

// whyRefused says which of the two rules kept a run out.
func (tx Tx) whyRefused(ctx context.Context, r Run) error {
	if r.RetryOf != "" {
		s, err := tx.Successor(ctx, r.RetryOf)
		if err == nil {
			return runConflict("insert run", "run %s has a successor already, run %s", r.RetryOf, s.ID)
		}
		if !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
	}
	return runConflict("insert run", "run_active: a run of %s %s is active", r.Kind, r.Lane)
}

func runConflict(op, format string, args ...any) error {
	return &pawl.Error{Code: pawl.CodeConflict, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// RunResults are what a run keeps on reaching a phase; empty ones stay as they
// are.
type RunResults struct {
	Prepare  json.RawMessage
	Mutation json.RawMessage
}

// RunFailure is why a run stopped.
type RunFailure struct {
	Code    string
	Class   pawl.Class
	Message string
}

// changeRun sets columns of a run that is still at the phase and status of r;
// otherwise the transaction fails with pawl.ErrConflict. $1 to $4 of the
// assignments are taken: id, phase, status and now.
func (tx Tx) changeRun(ctx context.Context, r Run, assignments string, args ...any) error {
	return tx.Expect(ctx, 1, runConflict("change run", "run %s is not %s at %s any more", r.ID, r.Status, r.Phase), `update runs set updated_at = $4, `+assignments+whereRun,
		append([]any{r.ID, r.Phase, r.Status, store.Millis(tx.Now)}, args...)...)
}

// whereRun finds a run that is still as its caller believes.
const whereRun = ` where id = $1 and phase = $2 and status is not distinct from $3`

// begun is a run that somebody executes.
func (tx Tx) begun(r Run) Run {
	if r.StartedAt.IsZero() {
		r.StartedAt = tx.Now
	}
	r.UpdatedAt = tx.Now
	return r
}

// AdvanceRun moves the phase of a run that is still as r says, and keeps the
// results; the status stays.
func (tx Tx) AdvanceRun(ctx context.Context, r Run, to pawl.Phase, keep RunResults) (Run, error) {
	next := tx.begun(r)
	next.Phase = to
	if len(keep.Prepare) > 0 {
		next.PrepareResult = keep.Prepare
	}
	if len(keep.Mutation) > 0 {
		next.MutationResult = keep.Mutation
	}
	return next, tx.changeRun(ctx, r, `phase = $5, prepare_result = coalesce($6, prepare_result), mutation_result = coalesce($7, mutation_result),
		started_at = coalesce(started_at, $4)`, to, jsonOrNull(keep.Prepare), jsonOrNull(keep.Mutation))
}

// StartRun notes that somebody executes the run now.
func (tx Tx) StartRun(ctx context.Context, r Run) (Run, error) {
	return tx.begun(r), tx.changeRun(ctx, r, `started_at = coalesce(started_at, $4)`)
}

// CommitRun ends a run that is still as r says.
func (tx Tx) CommitRun(ctx context.Context, r Run, output json.RawMessage) (Run, error) {
	next := tx.begun(r)
	next.Phase, next.Status, next.OutputState, next.EndedAt = pawl.PhaseCommitted, pawl.StatusCommitted, output, tx.Now
	set, args := `phase = $5, status = $6, output_state = $7, started_at = coalesce(started_at, $4), ended_at = $4`, []any{pawl.PhaseCommitted, pawl.StatusCommitted, jsonOrNull(output)}
	if r.Brought != nil {
		set, args = set+`, brought = $8`, append(args, *r.Brought)
	}
	return next, tx.changeRun(ctx, r, set, args...)
}

// StopRun gives a run that is still as r says another status than active; the
// phase stays. ended says that this attempt is history from now on. A nil
// failure leaves what the row says about an earlier one.
func (tx Tx) StopRun(ctx context.Context, r Run, to pawl.Status, ended bool, why *RunFailure) (Run, error) {
	next := r
	next.Status, next.UpdatedAt = to, tx.Now
	set, args := `status = $5`, []any{to}
	if ended {
		next.EndedAt = tx.Now
		set += `, ended_at = $4`
	}
	if why != nil {
		next.ErrorCode, next.ErrorClass, next.ErrorMessage = why.Code, why.Class, why.Message
		set += `, error_code = $6, error_class = $7, error_message = $8`
		args = append(args, store.NullText(why.Code), store.NullText(string(why.Class)), store.NullText(why.Message))
	}
	return next, tx.changeRun(ctx, r, set, args...)
}

// ActivateRun makes a waiting run active again for its new owner; the phase
// stays and the reason of the wait is forgotten. It fails with
// pawl.ErrConflict when the lane has another active run.
func (tx Tx) ActivateRun(ctx context.Context, r Run, owner store.Fence) (Run, error) {
	n, err := tx.Exec(ctx, `update runs set updated_at = $4, status = $5, node = $6, bucket = $7, epoch = $8, started_at = coalesce(started_at, $4),
		error_code = null, error_class = null, error_message = null`+whereRun,
		r.ID, r.Phase, r.Status, store.Millis(tx.Now), pawl.StatusActive, ownerNode(owner), ownerBucket(owner), ownerEpoch(owner))
	switch {
	case tx.IsUnique(err):
		return Run{}, runConflict("activate run", "run_active: a run of %s %s is active", r.Kind, r.Lane)
	case err != nil:
		return Run{}, fmt.Errorf("activate run: %w", err)
	case n == 0:
		return Run{}, runConflict("activate run", "run %s is not %s at %s any more", r.ID, r.Status, r.Phase)
	}
	next := tx.begun(r)
	next.Status, next.Owner = pawl.StatusActive, owner
	next.ErrorCode, next.ErrorClass, next.ErrorMessage = "", "", ""
	return next, nil
}

// HoldActive fails with pawl.ErrConflict unless a run is still active where its
// owner believes, and keeps it so until the transaction ends.
func (tx Tx) HoldActive(ctx context.Context, r Run) error {
	return tx.Expect(ctx, 1, runConflict("hold run", "run %s is not active at %s any more", r.ID, r.Phase),
		`select 1 from runs where id = $1 and phase = $2 and status = 'active' and node = $3 and bucket = $4 and epoch = $5`+tx.ForUpdate(),
		r.ID, r.Phase, r.Owner.Node, r.Owner.Bucket, r.Owner.Epoch)
}

// HoldRun reads a run as it is now and keeps others from changing it until the
// transaction ends, so that what is decided about it stays right.
func (tx Tx) HoldRun(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where id = $1`+tx.ForUpdate(), id))
	return r, noRun(err, "run "+id)
}
