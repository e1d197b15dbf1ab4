package partitionstore

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// The sorts of partitions that people ask for.
const (
	SortAttention = "attention" // they need a person
	SortHeld      = "held"      // something is the matter that needs nobody
	SortWorking   = "working"   // they have a place
	SortWaiting   = "waiting"   // they wait for one
)

// Cursor is where a list of partitions goes on: after the partition with these. The zero
// one is the beginning.
type Cursor struct {
	Since   time.Time
	ID      string
	Handler string
}

// CursorOf is the place of a partition in the list of a sort.
func CursorOf(sort string, p Partition) Cursor {
	c := Cursor{Since: p.IssueSince, ID: p.ID, Handler: p.Handler}
	if sort == SortWaiting || sort == SortWorking {
		c.Since = p.PlaceSince
	}
	return c
}

// List reads up to limit partitions of one sort, those with the oldest trouble first and
// the others by their consumers, as the indexes have them.
func (tx Tx) List(ctx context.Context, workflowID, sort string, after Cursor, limit int) ([]Partition, error) {
	at := int64(-1)
	if after.ID != "" {
		at = store.Millis(after.Since)
	}
	var text string
	args := []any{workflowID, limit, after.ID}
	switch sort {
	case SortAttention:
		text, args = `issue <> '' and attention = 1 and (issue_since, id) > ($4, $3) order by attention, issue_since, id`, append(args, at)
	case SortHeld:
		text, args = `issue <> '' and attention = 0 and (issue_since, id) > ($4, $3) order by attention, issue_since, id`, append(args, at)
	case SortWorking:
		text, args = `place = 2 and (handler, id) > ($4, $3) order by handler, id`, append(args, after.Handler)
	case SortWaiting:
		text, args = `place = 1 and (handler, place_since, id) > ($4, $5, $3) order by handler, place_since, id`, append(args, after.Handler, at)
	default:
		return nil, fmt.Errorf("list partitions: there is no sort %q", sort)
	}
	rows, err := tx.Query(ctx, `select `+partitionColumns+` from partitions where workflow_id = $1 and `+text+` limit $2`, args...)
	return store.ScanAll(rows, err, "list partitions", scanPartition)
}
