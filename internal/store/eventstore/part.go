package eventstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/store"
)

// Unsorted is the partition of events that are to be sorted anew. Whoever takes
// events of no partition of a consumer that has partitions may take these.
const Unsorted = ""

const peekPart = `select ` + eventColumns + ` from events where workflow_id = $1 and topic = $2 and status = 'pending' and part = $4 order by part, seq limit $3`

// PeekPart is PeekEvents for those of a partition.
func (tx Tx) PeekPart(ctx context.Context, workflowID, topic, part string, limit, bytes int) ([]Event, error) {
	rows, err := tx.Query(ctx, peekPart, workflowID, topic, limit, part)
	return store.ScanAll(rows, err, "peek events", scanEvents(&bytes))
}

// AskPeekPart is PeekPart for who needs the answer later.
func (tx Tx) AskPeekPart(ctx context.Context, workflowID, topic, part string, limit, bytes int, got func([]Event, error)) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		events, err := store.ScanAll(rows, err, "peek events", scanEvents(&bytes))
		got(events, err)
		if errors.Is(err, ErrEventsTooLarge) {
			return nil
		}
		return err
	}, peekPart, workflowID, topic, limit, part)
}

// OldestOfPart is OldestPending for the events of a partition.
func (tx Tx) OldestOfPart(ctx context.Context, workflowID, part string, topics []string) (map[string]int64, error) {
	if len(topics) == 0 {
		return map[string]int64{}, nil
	}
	sql, args := oldestOfPart(workflowID, part, topics)
	return scanOldest(tx.Query(ctx, sql, args...))
}

// AskPart is OldestOfPart for who only wants to know, some time before the
// transaction is committed, whether there is any.
func (tx Tx) AskPart(ctx context.Context, workflowID, part string, topics []string, any func(bool)) error {
	sql, args := oldestOfPart(workflowID, part, topics)
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		found, err := scanOldest(rows, err)
		any(len(found) > 0)
		return err
	}, sql, args...)
}

func oldestOfPart(workflowID, part string, topics []string) (string, []any) {
	parts, args := make([]string, len(topics)), []any{workflowID, part}
	for i, topic := range topics {
		args = append(args, topic)
		parts[i] = fmt.Sprintf(`select topic, id from (select topic, id from events where workflow_id = $1 and topic = $%d and status = 'pending' and part = $2 order by part, seq limit 1) as t%d`, len(args), i)
	}
	return strings.Join(parts, " union all "), args
}

// ReservePart is ReserveEvents for events of a partition.
func (tx Tx) ReservePart(ctx context.Context, workflowID, runID, part string, list []Reservation) error {
	return tx.reserve(ctx, workflowID, runID, &part, list)
}

// WhyNotOfPart says, as pawl.ErrInvalid, which of some pending events are of another
// partition; nil if none is.
func (tx Tx) WhyNotOfPart(ctx context.Context, workflowID, part string, list []Reservation) error {
	for _, r := range list {
		for ids := range store.Batches(r.IDs) {
			names, args := store.In([]any{workflowID, r.Topic, part}, ids)
			rows, err := tx.Query(ctx, `select message_id from events where workflow_id = $1 and topic = $2 and status = 'pending' and part is distinct from $3 and message_id in `+names+` order by seq limit 1`, args...)
			found, err := store.ScanAll(rows, err, "find events of other partitions", store.ScanText)
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return notReserved(fmt.Sprintf("event %q of topic %q is of another partition", found[0], r.Topic))
			}
		}
	}
	return nil
}

// SortedEvent is an event with the number with which its payload came.
type SortedEvent struct {
	Event
	PayloadSeq int64
}

// EventsToSort reads up to limit pending events of a topic behind a number, and up to
// as many that are to be sorted anew, which have at most so many bytes; the first
// always, whatever it has. next is the number up to which there is nothing left.
func (tx Tx) EventsToSort(ctx context.Context, workflowID, topic string, after, upTo int64, limit, bytes int) (list []SortedEvent, next int64, err error) {
	rows, err := tx.Query(ctx, `select `+eventColumns+`, payload_seq from events where workflow_id = $1 and topic = $2 and status = 'pending' and part = '' order by part, seq limit $3`, workflowID, topic, limit)
	anew, err := tx.scanSorted(rows, err, &bytes)
	if err != nil {
		return nil, 0, err
	}
	rows, err = tx.Query(ctx, `select `+eventColumns+`, payload_seq from events where workflow_id = $1 and topic = $2 and status = 'pending' and seq > $3 and seq <= $4 order by seq limit $5`,
		workflowID, topic, after, upTo, limit)
	news, err := tx.scanSorted(rows, err, &bytes)
	if err != nil {
		return nil, 0, err
	}
	next = upTo
	if len(news.list) == limit || news.cut {
		next = after
		if n := len(news.list); n > 0 {
			next = news.list[n-1].Seq
		}
	}
	return append(anew.list, news.list...), next, nil
}

type sortedEvents struct {
	list []SortedEvent
	cut  bool // there are more, which were too large
}

func (tx Tx) scanSorted(rows store.Rows, err error, bytes *int) (out sortedEvents, _ error) {
	_, err = store.ScanAll(rows, err, "read events to sort", func(row store.Scanner) (struct{}, error) {
		var e SortedEvent
		var err error
		if e.Event, err = scanEvent(store.Also(row, &e.PayloadSeq)); err != nil {
			return struct{}{}, err
		}
		if *bytes -= len(e.Payload); out.cut || *bytes < 0 && len(out.list) > 0 {
			out.cut = true
			return struct{}{}, nil
		}
		out.list = append(out.list, e)
		return struct{}{}, nil
	})
	return out, err
}

// SortInto marks events as those of a partition, unless somebody replaced their
// payload meanwhile: those are to be sorted anew. It skips what is not pending.
func (tx Tx) SortInto(ctx context.Context, part string, list []SortedEvent) error {
	for batch := range store.Batches(list) {
		for _, e := range batch {
			if err := tx.Post(ctx, `update events set part = case when payload_seq = $3 then $2 else '' end where id = $1 and status = 'pending'`, e.ID, part, e.PayloadSeq); err != nil {
				return fmt.Errorf("sort events: %w", err)
			}
		}
	}
	return nil
}

// SortHeldAnew makes the events of some topics that runs hold ones to be sorted, should
// they be let go.
func (tx Tx) SortHeldAnew(ctx context.Context, workflowID string, topics []string) error {
	list, args := store.In([]any{workflowID}, topics)
	if _, err := tx.Exec(ctx, `update events set part = '' where status = 'reserved' and part is null and workflow_id = $1 and topic in `+list, args...); err != nil {
		return fmt.Errorf("mark events that are held: %w", err)
	}
	return nil
}

// HasUnsorted reports whether events of some topics are to be sorted anew.
func (tx Tx) HasUnsorted(ctx context.Context, workflowID string, topics []string) (bool, error) {
	found, err := tx.OldestOfPart(ctx, workflowID, Unsorted, topics)
	return len(found) > 0, err
}
