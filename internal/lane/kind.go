package lane

import (
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Kind is one kind of lane. Its service implements it.
type Kind interface {
	Kind() pawl.Kind
	Reader
	Runs
	Worker
}

// Kinds are the kinds of a server, in the order in which lanes are listed.
type Kinds []Kind

// Get finds a kind by its name.
func (list Kinds) Get(kind pawl.Kind) (Kind, bool) {
	for _, k := range list {
		if k.Kind() == kind {
			return k, true
		}
	}
	return nil, false
}

// LaneOf is the lane that a run belongs to, under the name that it had then.
func (list Kinds) LaneOf(r *runstore.Run) Ref {
	if k, ok := list.Get(r.Kind); ok {
		return k.LaneOf(r)
	}
	return Named(r.Kind, r.Lane)
}

// Reader tells about lanes.
type Reader interface {
	// List reads lanes by name, and the place at which to go on, zero at the end.
	// A page can have fewer lanes than were asked for and not be the last.
	List(ctx context.Context, q Query) (page []Lane, next Place, err error)
	// Names reads up to limit names, for whoever mistyped one.
	Names(ctx context.Context, tx *store.Tx, owner string, limit int) ([]string, error)
	// Why tells why a lane runs, does not run, or waits. With an instant it tells
	// also what was then.
	Why(ctx context.Context, v Viewer, name string, at time.Time) (Why, error)
	// Due reads up to limit of what comes due by itself before an instant, and
	// whether there is more. What needs a person does not come due.
	Due(ctx context.Context, owner string, before time.Time, limit int) (list []Due, more bool, err error)
	// Repeats reads what comes due again and again in one lane that List told of.
	Repeats(ctx context.Context, tx *store.Tx, l *Lane) ([]Due, error)
}

// Runs tells about the runs of lanes.
type Runs interface {
	// LaneOf is the lane that a run belongs to, under the name that it had then.
	LaneOf(r *runstore.Run) Ref
	// Find picks the runs of a lane that the viewer names; ok is false if there
	// is no such lane.
	Find(ctx context.Context, tx *store.Tx, v Viewer, name string) (f runstore.RunFilter, ok bool, err error)
	// OwnerOf is whose a lane is; empty is everybody's. It fails with
	// pawl.ErrNotFound if it is gone.
	OwnerOf(ctx context.Context, tx *store.Tx, key string) (string, error)
	// Actions are what the kind accepts for a run now.
	Actions(ctx context.Context, tx *store.Tx, r *runstore.Run) ([]Action, error)
	// CancelRun ends a run for good, or asks for its end.
	CancelRun(ctx context.Context, tx *store.Tx, r runstore.Run, by string) (runstore.Run, error)
}

// Worker is the work of a kind.
type Worker interface {
	// Tasks are the code of its jobs.
	Tasks() map[string]queue.Task
	// Standing are the jobs that every start makes sure of.
	Standing() []store.JobSpec
	// Attach gives the kind the queue that carries its jobs. The queue needs the
	// tasks first, so it comes later.
	Attach(jobs Jobs)
}

// Query picks lanes; empty fields pick all.
type Query struct {
	Owner string // whose lanes, of a kind whose lanes are owned
	Text  string // part of the name
	State run.State
	After Place
	Limit int
}

// Stored is the query as rows of lanes answer it. They know nothing of workers and
// halts: with no worker, everything may need attention.
func (q Query) Stored(there run.Workforce) runstore.LaneFilter {
	f := runstore.LaneFilter{Text: q.Text, State: string(q.State)}
	if there.Missing && q.State == run.NeedsAttention || there.Halt != nil && q.State == run.Stopped {
		f.State = ""
	}
	return f
}

// Fitting are the lanes that have the state that is asked for.
func (q Query) Fitting(list []Lane) []Lane {
	return slices.DeleteFunc(list, func(l Lane) bool { return !q.Fits(&l) })
}

// Fits reports whether a lane that was found has the state that is asked for.
func (q Query) Fits(l *Lane) bool { return q.State == "" || q.State == l.State }

// Viewer is who asks about a lane.
type Viewer struct {
	UserID string // whose names they use
	Owner  string // whose lanes they may see; empty is everybody's
}

// Action is something that can be done about a run.
type Action struct {
	Name     string   // approve, reject, resolve, resume or cancel
	Outcomes []string // of resolve: what can be said
}

// Jobs arms lanes; *queue.Queue does.
type Jobs interface {
	EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error)
}

// Claim is the right to work on a lane, as *queue.Job gives it.
type Claim interface {
	Fence() store.Fence
	Stopping() bool
	// StillOwned fails if this process may have lost the lane without noticing,
	// by a clock that counts the time in which the machine sleeps. A fence
	// keeps such a process from writing; this keeps it from calling.
	StillOwned() error
}

// Backoff is when the job of a lane is tried again: it fails only when the store
// does, so that is soon.
func Backoff(_ int64, attempt int) time.Duration {
	return min(time.Second<<min(attempt-1, 5), 30*time.Second)
}

// Refuse is a command that cannot be done in the present state. The reason is
// for programs.
func Refuse(op, reason, msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeConflict, Reason: reason, Op: op, Msg: msg, Hint: hint}
}

// StandingJob is a job of which there is one, due now.
func StandingJob(task string) store.JobSpec {
	return store.JobSpec{Task: task, Key: task, KeyMode: store.Earliest}
}
