package eventstore

import (
	"context"

	"github.com/pawlrun/pawl/internal/store"
)

// TraceOf reads the trace of the first of some events of a topic that has one; empty if
// none has.
func (tx Tx) TraceOf(ctx context.Context, workflowID, topic string, messageIDs []string) (string, error) {
	for batch := range store.Batches(messageIDs) {
		list, args := store.In([]any{workflowID, topic}, batch)
		rows, err := tx.Query(ctx, `select trace from events where workflow_id = $1 and topic = $2 and message_id in `+list+` and trace is not null order by seq limit 1`, args...)
		found, err := store.ScanAll(rows, err, "read the trace of events", store.ScanText)
		if err != nil || len(found) > 0 {
			return first(found), err
		}
	}
	return "", nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
