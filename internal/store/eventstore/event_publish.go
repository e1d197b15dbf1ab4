package eventstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// NewEvent is an event to publish.
type NewEvent struct {
	Topic     string
	MessageID string
	Payload   json.RawMessage
	CausedBy  []string // input ids
	Trace     string   // a traceparent; empty if there is none
}

// Published says what became of events that were published.
type Published struct {
	New       int
	Changed   int // known, still pending, and now with another payload
	Duplicate int // known, and left as they are
}

// News reports whether there is something that a consumer has not seen.
func (p Published) News() bool { return p.New+p.Changed > 0 }

func (p Published) plus(o Published) Published {
	return Published{p.New + o.New, p.Changed + o.Changed, p.Duplicate + o.Duplicate}
}

// EnsureTopics adds topics that are not there yet.
func (tx Tx) EnsureTopics(ctx context.Context, workflowID string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	v := store.Values{}
	for _, name := range names {
		v.Row(workflowID, name, store.Millis(tx.Now))
	}
	if _, err := tx.Exec(ctx, `insert into topics (workflow_id, name, created_at) values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
		return fmt.Errorf("add topics: %w", err)
	}
	return nil
}

// SetSubscribed notes which topics have a consumer; all others of the workflow
// have none.
func (tx Tx) SetSubscribed(ctx context.Context, workflowID string, names []string) error {
	list, args := store.In([]any{workflowID}, append([]string{""}, names...))
	_, err := tx.Exec(ctx, `update topics set subscribed = case when name in `+list+` then 1 else 0 end where workflow_id = $1`, args...)
	if err != nil {
		return fmt.Errorf("note subscriptions: %w", err)
	}
	return nil
}

// AskTopicSeqs asks for the number of the last event of every topic of a workflow.
// Numbers are given in the order of commits: whoever read one has seen, or can
// see, every event up to it.
func (tx Tx) AskTopicSeqs(ctx context.Context, workflowID string, out map[string]int64) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		_, err = store.ScanAll(rows, err, "read topics", func(row store.Scanner) (struct{}, error) {
			var name string
			var seq int64
			err := row.Scan(&name, &seq)
			out[name] = seq
			return struct{}{}, err
		})
		return err
	}, `select name, seq from topics where workflow_id = $1`, workflowID)
}

// Write is db.Write for a transaction that publishes one event. On PostgreSQL, those that
// publish to a topic at the same time become one transaction: the number of the topic's
// last event is one row, for which each would wait as long as the one before it takes to be
// committed. Two with the same message, or with something else of these in common, do not.
func Write(ctx context.Context, db *store.DB, workflow, topic, messageID string, fn store.Func, also ...string) error {
	return db.WriteTogether(ctx, workflow+"\x00"+topic, fn, append(also, "message "+messageID)...)
}

// Publish adds events to topics of a workflow. One whose message id is known
// is not new: while it is pending its payload and causes are replaced, and
// after that only a duplicate is counted; its status never changes. Of
// two with one message id in one call the last counts. An event of an input
// that was skipped is skipped at once.
func (tx Tx) Publish(ctx context.Context, workflowID, createdBy string, list []NewEvent) (Published, error) {
	var total Published
	byTopic := map[string][]NewEvent{}
	for _, e := range list {
		if err := store.CheckText("publish", "message id", e.MessageID); err != nil {
			return total, err
		}
		byTopic[e.Topic] = append(byTopic[e.Topic], e)
	}
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) { // everybody locks them in this order
		p, err := tx.publishTo(ctx, workflowID, createdBy, topic, lastOfEach(byTopic[topic]))
		if err != nil {
			return total, fmt.Errorf("publish to %s: %w", topic, err)
		}
		total = total.plus(p)
	}
	return total, nil
}

// lastOfEach keeps the last event of every message id.
func lastOfEach(list []NewEvent) []NewEvent {
	at := map[string]int{}
	var out []NewEvent
	for _, e := range list {
		if i, ok := at[e.MessageID]; ok {
			out[i] = e
			continue
		}
		at[e.MessageID] = len(out)
		out = append(out, e)
	}
	return out
}

// publishTo takes the topic's row first: its lock makes publishers of one topic
// commit in the order of their numbers, and SkipInput wait for them.
func (tx Tx) publishTo(ctx context.Context, workflowID, createdBy, topic string, list []NewEvent) (Published, error) {
	var p Published
	var last, forgotten int64
	err := tx.QueryRow(ctx, `update topics set seq = seq + $3 where workflow_id = $1 and name = $2 returning seq, forgotten`, workflowID, topic, len(list)).Scan(&last, &forgotten)
	if errors.Is(err, store.ErrNoRow) {
		return p, &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such topic"}
	}
	if err != nil {
		return p, err
	}
	wanted := len(list) // numbers that were taken
	if forgotten > 0 {
		if list, err = tx.withoutForgotten(ctx, workflowID, topic, list); err != nil {
			return p, err
		}
		p.Duplicate = wanted - len(list)
	}
	skipped, err := tx.skippedAmong(ctx, list)
	if err != nil {
		return p, err
	}
	batch := eventBatch{workflowID: workflowID, createdBy: createdBy, topic: topic, seq: last - int64(wanted), skipped: skipped}
	for batch.list = range store.Batches(list) {
		got, err := tx.putEvents(ctx, batch)
		if err != nil {
			return p, err
		}
		p = p.plus(got)
		batch.seq += int64(len(batch.list))
	}
	if !p.News() { // nobody is woken for what is known; another one of Write may have got later numbers
		if _, err := tx.Exec(ctx, `update topics set seq = seq - $3 where workflow_id = $1 and name = $2 and seq = $4`, workflowID, topic, wanted, last); err != nil {
			return p, err
		}
	}
	return p, nil
}

// withoutForgotten leaves out what was consumed or skipped once, and is removed.
func (tx Tx) withoutForgotten(ctx context.Context, workflowID, topic string, list []NewEvent) ([]NewEvent, error) {
	messages := make([]string, len(list))
	for i, e := range list {
		messages[i] = e.MessageID
	}
	known, err := tx.forgotten(ctx, workflowID, topic, messages)
	if err != nil || len(known) == 0 {
		return list, err
	}
	return slices.DeleteFunc(list, func(e NewEvent) bool { return known[e.MessageID] }), nil
}

// skippedAmong reads which of the inputs that events come from were skipped.
func (tx Tx) skippedAmong(ctx context.Context, list []NewEvent) (map[string]bool, error) {
	var causes []string
	for _, e := range list {
		causes = append(causes, e.CausedBy...)
	}
	slices.Sort(causes)
	out := map[string]bool{}
	for batch := range store.Batches(slices.Compact(causes)) {
		names, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select id from inputs where skipped_at is not null and id in `+names, args...)
		ids, err := store.ScanAll(rows, err, "find skipped inputs", store.ScanText)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	return out, nil
}

// eventBatch is some events of one topic, few enough for one statement.
type eventBatch struct {
	workflowID, createdBy, topic string

	list    []NewEvent
	seq     int64           // the number before that of the first
	skipped map[string]bool // inputs
}

// rows makes the rows of new events, and says which id and number each message
// id got.
func (b eventBatch) rows(tx *store.Tx) (v store.Values, ids, seqs map[string]int64) {
	ids, seqs = map[string]int64{}, map[string]int64{}
	for i, e := range b.list {
		status := EventPending
		if slices.ContainsFunc(e.CausedBy, func(id string) bool { return b.skipped[id] }) {
			status = EventSkipped
		}
		id, seq := tx.NextID(), b.seq+int64(i)+1
		ids[e.MessageID], seqs[e.MessageID] = id, seq
		v.Row(id, b.workflowID, b.topic, seq, seq, e.MessageID, cmp.Or(string(e.Payload), "null"), string(status),
			b.createdBy, store.JSONText(orEmpty(e.CausedBy)), store.NullText(e.Trace), store.Millis(tx.Now), store.Millis(tx.Now))
	}
	return v, ids, seqs
}

// putEvents inserts the events that are new. Of the known ones, the number with
// which the payload came tells those that were changed from duplicates: nobody
// else can have this number.
func (tx Tx) putEvents(ctx context.Context, b eventBatch) (Published, error) {
	var p Published
	v, ids, seqs := b.rows(tx.Tx)
	rows, err := tx.Query(ctx, `insert into events as e (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, trace, created_at, updated_at)
		values `+v.String()+` on conflict (workflow_id, topic, message_id) do update set
			payload_seq = case when e.status = 'pending' and e.payload <> excluded.payload then excluded.payload_seq else e.payload_seq end,
			updated_at = case when e.status = 'pending' and e.payload <> excluded.payload then excluded.updated_at else e.updated_at end,
			duplicates = e.duplicates + case when e.status = 'pending' and e.payload <> excluded.payload then 0 else 1 end,
			payload = case when e.status = 'pending' then excluded.payload else e.payload end,
			caused_by = case when e.status = 'pending' then excluded.caused_by else e.caused_by end,
			trace = case when e.status = 'pending' then coalesce(excluded.trace, e.trace) else e.trace end,
			part = case when e.status = 'pending' and e.payload <> excluded.payload and e.part is not null then '' else e.part end
		returning id, message_id, status, payload_seq`, v.Args...)
	type put struct {
		id      int64
		message string
		status  EventStatus
		seq     int64
	}
	got, err := store.ScanAll(rows, err, "insert events", func(row store.Scanner) (g put, err error) {
		err = row.Scan(&g.id, &g.message, &g.status, &g.seq)
		return g, err
	})
	if err != nil {
		return p, err
	}
	linked := map[string]int64{} // events whose causes are those given now
	var replaced []int64
	for _, g := range got {
		isNew := g.id == ids[g.message]
		switch {
		case isNew:
			p.New++
		case g.seq == seqs[g.message]:
			p.Changed++
		default:
			p.Duplicate++
		}
		if isNew || g.status == EventPending {
			linked[g.message] = g.id
		}
		if !isNew && g.status == EventPending {
			replaced = append(replaced, g.id)
		}
	}
	return p, tx.putCauses(ctx, b.list, linked, replaced)
}

// putCauses links events with the inputs they come from, after those that had
// others before were unlinked.
func (tx Tx) putCauses(ctx context.Context, list []NewEvent, ids map[string]int64, replaced []int64) error {
	for batch := range store.Batches(replaced) {
		events, args := store.In(nil, batch)
		if _, err := tx.Exec(ctx, `delete from event_causes where event_id in `+events, args...); err != nil {
			return fmt.Errorf("unlink causes: %w", err)
		}
	}
	type link struct {
		input string
		event int64
	}
	var links []link
	for _, e := range list {
		if id, ok := ids[e.MessageID]; ok {
			for _, input := range e.CausedBy {
				links = append(links, link{input, id})
			}
		}
	}
	for batch := range store.Batches(links) {
		v := store.Values{}
		for _, l := range batch {
			v.Row(l.input, l.event)
		}
		if err := tx.Post(ctx, `insert into event_causes (input_id, event_id) values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
			return fmt.Errorf("link causes: %w", err)
		}
	}
	return nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// CausesOf reads the inputs from which some events come, in order and without
// repetition. It goes by the events that a run named when it reserved them,
// whatever became of them since.
func (tx Tx) CausesOf(ctx context.Context, workflowID string, list []Reservation) ([]string, error) {
	var causes []string
	for _, r := range list {
		events, err := tx.EventsByMessage(ctx, workflowID, r.Topic, r.IDs)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			causes = append(causes, e.CausedBy...)
		}
	}
	slices.Sort(causes)
	return slices.Compact(causes), nil
}
