package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func setState(t testing.TB, db *store.DB, workflowID, handler, state string) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		return workflowstore.In(tx).SetHandlerState(ctx, workflowID, handler, json.RawMessage(state))
	})
}

func setWake(t testing.TB, db *store.DB, workflowID, handler string, at time.Time) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		return workflowstore.In(tx).SetWakeAt(ctx, workflowID, handler, at)
	})
}

// expectState compares what a handler keeps, alone and among all of its
// workflow.
func expectState(t testing.TB, db *store.DB, workflowID string, want workflowstore.HandlerState, there bool) {
	t.Helper()
	one := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (workflowstore.HandlerState, error) {
		return workflowstore.In(tx).GetHandlerState(ctx, workflowID, want.Handler)
	})
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("one (-want +got):\n%s", diff)
	}
	all := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.HandlerState, error) {
		return workflowstore.In(tx).HandlerStates(ctx, workflowID)
	})
	found := false
	for _, h := range all {
		if h.Handler == want.Handler {
			found = true
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("among all (-want +got):\n%s", diff)
			}
		}
	}
	if found != there {
		t.Errorf("the handler has a row: %v, want %v", found, there)
	}
}

// no state, the state null and other states are told apart; a
// handler that returns nothing keeps what it had.
func TestStateIsAbsentNullOrAValue(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail")
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h"}, false)
		setState(t, db, w.ID, "h", "")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).SetHandlerState(ctx, w.ID, "h", nil)
		})
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h"}, false)
		for _, state := range []string{`{"n":1}`, `null`, `""`, `{}`, `0`} {
			setState(t, db, w.ID, "h", state)
			expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(state)}, true)
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return workflowstore.In(tx).SetHandlerState(ctx, w.ID, "h", nil)
			})
			setState(t, db, w.ID, "h", "")
			expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(state)}, true)
		}
	})
}

// a wake time creates the row if need be, without
// making up a state; it is cleared by zero; and neither it nor the state ever
// alters the other.
func TestWakeTimeAndStateDoNotTouchEachOther(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail")
		setWake(t, db, w.ID, "h", time.Time{})
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h"}, false)
		setWake(t, db, w.ID, "h", store.AtForTest(5))
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", WakeAt: store.AtForTest(5)}, true)
		setState(t, db, w.ID, "h", `{"n":1}`)
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(`{"n":1}`), WakeAt: store.AtForTest(5)}, true)
		setWake(t, db, w.ID, "h", store.AtForTest(7))
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(`{"n":1}`), WakeAt: store.AtForTest(7)}, true)
		setState(t, db, w.ID, "h", `null`)
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(`null`), WakeAt: store.AtForTest(7)}, true)
		setWake(t, db, w.ID, "h", time.Time{})
		expectState(t, db, w.ID, workflowstore.HandlerState{Handler: "h", State: json.RawMessage(`null`)}, true)
	})
}

// every consumer has its own wake time; they are read with one
// query, the earliest first, as are all states.
func TestWakeTimesArePerConsumer(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		setWake(t, db, w.ID, "late", store.AtForTest(9))
		setWake(t, db, w.ID, "early", store.AtForTest(1))
		setWake(t, db, w.ID, "b", store.AtForTest(4))
		setWake(t, db, w.ID, "a", store.AtForTest(4))
		setWake(t, db, w.ID, "cleared", store.AtForTest(2))
		setWake(t, db, w.ID, "cleared", time.Time{})
		setState(t, db, w.ID, "a", `1`)
		setState(t, db, w.ID, "producer", `2`)
		setWake(t, db, other.ID, "early", store.AtForTest(0))
		setWake(t, db, w.ID, "late", store.AtForTest(8))

		var wakes, states []workflowstore.HandlerState
		sent := store.Statements(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			if err := errors.Join(workflowstore.In(tx).AskWakeTimes(ctx, w.ID, &wakes), tx.Flush(ctx)); err != nil {
				return err
			}
			states, err = workflowstore.In(tx).HandlerStates(ctx, w.ID)
			return err
		})
		if len(sent) != 2 {
			t.Errorf("%d queries", len(sent))
		}
		if diff := cmp.Diff([]workflowstore.HandlerState{{Handler: "early", WakeAt: store.AtForTest(1)}, {Handler: "a", WakeAt: store.AtForTest(4)}, {Handler: "b", WakeAt: store.AtForTest(4)}, {Handler: "late", WakeAt: store.AtForTest(8)}}, wakes); diff != "" {
			t.Errorf("wake times (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]workflowstore.HandlerState{
			{Handler: "a", State: json.RawMessage(`1`), WakeAt: store.AtForTest(4)},
			{Handler: "b", WakeAt: store.AtForTest(4)},
			{Handler: "cleared"},
			{Handler: "early", WakeAt: store.AtForTest(1)},
			{Handler: "late", WakeAt: store.AtForTest(8)},
			{Handler: "producer", State: json.RawMessage(`2`)},
		}, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

// a stored wake time is there after a restart, without any step.
func TestWakeTimeSurvivesARestart(t *testing.T) {
	url := store.SqliteURLForTest(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := deployed(t, db, "mail")
	setWake(t, db, w.ID, "h", store.AtForTest(5))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	expectState(t, store.OpenForTest(t, url), w.ID, workflowstore.HandlerState{Handler: "h", WakeAt: store.AtForTest(5)}, true)
}
