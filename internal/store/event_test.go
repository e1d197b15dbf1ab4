package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
)

func peeked(t testing.TB, db *DB, workflowID, topic string, limit int) string {
	t.Helper()
	return messages(mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Event, error) {
		return tx.PeekEvents(ctx, workflowID, topic, limit, 1<<30)
	}))
}

// reserved tries to give events to a run, in a transaction that is given up
// when they cannot be had.
func reserved(t testing.TB, db *DB, workflowID, runID string, list ...Reservation) error {
	t.Helper()
	return db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.ReserveEvents(ctx, workflowID, runID, list) })
}

// statuses tells what became of the events of a topic, in their order.
func statuses(t testing.TB, db *DB, workflowID, topic string) string {
	t.Helper()
	list := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Event, error) {
		return tx.ListEvents(ctx, workflowID, EventFilter{Topic: topic}, 0, 1000)
	})
	slices.SortFunc(list, func(a, b Event) int { return int(a.Seq - b.Seq) })
	var out []string
	for _, e := range list {
		s := e.MessageID + " " + string(e.Status)
		if e.ReservedBy != "" {
			s += " by " + e.ReservedBy
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// abc publishes the events a, b and c to the topic in.
func abc(t testing.TB, db *DB, workflowID string) {
	t.Helper()
	published(t, db, workflowID, event0("in", "a", `1`), event0("in", "b", `2`), event0("in", "c", `3`))
}

// 3.1: peek returns pending events, the oldest first, and no more than asked.
func TestPeekReturnsPendingEventsOldestFirst(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "in", "out"), deployed(t, db, "other", "in")
		for _, id := range []string{"z", "m", "taken", "a", "ended", "k"} {
			published(t, db, w.ID, event0("in", id, `1`))
		}
		published(t, db, w.ID, event0("out", "of another topic", `1`))
		published(t, db, other.ID, event0("in", "of another workflow", `1`))
		moved(t, db, w.ID, "in", "taken", EventReserved)
		moved(t, db, w.ID, "in", "ended", EventConsumed)
		moved(t, db, w.ID, "in", "m", EventPending) // released: its place stays
		for limit, want := range map[int]string{0: "", 1: "z", 3: "z m a", 100: "z m a k"} {
			if got := peeked(t, db, w.ID, "in", limit); got != want {
				t.Errorf("limit %d: %q, want %q", limit, got, want)
			}
		}
	})
}

// Events are found by message id whatever became of them, the oldest first and
// each once, also when more are asked for than fit one statement.
func TestEventsByMessageAreTheOldestFirst(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "in"), deployed(t, db, "other", "in")
		var list []NewEvent
		var ids []string
		for i := range 1100 {
			ids = append(ids, fmt.Sprintf("m%04d", 1099-i))
			list = append(list, event0("in", ids[i], `1`))
		}
		published(t, db, w.ID, list...)
		published(t, db, other.ID, event0("in", "foreign", `1`))
		moved(t, db, w.ID, "in", "m0000", EventConsumed)
		moved(t, db, w.ID, "in", "m0001", EventReserved)
		asked := slices.Concat([]string{"nobody", "foreign"}, slices.Sorted(slices.Values(ids)), ids[:600])
		got := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Event, error) { return tx.EventsByMessage(ctx, w.ID, "in", asked) })
		if diff := cmp.Diff(strings.Join(ids, " "), messages(got)); diff != "" {
			t.Errorf("%d events (-want +got):\n%.500s", len(got), diff)
		}
		if asked[2] != "m0000" {
			t.Error("the list of the caller was sorted")
		}
		none := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Event, error) { return tx.EventsByMessage(ctx, w.ID, "in", nil) })
		if len(none) != 0 {
			t.Errorf("%d events for no ids", len(none))
		}
	})
}

// 3.1: all events that a run names are reserved, or none.
func TestReserveTakesAllOrNone(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "in", "out"), deployed(t, db, "other", "in")
		abc(t, db, w.ID)
		published(t, db, w.ID, event0("out", "x", `1`), event0("in", "taken", `1`), event0("in", "ended", `1`))
		published(t, db, other.ID, event0("in", "foreign", `1`))
		moved(t, db, w.ID, "in", "taken", EventReserved)
		moved(t, db, w.ID, "in", "ended", EventConsumed)
		before := statuses(t, db, w.ID, "in") + statuses(t, db, w.ID, "out")
		for _, c := range []struct {
			name string
			list []Reservation
			want string
		}{
			{"missing", []Reservation{{"in", []string{"a", "nobody", "b"}}}, `there is no event "nobody" in topic "in"`},
			{"of another topic", []Reservation{{"in", []string{"a", "x"}}}, `there is no event "x" in topic "in"`},
			{"of another workflow", []Reservation{{"in", []string{"foreign"}}}, `there is no event "foreign" in topic "in"`},
			{"topic that is not there", []Reservation{{"in", []string{"a"}}, {"nowhere", []string{"a"}}}, `there is no event "a" in topic "nowhere"`},
			{"taken", []Reservation{{"in", []string{"a", "b", "taken"}}}, `event "taken" of topic "in" is reserved, not pending`},
			{"ended", []Reservation{{"out", []string{"x"}}, {"in", []string{"ended"}}}, `event "ended" of topic "in" is consumed, not pending`},
			{"twice in one list", []Reservation{{"in", []string{"a", "b", "a"}}}, `an event of topic "in" is named twice`},
			{"twice in two lists", []Reservation{{"in", []string{"a"}}, {"in", []string{"a", "b"}}}, `an event of topic "in" is named twice`},
		} {
			err := reserved(t, db, w.ID, "r", c.list...)
			if !errors.Is(err, pawl.ErrInvalid) || err.Error() != "reserve events: "+c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			if after := statuses(t, db, w.ID, "in") + statuses(t, db, w.ID, "out"); after != before {
				t.Errorf("%s left %s", c.name, after)
			}
		}
		if err := reserved(t, db, w.ID, "r", Reservation{"in", []string{"c", "a"}}, Reservation{"out", []string{"x"}}, Reservation{"in", nil}); err != nil {
			t.Errorf("reserve: %v", err)
		}
		want := "a reserved by r, b pending, c reserved by r, taken reserved by holder of taken, ended consumed by holder of ended"
		if got := statuses(t, db, w.ID, "in"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := statuses(t, db, w.ID, "out"); got != "x reserved by r" {
			t.Errorf("out: %s", got)
		}
	})
}

func TestReserveManyEvents(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w := deployed(t, db, "mail", "in")
		var list []NewEvent
		var ids []string
		for i := range 1000 {
			ids = append(ids, fmt.Sprint("m", i))
			list = append(list, event0("in", ids[i], `1`))
		}
		published(t, db, w.ID, list...)
		twice := append(slices.Clone(ids), "m0") // far apart: not in one statement
		if err := reserved(t, db, w.ID, "r", Reservation{"in", twice}); !errors.Is(err, pawl.ErrInvalid) || !strings.HasSuffix(err.Error(), "is named twice") {
			t.Errorf("one is named twice: %v", err)
		}
		if err := reserved(t, db, w.ID, "r", Reservation{"in", ids}); err != nil {
			t.Errorf("reserve: %v", err)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if n, err := tx.ReleaseEvents(ctx, "r"); err != nil || n != 1000 {
				t.Errorf("%d events were released: %v", n, err)
			}
			return nil
		})
		if got := peeked(t, db, w.ID, "in", 1000); got != strings.Join(ids, " ") {
			t.Errorf("the order changed: %.100s", got)
		}
	})
}

// What a run holds goes one way at a time: back, to the end, or to another run;
// and what others hold stays.
func TestHeldEventsMoveTogether(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, c := range []struct {
			name    string
			move    func(ctx context.Context, tx *Tx) (int64, error)
			want    string
			attempt int
		}{
			{"release", func(ctx context.Context, tx *Tx) (int64, error) { return tx.ReleaseEvents(ctx, "r") }, "a pending, b reserved by s, c pending", 1},
			{"consume", func(ctx context.Context, tx *Tx) (int64, error) { return tx.ConsumeEvents(ctx, "r") }, "a consumed by r, b reserved by s, c consumed by r", 0},
			{"skip", func(ctx context.Context, tx *Tx) (int64, error) { return tx.SkipReservedEvents(ctx, "r") }, "a skipped by r, b reserved by s, c skipped by r", 0},
			{"transfer", func(ctx context.Context, tx *Tx) (int64, error) { return tx.TransferEvents(ctx, "r", "r2") }, "a reserved by r2, b reserved by s, c reserved by r2", 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := deployed(t, db, c.name, "in")
				abc(t, db, w.ID)
				if err := errors.Join(reserved(t, db, w.ID, "r", Reservation{"in", []string{"a", "c"}}), reserved(t, db, w.ID, "s", Reservation{"in", []string{"b"}})); err != nil {
					t.Fatal(err)
				}
				var moved, again int64
				mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
					tx.Now = at(9)
					if moved, err = c.move(ctx, tx); err != nil {
						return err
					}
					again, err = c.move(ctx, tx)
					return err
				})
				if got := statuses(t, db, w.ID, "in"); got != c.want || moved != 2 || again != 0 {
					t.Errorf("moved %d, then %d: %s", moved, again, got)
				}
				if e := eventOf(t, db, w.ID, "in", "a"); e.Attempt != c.attempt || e.UpdatedAt != at(9) {
					t.Errorf("%+v", e)
				}
				if e := eventOf(t, db, w.ID, "in", "b"); e.Attempt != 0 || e.UpdatedAt == at(9) {
					t.Errorf("what another run holds was changed: %+v", e)
				}
				mustWrite(t, db, func(ctx context.Context, tx *Tx) error { // the next case uses the same names
					for _, run := range []string{"r", "r2", "s"} {
						if _, err := tx.ConsumeEvents(ctx, run); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	})
}

// 3.1: every release counts an attempt.
func TestReleaseCountsAttempts(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w := deployed(t, db, "mail", "in")
		abc(t, db, w.ID)
		for range 3 {
			moved(t, db, w.ID, "in", "b", EventPending)
		}
		if e := eventOf(t, db, w.ID, "in", "b"); e.Attempt != 3 {
			t.Errorf("attempt %d", e.Attempt)
		}
		if got := peeked(t, db, w.ID, "in", 9); got != "a b c" {
			t.Errorf("the order is %s", got)
		}
	})
}

// one query counts the pending events of all topics; topics without one
// are absent, and no topics need no query.
func TestCountPendingIsOneQuery(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "in", "out", "empty", "ended"), deployed(t, db, "other", "in")
		abc(t, db, w.ID)
		abc(t, db, other.ID)
		published(t, db, w.ID, event0("out", "x", `1`), event0("ended", "x", `1`), event0("ended", "y", `1`))
		moved(t, db, w.ID, "in", "a", EventReserved)
		moved(t, db, w.ID, "ended", "x", EventConsumed)
		moved(t, db, w.ID, "ended", "y", EventSkipped)
		for _, c := range []struct {
			topics  []string
			want    map[string]int
			queries int
		}{
			{[]string{"in", "out", "empty", "ended", "nowhere"}, map[string]int{"in": 2, "out": 1}, 1},
			{[]string{"in"}, map[string]int{"in": 2}, 1},
			{nil, map[string]int{}, 0},
			{[]string{}, map[string]int{}, 0},
		} {
			asked := Statements(t, db, func(ctx context.Context, tx *Tx) error {
				got, err := tx.CountPending(ctx, w.ID, c.topics)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%q (-want +got):\n%s", c.topics, diff)
				}
				return err
			})
			if len(asked) != c.queries {
				t.Errorf("%q: %d queries, want %d", c.topics, len(asked), c.queries)
			}
		}
	})
}

// consumers are ordered by their oldest pending event, over all their
// topics.
func TestOldestPendingEventOverTopics(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "a", "b", "empty"), deployed(t, db, "other", "a")
		published(t, db, other.ID, event0("a", "foreign", `1`))
		for _, e := range []NewEvent{event0("b", "1", `1`), event0("a", "2", `1`), event0("b", "3", `1`), event0("a", "4", `1`)} {
			published(t, db, w.ID, e)
		}
		expect := func(want string, topics ...string) {
			t.Helper()
			var id, wantID int64
			ages := mustRead(t, db, func(ctx context.Context, tx *Tx) (map[string]int64, error) {
				return tx.OldestPending(ctx, w.ID, topics)
			})
			for _, age := range ages {
				if id == 0 || age < id {
					id = age
				}
			}
			if want != "" {
				wantID = eventOf(t, db, w.ID, want[:1], want[1:]).ID
			}
			if id != wantID {
				t.Errorf("oldest of %q is %d, want %d (%s)", topics, id, wantID, want)
			}
		}
		expect("b1", "a", "b", "empty")
		many := []string{"a", "b", "empty", "1", "2", "3", "4", "5", "6", "7"}
		if asked := Statements(t, db, func(ctx context.Context, tx *Tx) error { _, err := tx.OldestPending(ctx, w.ID, many); return err }); len(asked) != 1 { // T-138
			t.Errorf("ten topics need %d statements", len(asked))
		}
		expect("a2", "empty", "a")
		expect("", "empty", "nowhere")
		expect("")
		moved(t, db, w.ID, "b", "1", EventConsumed)
		expect("a2", "a", "b")
		moved(t, db, w.ID, "a", "2", EventReserved)
		expect("b3", "a", "b")
		expect("a4", "a")
	})
}

// A reservation is orphaned when its run ended, is not there, or has a
// successor; not while the run may go on.
func TestOrphanedReservationsAreFound(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "in"), deployed(t, db, "other", "in")
		hold := func(workflowID, name string, status pawl.Status, retryOf string) string {
			t.Helper()
			r := run0("lane of " + name)
			r.Status, r.RetryOf = status, retryOf
			r = insertRun(t, db, r)
			published(t, db, workflowID, event0("in", name, `1`))
			if err := reserved(t, db, workflowID, r.ID, Reservation{"in", []string{name}}); err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		var want []OrphanedReservation
		for _, status := range pawl.Statuses() {
			run := hold(w.ID, string(status), status, "")
			if status == pawl.StatusCommitted || status == pawl.StatusCancelled {
				want = append(want, OrphanedReservation{w.ID, "in", string(status), run})
			}
		}
		before := hold(w.ID, "has a successor", pawl.StatusCrashed, "")
		want = append(want, OrphanedReservation{w.ID, "in", "has a successor", before})
		hold(w.ID, "is the successor", pawl.StatusActive, before)
		want = append(want, OrphanedReservation{other.ID, "in", "elsewhere", hold(other.ID, "elsewhere", pawl.StatusCommitted, "")})
		published(t, db, w.ID, event0("in", "of nobody", `1`), event0("in", "ended", `1`))
		moved(t, db, w.ID, "in", "of nobody", EventReserved)
		moved(t, db, w.ID, "in", "ended", EventConsumed)
		want = append(want, OrphanedReservation{w.ID, "in", "of nobody", "holder of of nobody"})

		inThis := slices.DeleteFunc(slices.Clone(want), func(o OrphanedReservation) bool { return o.WorkflowID != w.ID })
		for _, c := range []struct {
			workflowID string
			limit      int
			want       []OrphanedReservation
		}{{"", 100, want}, {"", 2, want[:2]}, {w.ID, 100, inThis}, {other.ID, 100, want[3:4]}} {
			got := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]OrphanedReservation, error) {
				return tx.OrphanedReservations(ctx, c.workflowID, c.limit)
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("workflow %q, limit %d (-want +got):\n%s", c.workflowID, c.limit, diff)
			}
		}
	})
}

func TestEventsAreListedPageByPage(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w, other := deployed(t, db, "mail", "a", "b"), deployed(t, db, "other", "a")
		published(t, db, other.ID, event0("a", "foreign", `1`, "i0"))
		for i := range 24 {
			topic, id := []string{"a", "b"}[i%2], fmt.Sprint("m", i)
			published(t, db, w.ID, event0(topic, id, `1`, fmt.Sprint("i", i%3)))
			if i%4 < 2 {
				moved(t, db, w.ID, topic, id, EventConsumed)
			}
		}
		for _, f := range []EventFilter{
			{}, {Topic: "a"}, {Status: EventConsumed}, {InputID: "i1"}, {Topic: "b", Status: EventPending, InputID: "i2"}, {Topic: "nowhere"}, {InputID: "nobody"},
		} {
			var want []string
			for i := 23; i >= 0; i-- {
				status := EventPending
				if i%4 < 2 {
					status = EventConsumed
				}
				if (f.Topic == "" || f.Topic == []string{"a", "b"}[i%2]) && (f.Status == "" || f.Status == status) && (f.InputID == "" || f.InputID == fmt.Sprint("i", i%3)) {
					want = append(want, fmt.Sprint("m", i))
				}
			}
			var got []Event
			for before := int64(0); ; {
				page := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Event, error) { return tx.ListEvents(ctx, w.ID, f, before, 5) })
				got = append(got, page...)
				if len(page) < 5 {
					break
				}
				before = page[4].ID
			}
			if diff := cmp.Diff(strings.Join(want, " "), messages(got)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", f, diff)
			}
		}
	})
}

// Ids grow with time, also for events of one transaction: they order events of
// several topics.
func TestEventIDsGrow(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		w := deployed(t, db, "mail", "in")
		var last int64
		for i := range 3 {
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				tx.Now = tx.Now.Add(-time.Duration(i) * time.Hour) // a clock that goes back
				_, err := tx.Publish(ctx, w.ID, "run", []NewEvent{event0("in", fmt.Sprint("x", i), `1`), event0("in", fmt.Sprint("y", i), `1`)})
				return err
			})
			for _, name := range []string{"x", "y"} {
				id := eventOf(t, db, w.ID, "in", fmt.Sprint(name, i)).ID
				if id <= last {
					t.Errorf("id %d after %d", id, last)
				}
				last = id
			}
		}
	})
}
