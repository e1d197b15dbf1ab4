package eventstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// OldEvent is what decides whether an event is removed.
type OldEvent struct {
	ID         int64
	WorkflowID string
	Topic      string
	Status     EventStatus
	CreatedBy  string // the run that published it, or who else did
	HeldBy     string // the run that consumed it; empty if none did
	CreatedAt  time.Time
	UpdatedAt  time.Time // when it was consumed or skipped, if it was
	Bytes      int64
}

// Ended reports whether nobody takes the event any more.
func (e OldEvent) Ended() bool { return e.Status == EventConsumed || e.Status == EventSkipped }

// OldEvents reads up to limit events that were made before the cut, the oldest
// first, behind an id. An empty workflow is every one.
func (tx Tx) OldEvents(ctx context.Context, workflowID string, after int64, cut time.Time, limit int) ([]OldEvent, error) {
	var c store.Where
	if workflowID != "" {
		c.Add("workflow_id = ?", workflowID)
	}
	c.Add("id > ? and id < ?", after, store.IDAt(cut))
	text := c.String()
	rows, err := tx.Query(ctx, `select id, workflow_id, topic, status, created_by, coalesce(reserved_by, ''), created_at, updated_at, 200 + length(payload) + 2 * length(message_id) + length(caused_by)
		from events where `+text+` order by id`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "read old events", func(row store.Scanner) (e OldEvent, err error) {
		var created, updated int64
		err = row.Scan(&e.ID, &e.WorkflowID, &e.Topic, &e.Status, &e.CreatedBy, &e.HeldBy, &created, &updated, &e.Bytes)
		e.CreatedAt, e.UpdatedAt = store.FromMillis(created), store.FromMillis(updated)
		return e, err
	})
}

// DeleteEvents removes events of one topic that have ended, and remembers their
// message ids. It holds the topic, so that nobody who publishes one of them again
// at this moment sees neither the event nor what is remembered of it.
func (tx Tx) DeleteEvents(ctx context.Context, workflowID, topic string, ids []int64) (n int64, err error) {
	for batch := range store.Batches(ids) {
		if err := tx.Expect(ctx, 1, fmt.Errorf("topic %s is gone", topic), `update topics set forgotten = forgotten + $3 where workflow_id = $1 and name = $2`, workflowID, topic, len(batch)); err != nil {
			return n, fmt.Errorf("hold topic: %w", err)
		}
		text, args := store.In([]any{workflowID, topic}, batch)
		rows, err := tx.Query(ctx, `delete from events where workflow_id = $1 and topic = $2 and status in ('consumed', 'skipped') and id in `+text+` returning message_id`, args...)
		messages, err := store.ScanAll(rows, err, "remove events", store.ScanText)
		if err != nil || len(messages) == 0 {
			return n, err
		}
		v := store.Values{}
		for _, m := range messages {
			a, b := tombOf(workflowID, topic, m)
			v.Row(a, b)
		}
		if err := tx.Post(ctx, `insert into event_tombs (a, b) values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
			return n, fmt.Errorf("remember message ids: %w", err)
		}
		if err := tx.endInputs(ctx, batch); err != nil {
			return n, err
		}
		n += int64(len(messages))
	}
	return n, nil
}

// endInputs unlinks events from the inputs they came from, which remember that
// they had some.
func (tx Tx) endInputs(ctx context.Context, events []int64) error {
	text, args := store.In([]any{store.Millis(tx.Now)}, events)
	_, err := tx.Exec(ctx, `update inputs set ended_at = $1 where id in (select input_id from event_causes where event_id in `+text+`)`, args...)
	if err == nil {
		text, args = store.In(nil, events)
		_, err = tx.Exec(ctx, `delete from event_causes where event_id in `+text, args...)
	}
	if err != nil {
		return fmt.Errorf("end inputs: %w", err)
	}
	return nil
}

// tombOf is what is remembered of a message id: 128 bits of a hash.
func tombOf(workflowID, topic, messageID string) (a, b int64) {
	sum := sha256.Sum256([]byte(store.JSONText([]string{workflowID, topic, messageID})))
	return int64(binary.BigEndian.Uint64(sum[:8])), int64(binary.BigEndian.Uint64(sum[8:16])) //nolint:gosec // bits, not numbers
}

// forgotten finds which of some message ids of a topic were those of events that
// are removed.
func (tx Tx) forgotten(ctx context.Context, workflowID, topic string, messages []string) (map[string]bool, error) {
	type tomb struct{ a, b int64 }
	out := map[string]bool{}
	for batch := range store.Batches(messages) {
		of := map[tomb]string{}
		firsts := make([]int64, len(batch))
		for i, m := range batch {
			a, b := tombOf(workflowID, topic, m)
			of[tomb{a, b}], firsts[i] = m, a
		}
		text, args := store.In(nil, firsts)
		rows, err := tx.Query(ctx, `select a, b from event_tombs where a in `+text, args...)
		list, err := store.ScanAll(rows, err, "find removed events", func(row store.Scanner) (t tomb, err error) { return t, row.Scan(&t.a, &t.b) })
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if m, ok := of[t]; ok {
				out[m] = true
			}
		}
	}
	return out, nil
}

// slack is by how much clocks of nodes differ, and by how much one is set back.
const slack = time.Hour

// Span is when a run began and ended.
type Span struct {
	RunID    string
	From, To time.Time
}

// RunsOfEvents finds which runs of a workflow's lane published or consumed events
// that are there, but for those with some ids. Runs that ended before the oldest event
// was made cannot have.
func (tx Tx) RunsOfEvents(ctx context.Context, lane string, list []Span, but map[string]bool) (map[string]bool, error) {
	lane, _ = runstore.BaseLane(lane)
	out := map[string]bool{}
	rows, err := tx.Query(ctx, `select w.id, coalesce((select e.id from events e where e.workflow_id = w.id order by e.id limit 1), 0) from workflows w where w.lane = $1`, lane)
	type flow struct {
		id     string
		oldest int64
	}
	flows, err := store.ScanAll(rows, err, "find oldest event", func(row store.Scanner) (f flow, err error) { return f, row.Scan(&f.id, &f.oldest) })
	if err != nil || len(flows) == 0 || flows[0].oldest == 0 {
		return out, err
	}
	var ids []string
	var from, to time.Time
	for _, r := range list {
		if store.IDAt(r.To.Add(slack)) < flows[0].oldest {
			continue
		}
		if ids = append(ids, r.RunID); from.IsZero() || r.From.Before(from) {
			from = r.From
		}
		if r.To.After(to) {
			to = r.To
		}
	}
	for batch := range store.Batches(ids) {
		if err := tx.publishers(ctx, flows[0].id, from, to, batch, but, out); err != nil {
			return nil, err
		}
		if err := tx.consumers(ctx, flows[0].id, batch, but, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// publishers finds who published events that were made in a span of time.
func (tx Tx) publishers(ctx context.Context, workflowID string, from, to time.Time, ids []string, but, out map[string]bool) error {
	text, args := store.In([]any{workflowID, store.IDAt(from.Add(-slack)), store.IDAt(to.Add(slack))}, ids)
	return tx.holders(ctx, "created_by", "workflow_id = $1 and id >= $2 and id < $3 and created_by in "+text, args, but, out)
}

// holders notes the runs that a column of events names, but for those events with some ids.
func (tx Tx) holders(ctx context.Context, column, where string, args []any, but, out map[string]bool) error {
	id := "0"
	if len(but) > 0 {
		id = "id"
	}
	rows, err := tx.Query(ctx, `select distinct `+column+`, cast(`+id+` as text) from events where `+where, args...)
	_, err = store.ScanAll(rows, err, "find runs of events", func(row store.Scanner) (struct{}, error) {
		var run, event string
		err := row.Scan(&run, &event)
		if !but[event] {
			out[run] = true
		}
		return struct{}{}, err
	})
	return err
}

// consumers finds who consumed events that are there, by what the runs reserved.
func (tx Tx) consumers(ctx context.Context, workflowID string, ids []string, but, out map[string]bool) error {
	text, args := store.In(nil, ids)
	rows, err := tx.Query(ctx, `select prepare_result from runs where prepare_result is not null and id in `+text, args...)
	prepared, err := store.ScanAll(rows, err, "read reservations", store.ScanText)
	if err != nil {
		return err
	}
	byTopic := map[string][]string{}
	for _, raw := range prepared {
		var p struct {
			Reservations []struct {
				Topic string
				IDs   []string
			}
		}
		if json.Unmarshal([]byte(raw), &p) != nil { // of another kind
			continue
		}
		for _, r := range p.Reservations {
			byTopic[r.Topic] = append(byTopic[r.Topic], r.IDs...)
		}
	}
	for topic, messages := range byTopic {
		for batch := range store.Batches(messages) {
			text, args := store.In([]any{workflowID, topic}, batch)
			if err := tx.holders(ctx, "reserved_by", "reserved_by is not null and workflow_id = $1 and topic = $2 and message_id in "+text, args, but, out); err != nil {
				return err
			}
		}
	}
	return nil
}
