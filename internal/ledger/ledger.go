package ledger

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Config says who takes part in the transitions.
type Config struct {
	// Holdings are what runs of a kind hold besides their row. The runs of a
	// kind without an entry reserve nothing and call nothing.
	Holdings map[pawl.Kind]Holdings

	// Observe is told of every transition after its commit, on the goroutine
	// that committed; it must not block. It may be nil.
	Observe func(Event)
}

// Holdings is what the runs of a kind hold besides their row: events that they
// reserved and calls that they made. A kind implements it with statements in
// the transaction that it is given.
//
// A kind that opens a mutation row, or moves one, does so in a transaction
// that calls Hold first, so that nobody cancels the run meanwhile.
type Holdings interface {
	// Mutation sums up the mutation rows of a run; see run.LedgerOf.
	Mutation(ctx context.Context, tx *store.Tx, runID string) (Mutation, error)

	// Settle does what a transition decided about what the run holds. It must
	// do no harm when it is asked for the same again.
	Settle(ctx context.Context, tx *store.Tx, s Settlement) error
}

// Mutation is what is known about the call of a run.
type Mutation struct {
	State        pawl.MutationState
	CanReconcile bool // the tool can be asked later whether it happened
}

// Settlement is what becomes of what a run holds.
type Settlement struct {
	RunID string

	// Reservations is release, keep_transfer or consumed; with none and keep
	// there is nothing to do.
	Reservations run.Reservations

	// Successor gets the reservations of keep_transfer, and with them the
	// mutation row if it is unresolved. A resolved one stays with the attempt
	// that made the call.
	Successor string

	// Mutation is the state that the unresolved mutation row moves to;
	// pawl.MutationNone means that it stays.
	Mutation pawl.MutationState
}

// What names a transition.
type What string

// The transitions, as they are told.
const (
	Begun     What = "begun" // also a successor, which names the run before it
	Started   What = "started"
	Advanced  What = "advanced"
	Committed What = "committed"
	Stopped   What = "stopped"
	Cancelled What = "cancelled"
	Crashed   What = "crashed"
	Resumed   What = "resumed"
)

// Event is one transition that was committed.
type Event struct {
	What What
	Run  runstore.Run // as the transition left it
	// Alarm says what was found that the rules cannot lead to; mostly empty.
	Alarm string
}

// Ledger makes the transitions. All state is in the database, but for what this
// process had to leave (GaveUp). It is safe for concurrent use.
type Ledger struct {
	holdings map[pawl.Kind]Holdings
	observe  func(Event)
	left     left
}

// New returns a ledger.
func New(cfg Config) *Ledger {
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	return &Ledger{holdings: cfg.Holdings, observe: cfg.Observe}
}

// View returns what the rules need to know about a run.
func (l *Ledger) View(ctx context.Context, tx *store.Tx, r runstore.Run) (run.Run, error) {
	return l.viewKnowing(ctx, tx, r, nil)
}

// viewKnowing is View for who may know about the call of the run.
func (l *Ledger) viewKnowing(ctx context.Context, tx *store.Tx, r runstore.Run, known *Mutation) (run.Run, error) {
	v := run.Run{ID: r.ID, RetryOf: r.RetryOf, Type: r.HandlerType, Phase: r.Phase, Status: r.Status, Class: r.ErrorClass}
	if known != nil {
		v.Ledger, v.CanReconcile = known.State, known.CanReconcile
		return v, nil
	}
	h := l.holdings[r.Kind]
	if h == nil {
		return v, nil
	}
	m, err := h.Mutation(ctx, tx, r.ID)
	if err != nil {
		return run.Run{}, fmt.Errorf("read mutation of run %s: %w", r.ID, err)
	}
	v.Ledger, v.CanReconcile = m.State, m.CanReconcile
	return v, nil
}

// Hold fails unless the run is still active where its caller believes, and
// keeps it so until the transaction ends.
func (l *Ledger) Hold(ctx context.Context, tx *store.Tx, r runstore.Run) error {
	const op = "hold run"
	if r.Status != pawl.StatusActive {
		return refuse(op, r, "it is %s", r.Status)
	}
	if err := tx.Fence(ctx, r.Owner); err != nil {
		return err
	}
	return runstore.In(tx).HoldActive(ctx, r)
}

// settle passes on what was decided, if there is anything to do. Without a
// successor nothing can change hands.
func (l *Ledger) settle(ctx context.Context, tx *store.Tx, r runstore.Run, d run.Decision, successor string) error {
	h := l.holdings[r.Kind]
	s := Settlement{RunID: r.ID, Reservations: d.Reservations, Successor: successor, Mutation: d.LedgerMove}
	if s.Reservations == run.ReservationsTransfer && successor == "" {
		s.Reservations = run.ReservationsKeep
	}
	idle := s.Reservations == run.ReservationsNone || s.Reservations == run.ReservationsKeep
	if h == nil || idle && s.Mutation == pawl.MutationNone {
		return nil
	}
	if err := h.Settle(ctx, tx, s); err != nil {
		return fmt.Errorf("settle run %s: %w", r.ID, err)
	}
	return nil
}

// emit notes a transition for after the commit.
func (l *Ledger) emit(tx *store.Tx, what What, r runstore.Run, d run.Decision) {
	e := Event{What: what, Run: r}
	if d.Alarm {
		e.Alarm = d.Reason
	}
	tx.AfterCommit(func() { l.observe(e) })
}

func refuse(op string, r runstore.Run, format string, args ...any) error {
	return &pawl.Error{Code: pawl.CodeConflict, Op: op, Msg: "run " + r.ID + ": " + fmt.Sprintf(format, args...)}
}
