package workflowstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// HandlerState is what a handler returned last, and when a consumer wants to
// be woken.
type HandlerState struct {
	Handler string
	State   json.RawMessage // nil: it never returned one
	WakeAt  time.Time       // zero: not set
}

func scanHandlerState(row store.Scanner) (HandlerState, error) {
	var h HandlerState
	var state *string
	var wake *int64
	if err := row.Scan(&h.Handler, &state, &wake); err != nil {
		return HandlerState{}, err
	}
	h.State, h.WakeAt = store.FromNullJSON(state), store.FromNullMillis(wake)
	return h, nil
}

// HandlerStates reads what all handlers of a workflow keep, in one query.
func (tx Tx) HandlerStates(ctx context.Context, workflowID string) ([]HandlerState, error) {
	rows, err := tx.Query(ctx, `select handler, state, wake_at from handler_state where workflow_id = $1 order by handler`, workflowID)
	return store.ScanAll(rows, err, "read handler states", scanHandlerState)
}

// AskWakeTimes asks when consumers of a workflow want to be woken, without their
// states.
func (tx Tx) AskWakeTimes(ctx context.Context, workflowID string, out *[]HandlerState) error {
	return store.AskAll(ctx, tx.Tx, out, "read wake times", scanHandlerState,
		`select handler, null, wake_at from handler_state where workflow_id = $1 and wake_at is not null order by wake_at, handler`, workflowID)
}

// GetHandlerState reads what one handler keeps; the zero state if it keeps
// nothing.
func (tx Tx) GetHandlerState(ctx context.Context, workflowID, handler string) (HandlerState, error) {
	rows, err := tx.Query(ctx, `select handler, state, wake_at from handler_state where workflow_id = $1 and handler = $2`, workflowID, handler)
	found, err := store.ScanAll(rows, err, "read handler state", scanHandlerState)
	if err != nil || len(found) == 0 {
		return HandlerState{Handler: handler}, err
	}
	return found[0], nil
}

// SetHandlerState keeps what a handler returned; nothing leaves the state as it
// is, and null is a state.
func (tx Tx) SetHandlerState(ctx context.Context, workflowID, handler string, state json.RawMessage) error {
	if len(state) == 0 {
		return nil
	}
	err := tx.Post(ctx, `insert into handler_state (workflow_id, handler, state, updated_at) values ($1, $2, $3, $4)
		on conflict (workflow_id, handler) do update set state = excluded.state, updated_at = excluded.updated_at`,
		workflowID, handler, string(state), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("set handler state: %w", err)
	}
	return nil
}

// SetWakeAt keeps when a consumer wants to be woken, zero for not at all; its
// state stays as it is.
func (tx Tx) SetWakeAt(ctx context.Context, workflowID, handler string, at time.Time) error {
	var err error
	if at.IsZero() {
		err = tx.Post(ctx, `update handler_state set wake_at = null, updated_at = $3 where workflow_id = $1 and handler = $2 and wake_at is not null`,
			workflowID, handler, store.Millis(tx.Now))
	} else {
		err = tx.Post(ctx, `insert into handler_state (workflow_id, handler, wake_at, updated_at) values ($1, $2, $3, $4)
			on conflict (workflow_id, handler) do update set wake_at = excluded.wake_at, updated_at = excluded.updated_at`,
			workflowID, handler, store.Millis(at), store.Millis(tx.Now))
	}
	if err != nil {
		return fmt.Errorf("set wake time: %w", err)
	}
	return nil
}
