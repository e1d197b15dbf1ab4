package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// planOf tells how the database would run a statement.
func planOf(t testing.TB, db *store.DB, s store.Statement) string {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (string, error) {
		explain, dest := `explain `, []any{new(string)}
		if db.Name() == "sqlite" {
			explain, dest = `explain query plan `, []any{new(int), new(int), new(int), new(string)}
		}
		rows, err := tx.Query(ctx, explain+s.Text, s.Args...)
		lines, err := store.ScanAll(rows, err, "explain", func(row store.Scanner) (string, error) {
			err := row.Scan(dest...)
			return *dest[len(dest)-1].(*string), err
		})
		return strings.Join(lines, "\n"), err
	})
}

// fillEvents makes 20,000 events in four topics, of which most have ended: in
// every topic 400 are pending and 100 are held, by ten runs.
func fillEvents(t testing.TB, db *store.DB, workflowID string) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, created_at, updated_at)
			with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
			select i, $1, 't' || (i % 4), i, i, 'm' || i, '{}', case when i % 50 < 4 then 'pending' when i % 50 = 4 then 'reserved' else 'consumed' end,
				case when i % 50 = 4 then 'r' || (i % 10) when i % 50 > 4 then 'old' end, 'run', '[]', 0, 0 from n`, workflowID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update topics set seq = 20000 where workflow_id = $1`, workflowID)
		return err
	})
	if db.Name() == "postgres" {
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `analyze events`)
			return err
		})
	}
}

// What is asked for every run must not grow with what has ended: it is read
// from the partial indexes, without sorting.
func TestHotStatementsUseTheirPartialIndexes(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "t0", "t1", "t2", "t3")
		fillEvents(t, db, w.ID)
		for _, c := range []struct {
			name, index string
			do          store.Func
		}{
			{"peek", "events_pending", func(ctx context.Context, tx *store.Tx) error {
				list, err := eventstore.In(tx).PeekEvents(ctx, w.ID, "t1", 100, 1<<30)
				if len(list) != 100 {
					t.Errorf("peeked at %d events", len(list))
				}
				return err
			}},
			{"oldest", "events_pending", func(ctx context.Context, tx *store.Tx) error {
				ages, err := eventstore.In(tx).OldestPending(ctx, w.ID, []string{"t1", "t2"})
				if ages["t1"] != 1 && ages["t2"] != 1 {
					t.Errorf("the oldest are %v", ages)
				}
				return err
			}},
			{"waiting", "events_pending", func(ctx context.Context, tx *store.Tx) error {
				_, _, err := eventstore.In(tx).CountWaiting(ctx, w.ID, []string{"t1", "t2"})
				return err
			}},
			{"transfer", "events_reserved", func(ctx context.Context, tx *store.Tx) error {
				_, err := eventstore.In(tx).TransferEvents(ctx, "r4", "r5")
				return err
			}},
			{"release", "events_reserved", func(ctx context.Context, tx *store.Tx) error {
				n, err := eventstore.In(tx).ReleaseEvents(ctx, "r5")
				if n != 400 {
					t.Errorf("released %d events", n)
				}
				return err
			}},
		} {
			sent := store.Statements(t, db, c.do)
			if len(sent) == 0 {
				t.Fatalf("%s sent nothing", c.name)
			}
			plan := planOf(t, db, sent[0])
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan on events") || strings.Contains(plan, "SCAN e\n") || strings.Contains(plan, "SCAN events") ||
				(c.name != "count" && c.name != "waiting" && (strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE"))) {
				t.Errorf("%s:\n%s", c.name, plan)
			}
		}
	})
}

// oddTexts are valid and must come back as they are.
func oddTexts() []string {
	return []string{
		"a'b", `a"b`, `a\b`, "a%b_c", "$1", "?", "--", "a;drop table events", "line\nbreak", "tab\t", " edge ", "ünïcödé", "日本", "🐾",
		"e\u0301", "\u202e", "\x7f", "null", "{}", strings.Repeat("x", 5000),
	}
}

func TestOddTextsComeBackAsTheyAre(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", oddTexts()...)
		for i, text := range oddTexts() {
			if got := deployed(t, db, text); got.Name != text || got.Lane != text {
				t.Errorf("workflow %q came back as %q in lane %q", text, got.Name, got.Lane)
			}
			payload, err := json.Marshal(map[string]string{text: text})
			if err != nil {
				t.Fatal(err)
			}
			published(t, db, w.ID, event0(text, text, string(payload), text))
			e := eventOf(t, db, w.ID, text, text)
			if string(e.Payload) != string(payload) || e.MessageID != text || !slices.Equal(e.CausedBy, []string{text}) || linked(t, db, w.ID, text) != text {
				t.Errorf("%q came back as %+v", text, e)
			}
			if err := reserved(t, db, w.ID, text, eventstore.Reservation{Topic: text, IDs: []string{text}}); err != nil {
				t.Errorf("reserve %q: %v", text, err)
			}
			in := input0(w.ID, fmt.Sprint("i", i))
			in.ExternalID, in.Title = text, text
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return eventstore.In(tx).AddInputs(ctx, []eventstore.Input{in})
			})
			if got := inputOf(t, db, in.ID); got.ExternalID != text || got.Title != text {
				t.Errorf("%q came back as %+v", text, got)
			}
		}
	})
}

// JSON escapes are text to both databases, NUL and half a surrogate pair too.
func TestPayloadKeepsItsEscapes(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		const payload = `{"a":"\u0000","b":"\ud800","c":1.0,"a":2}`
		published(t, db, w.ID, event0("in", "m", payload))
		if p := published(t, db, w.ID, event0("in", "m", payload)); p != (eventstore.Published{Duplicate: 1}) {
			t.Errorf("the same payload again: %+v", p)
		}
		if e := eventOf(t, db, w.ID, "in", "m"); string(e.Payload) != payload {
			t.Errorf("came back as %s", e.Payload)
		}
	})
}

// PostgreSQL takes neither NUL nor what is not UTF-8. What identifies a thing
// is refused, on both databases, before it breaks the transaction.
func TestUnstorableNamesAreRefusedAndTheTransactionGoesOn(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		for _, bad := range []string{"a\x00b", "\x00", "a\xffb"} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, insert := workflowstore.In(tx).InsertWorkflow(ctx, bad, "v1")
				_, publish := eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{event0("in", "good", `1`), event0("in", bad, `1`)})
				in := input0(w.ID, "i")
				in.ExternalID = bad
				for name, err := range map[string]error{
					"workflow": insert, "publish": publish, "input": eventstore.In(tx).AddInputs(ctx, []eventstore.Input{in}),
					"reserve": eventstore.In(tx).ReserveEvents(ctx, w.ID, "r", []eventstore.Reservation{{Topic: "in", IDs: []string{bad}}}),
					"version": workflowstore.In(tx).AddWorkflowVersion(ctx, workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: "v", Source: bad, Config: json.RawMessage(`{}`)}),
				} {
					if !errors.Is(err, pawl.ErrInvalid) {
						t.Errorf("%s with %q: %v", name, bad, err)
					}
				}
				if events, err := eventstore.In(tx).EventsByMessage(ctx, w.ID, "in", []string{bad}); err != nil || len(events) != 0 {
					t.Errorf("events %q: %v, %v", bad, events, err)
				}
				known, err := eventstore.In(tx).KnownInputs(ctx, w.ID, []string{bad})
				if len(known) != 0 {
					t.Errorf("inputs %q: %v", bad, known)
				}
				return err
			})
		}
		if n := store.CountForTest(t, db, `select (select count(*) from events) + (select count(*) from inputs) + (select count(*) from workflow_versions)`); n != 0 {
			t.Errorf("%d rows of what was refused", n)
		}
	})
}

// What only has to be read later is kept but for such characters: a call that
// was applied must be recorded whatever the server answered.
func TestUnstorableCharactersAreReplacedInFreeText(t *testing.T) {
	const bad, good = "a\x00b\xffc", "a\uFFFDb\uFFFDc"
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		m := mutation0(w.ID, "r")
		m.Title, m.Arguments = bad, json.RawMessage(`"`+bad+`"`)
		in := input0(w.ID, "i")
		in.Title = bad
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := mutationstore.In(tx).InsertMutation(ctx, m, nil)
			return errors.Join(err, eventstore.In(tx).AddInputs(ctx, []eventstore.Input{in}),
				mutationstore.In(tx).MoveMutation(ctx, m.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationApplied, Result: json.RawMessage(`"` + bad + `"`), ErrorMessage: bad}),
				runstore.In(tx).AddRunLogs(ctx, "r", 0, []runstore.LogLine{{Text: bad}}), workflowstore.In(tx).SetHandlerState(ctx, w.ID, "h", json.RawMessage(`"`+bad+`"`)))
		})
		published(t, db, w.ID, event0("in", "m", `"`+bad+`"`))
		m = mutationOf(t, db, m.ID)
		lines := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]runstore.LogLine, error) {
			return runstore.In(tx).RunLogs(ctx, "r", 9)
		})
		state := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (workflowstore.HandlerState, error) {
			return workflowstore.In(tx).GetHandlerState(ctx, w.ID, "h")
		})
		got := []string{m.Title, m.ErrorMessage, inputOf(t, db, "i").Title, lines[0].Text}
		if diff := cmp.Diff([]string{good, good, good, good}, got); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
		for _, raw := range []json.RawMessage{m.Arguments, m.Result, state.State, eventOf(t, db, w.ID, "in", "m").Payload} {
			if string(raw) != `"`+good+`"` {
				t.Errorf("JSON came back as %q", raw)
			}
		}
	})
}
