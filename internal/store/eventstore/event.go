package eventstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// EventStatus is what became of an event.
type EventStatus string

// The closed set of event statuses.
const (
	EventPending  EventStatus = "pending"
	EventReserved EventStatus = "reserved"
	EventConsumed EventStatus = "consumed"
	EventSkipped  EventStatus = "skipped"
)

// Event is one event of a topic. It is never deleted; only its status moves.
type Event struct {
	ID         int64
	WorkflowID string
	Topic      string
	Seq        int64 // place in its topic
	MessageID  string
	Payload    json.RawMessage
	Status     EventStatus
	ReservedBy string // the run that holds or consumed it
	CreatedBy  string // the run that published it, or who else did
	CausedBy   []string
	Attempt    int // how often it was reserved and released
	Duplicates int
	Trace      string // the traceparent of whoever published it; empty if there is none
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

const eventColumns = `id, workflow_id, topic, seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, trace, created_at, updated_at`

func scanEvent(row store.Scanner) (Event, error) {
	var e Event
	var payload, causes string
	var reserved, trace *string
	var created, updated int64
	err := row.Scan(&e.ID, &e.WorkflowID, &e.Topic, &e.Seq, &e.MessageID, &payload, &e.Status, &reserved, &e.CreatedBy, &causes, &e.Attempt, &e.Duplicates, &trace, &created, &updated)
	if err != nil {
		return Event{}, err
	}
	e.Trace = store.FromNullText(trace)
	e.Payload, e.ReservedBy, e.CreatedAt, e.UpdatedAt = json.RawMessage(payload), store.FromNullText(reserved), store.FromMillis(created), store.FromMillis(updated)
	return e, json.Unmarshal([]byte(causes), &e.CausedBy)
}

// ErrEventsTooLarge is a list of events with more bytes than were asked for.
var ErrEventsTooLarge = &pawl.Error{Code: pawl.CodeTooLarge, Op: "read events", Msg: "the events are too large together"}

// scanEvents is scanEvent for a list with at most so many bytes, counted while
// it is read.
func scanEvents(left *int) func(row store.Scanner) (Event, error) {
	return func(row store.Scanner) (Event, error) {
		e, err := scanEvent(row)
		const others = 256 // bytes of the other fields, as JSON
		if *left -= len(e.Payload) + 6*(len(e.MessageID)+len(e.Topic)) + others; err == nil && *left < 0 {
			return Event{}, ErrEventsTooLarge
		}
		return e, err
	}
}

// PeekEvents reads up to limit pending events of a topic, the oldest first. If
// they have more than so many bytes together it fails with ErrEventsTooLarge.
func (tx Tx) PeekEvents(ctx context.Context, workflowID, topic string, limit, bytes int) ([]Event, error) {
	rows, err := tx.Query(ctx, peekEvents, workflowID, topic, limit)
	return store.ScanAll(rows, err, "peek events", scanEvents(&bytes))
}

// AskPeek is PeekEvents for who needs the answer later.
func (tx Tx) AskPeek(ctx context.Context, workflowID, topic string, limit, bytes int, got func([]Event, error)) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		events, err := store.ScanAll(rows, err, "peek events", scanEvents(&bytes))
		got(events, err)
		if errors.Is(err, ErrEventsTooLarge) {
			return nil
		}
		return err
	}, peekEvents, workflowID, topic, limit)
}

const peekEvents = `select ` + eventColumns + ` from events where workflow_id = $1 and topic = $2 and status = 'pending' order by seq limit $3`

// EventsByMessage reads events of a topic by their message ids, whatever
// became of them, the oldest first and each once.
func (tx Tx) EventsByMessage(ctx context.Context, workflowID, topic string, messageIDs []string) ([]Event, error) {
	return tx.EventsByMessageWithin(ctx, workflowID, topic, messageIDs, math.MaxInt)
}

// EventsByMessageWithin is EventsByMessage for events that have at most so many
// bytes together; more fail with ErrEventsTooLarge.
func (tx Tx) EventsByMessageWithin(ctx context.Context, workflowID, topic string, messageIDs []string, bytes int) ([]Event, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(messageIDs)))
	ids = slices.DeleteFunc(ids, func(id string) bool { return !store.Storable(id) }) // nothing has such an id
	var out []Event
	for batch := range store.Batches(ids) {
		list, args := store.In([]any{workflowID, topic}, batch)
		rows, err := tx.Query(ctx, `select `+eventColumns+` from events where workflow_id = $1 and topic = $2 and message_id in `+list+` order by seq`, args...)
		part, err := store.ScanAll(rows, err, "read events", scanEvents(&bytes))
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	slices.SortFunc(out, func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, nil
}

// OldestPending reads the id of the oldest pending event of each of some topics,
// in one statement; topics without one are absent. Each topic is one step into
// the index of pending events, however many there are.
func (tx Tx) OldestPending(ctx context.Context, workflowID string, topics []string) (out map[string]int64, err error) {
	if len(topics) == 0 {
		return map[string]int64{}, nil
	}
	sql, args := oldestPending(workflowID, topics)
	return scanOldest(tx.Query(ctx, sql, args...))
}

// AskPending is OldestPending for who only wants to know, some time before the
// transaction is committed, whether there is any.
func (tx Tx) AskPending(ctx context.Context, workflowID string, topics []string, any func(bool)) error {
	if len(topics) == 0 {
		return nil
	}
	sql, args := oldestPending(workflowID, topics)
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		found, err := scanOldest(rows, err)
		any(len(found) > 0)
		return err
	}, sql, args...)
}

func oldestPending(workflowID string, topics []string) (string, []any) {
	parts, args := make([]string, len(topics)), []any{workflowID}
	for i, topic := range topics {
		args = append(args, topic)
		parts[i] = fmt.Sprintf(`select topic, id from (select topic, id from events where workflow_id = $1 and topic = $%d and status = 'pending' order by seq limit 1) as t%d`, len(args), i)
	}
	return strings.Join(parts, " union all "), args
}

func scanOldest(rows store.Rows, err error) (map[string]int64, error) {
	out := map[string]int64{}
	_, err = store.ScanAll(rows, err, "find oldest events", func(row store.Scanner) (struct{}, error) {
		var topic string
		var id int64
		err := row.Scan(&topic, &id)
		out[topic] = id
		return struct{}{}, err
	})
	return out, err
}

// CountWaiting counts what waits in some topics, as people count it: the inputs
// that pending events come from, and the pending events that come from none
// . Where more than mostWaiting events wait, a page would take seconds to find
// the inputs of all: then it is those of that many, and there may be more.
func (tx Tx) CountWaiting(ctx context.Context, workflowID string, topics []string) (n int, more bool, err error) {
	if len(topics) == 0 {
		return 0, false, nil
	}
	args, parts := []any{workflowID, mostWaiting + 1}, make([]string, len(topics))
	for i, topic := range topics { // in the order of events_pending, so that no other way to find them is tried
		args = append(args, topic)
		parts[i] = fmt.Sprintf(`select id from (select id from events where workflow_id = $1 and topic = $%d and status = 'pending' order by seq limit $2) as t%d`, len(args), i)
	}
	// A scalar subquery: for a join PostgreSQL would read all causes there are as soon
	// as much waits in any workflow.
	rows, err := tx.Query(ctx, `select coalesce((select string_agg(c.input_id, ' ') from event_causes c where c.event_id = e.id), 'event ' || cast(e.id as text))
		from (`+strings.Join(parts, " union all ")+`) as e`, args...)
	found, err := store.ScanAll(rows, err, "count what waits", store.ScanText)
	if err != nil {
		return 0, false, err
	}
	if len(found) > mostWaiting {
		found, more = found[:mostWaiting], true
	}
	inputs := map[string]bool{}
	for _, text := range found {
		if strings.HasPrefix(text, "event ") {
			n++
			continue
		}
		for id := range strings.SplitSeq(text, " ") {
			inputs[id] = true
		}
	}
	return n + len(inputs), more, nil
}

// mostWaiting is how many events are looked at.
const mostWaiting = 2500

// Reservation names events of one topic.
type Reservation struct {
	Topic string
	IDs   []string // message ids
}

// ErrNotReserved is why events could not be reserved; see WhyNotReserved.
var ErrNotReserved = fmt.Errorf("not every event is there and pending: %w", pawl.ErrInvalid)

// ReserveEvents gives pending events to a run: all of them, or the transaction
// fails with ErrNotReserved.
func (tx Tx) ReserveEvents(ctx context.Context, workflowID, runID string, list []Reservation) error {
	return tx.reserve(ctx, workflowID, runID, nil, list)
}

// reserve is ReserveEvents for events of a partition; nil is any.
func (tx Tx) reserve(ctx context.Context, workflowID, runID string, part *string, list []Reservation) error {
	for _, r := range list {
		if i := slices.IndexFunc(r.IDs, func(id string) bool { return !store.Storable(id) }); i >= 0 {
			return ErrNotReserved
		}
		for ids := range store.Batches(r.IDs) {
			fixed, own := []any{workflowID, r.Topic, runID, store.Millis(tx.Now)}, ""
			if part != nil {
				fixed, own = append(fixed, *part), " and part = $5"
			}
			names, args := store.In(fixed, ids)
			err := tx.Expect(ctx, len(ids), ErrNotReserved, `update events set status = 'reserved', reserved_by = $3, updated_at = $4
				where workflow_id = $1 and topic = $2 and status = 'pending'`+own+` and message_id in `+names, args...)
			if err != nil {
				return fmt.Errorf("reserve events: %w", err)
			}
		}
	}
	return nil
}

// WhyNotReserved says, as pawl.ErrInvalid, what is wrong about the first event
// that cannot be reserved.
func (tx Tx) WhyNotReserved(ctx context.Context, workflowID string, list []Reservation) error {
	named := map[[2]string]bool{}
	for _, r := range list {
		found, err := tx.EventsByMessage(ctx, workflowID, r.Topic, r.IDs)
		if err != nil {
			return err
		}
		there := map[string]Event{}
		for _, e := range found {
			there[e.MessageID] = e
		}
		for _, id := range r.IDs {
			e, ok := there[id]
			switch {
			case !ok:
				return notReserved(fmt.Sprintf("there is no event %q in topic %q", id, r.Topic))
			case e.Status != EventPending:
				return notReserved(fmt.Sprintf("event %q of topic %q is %s, not pending", id, r.Topic, e.Status))
			case named[[2]string{r.Topic, id}]:
				return notReserved(fmt.Sprintf("an event of topic %q is named twice", r.Topic))
			}
			named[[2]string{r.Topic, id}] = true
		}
	}
	return notReserved("an event was taken by somebody else")
}

func notReserved(msg string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "reserve events", Msg: msg, Hint: "Reserve only what peek returned in the same prepare."}
}

// ReleaseEvents makes the events that a run holds pending again; those of an
// input that was skipped meanwhile are skipped. It tells how many it let go.
func (tx Tx) ReleaseEvents(ctx context.Context, runID string) (int64, error) {
	rows, err := tx.Query(ctx, `update events set status = 'pending', reserved_by = null, attempt = attempt + 1, updated_at = $2
		where reserved_by = $1 and status = 'reserved' returning id`, runID, store.Millis(tx.Now))
	ids, err := store.ScanAll(rows, err, "release events", store.ScanID)
	if err != nil {
		return 0, err
	}
	// A statement of its own, so that it sees a skip for whose lock on the
	// events the first one waited.
	for batch := range store.Batches(ids) {
		list, args := store.In([]any{store.Millis(tx.Now)}, batch)
		if _, err := tx.Exec(ctx, `update events set status = 'skipped', updated_at = $1 where id in (
			select c.event_id from event_causes c join inputs i on i.id = c.input_id where i.skipped_at is not null and c.event_id in `+list+`)`, args...); err != nil {
			return 0, fmt.Errorf("skip released events: %w", err)
		}
	}
	return int64(len(ids)), nil
}

// ConsumeEvents ends the events that a run holds.
func (tx Tx) ConsumeEvents(ctx context.Context, runID string) error {
	return tx.Post(ctx, `update events set status = 'consumed', updated_at = $2 where reserved_by = $1 and status = 'reserved'`, runID, store.Millis(tx.Now))
}

// SkipReservedEvents ends the events that a run holds because a person said so.
func (tx Tx) SkipReservedEvents(ctx context.Context, runID string) (int64, error) {
	return tx.moveReserved(ctx, `status = 'skipped'`, runID)
}

// TransferEvents gives the events that a run holds to another one.
func (tx Tx) TransferEvents(ctx context.Context, runID, to string) (int64, error) {
	return tx.moveReserved(ctx, `reserved_by = $3`, runID, to)
}

func (tx Tx) moveReserved(ctx context.Context, assignments, runID string, more ...any) (int64, error) {
	n, err := tx.Exec(ctx, `update events set `+assignments+`, updated_at = $2 where reserved_by = $1 and status = 'reserved'`,
		append([]any{runID, store.Millis(tx.Now)}, more...)...)
	if err != nil {
		return 0, fmt.Errorf("move reserved events: %w", err)
	}
	return n, nil
}

// OrphanedReservation is an event that is held by a run which has ended.
type OrphanedReservation struct {
	WorkflowID, Topic, MessageID, RunID string
}

// OrphanedReservations reads up to limit events whose run holds nothing any
// more: it ended, or it is not there. workflowID may be empty for all.
func (tx Tx) OrphanedReservations(ctx context.Context, workflowID string, limit int) ([]OrphanedReservation, error) {
	var c store.Where
	c.Add("e.status = 'reserved'") // as in the index events_held
	if workflowID != "" {
		c.Add("e.workflow_id = ?", workflowID)
	}
	c.Add("(r.id is null or r.status in ('committed', 'cancelled') or exists (select 1 from runs s where s.retry_of = r.id))")
	// Sorted by an expression: in the order of the primary key, all events there
	// are would be looked at for the few that are held.
	rows, err := tx.Query(ctx, `select e.workflow_id, e.topic, e.message_id, e.reserved_by from events e left join runs r on r.id = e.reserved_by
		where `+c.String()+` order by e.id + 0 limit `+strconv.Itoa(limit), c.Args...) // in the text, so that many are one set
	return store.ScanAll(rows, err, "find orphaned reservations", func(row store.Scanner) (o OrphanedReservation, err error) {
		err = row.Scan(&o.WorkflowID, &o.Topic, &o.MessageID, &o.RunID)
		return o, err
	})
}

// EventFilter picks events of a workflow; empty fields pick all.
type EventFilter struct {
	Topic   string
	Status  EventStatus
	InputID string
}

// ListEvents reads up to limit events of a workflow with an id below before,
// the newest first; before zero begins with the newest.
func (tx Tx) ListEvents(ctx context.Context, workflowID string, f EventFilter, before int64, limit int) ([]Event, error) {
	page, _, err := tx.EventPage(ctx, workflowID, f, before, limit)
	return page, err
}

// EventPage is ListEvents with the id with which to go on, zero at the end. A
// page may end early; see PageThrough.
func (tx Tx) EventPage(ctx context.Context, workflowID string, f EventFilter, before int64, limit int) (page []Event, next int64, err error) {
	page, next, more, err := store.PageThrough(store.IDBefore(before), limit, func(e Event) int64 { return e.ID }, func(before int64, want int) (store.Window[Event, int64], error) {
		return tx.scanEvents(ctx, workflowID, f, before, want)
	})
	if !more {
		next = 0
	}
	return page, next, err
}

func (tx Tx) scanEvents(ctx context.Context, workflowID string, f EventFilter, before int64, want int) (l store.Window[Event, int64], err error) {
	var c, rest store.Where
	c.Add("workflow_id = ? and id < ?", workflowID, before)
	if f.Topic != "" {
		rest.Add("topic = ?", f.Topic)
	}
	if f.Status != "" {
		rest.Add("status = ?", string(f.Status))
	}
	if f.InputID != "" { // an input has few
		c.Add("id in (select event_id from event_causes where input_id = ?)", f.InputID)
	} else if len(rest.Texts) > 0 {
		if l.Floor, l.Cut, err = store.WindowEnd(ctx, tx.Tx, "id", "events", "id desc", &c, store.ScanID); err != nil {
			return l, err
		}
	}
	c.Join(&rest)
	if l.Cut {
		c.Add("id >= ?", l.Floor)
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+eventColumns+` from events where `+text+` order by id desc`+c.Limit(want), c.Args...)
	l.Rows, err = store.ScanAll(rows, err, "list events", scanEvent)
	return l, err
}

// EventsOfRun reads the events that a run published, in their order. Ids grow
// with time, so only those of its own time are looked at.
func (tx Tx) EventsOfRun(ctx context.Context, workflowID string, r runstore.Run) ([]Event, error) {
	end := r.EndedAt
	if end.IsZero() {
		end = tx.Now
	}
	const slack = time.Hour // clocks of nodes, and ones that were set back
	until := store.IDAt(end.Add(slack))
	if until <= 0 { // the clock is before the beginning of ids
		until = math.MaxInt64
	}
	rows, err := tx.Query(ctx, `select `+eventColumns+` from events where workflow_id = $1 and id >= $2 and id < $3 and created_by = $4 order by id`,
		workflowID, store.IDAt(r.CreatedAt.Add(-slack)), until, r.ID)
	return store.ScanAll(rows, err, "read events of a run", scanEvent)
}
