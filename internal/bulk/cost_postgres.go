package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

type postgresMeter struct{ conn *pgx.Conn }

func newPostgresMeter(ctx context.Context, url string) (Meter, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	return &postgresMeter{conn}, nil
}

func (m *postgresMeter) Close() { _ = m.conn.Close(context.Background()) }

// node is a step of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Recheck  float64 `json:"Rows Removed by Index Recheck"`
	Hit      int64   `json:"Shared Hit Blocks"` // with those of the steps below it
	Read     int64   `json:"Shared Read Blocks"`
	Plans    []node  `json:"Plans"`
}

var errUndo = errors.New("undo")

// Cost explains the statement while it runs, as the pool would run it.
func (m *postgresMeter) Cost(ctx context.Context, sql string, args []any) (c Cost, err error) {
	values := make([]any, len(args))
	for i, a := range args {
		if values[i], err = plain(a); err != nil {
			return c, err
		}
	}
	err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		var text []byte
		if err := tx.QueryRow(ctx, `explain (analyze, buffers, timing off, format json) `+sql, values...).Scan(&text); err != nil {
			return err
		}
		var plans []struct{ Plan node }
		if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
			return fmt.Errorf("read plan: %w", err)
		}
		c.add(plans[0].Plan, "")
		c.Pages = plans[0].Plan.Hit + plans[0].Plan.Read
		return errUndo
	})
	if errors.Is(err, errUndo) {
		err = nil
	}
	return c, err
}

func (c *Cost) add(n node, indent string) {
	looked := (n.Rows + n.Removed + n.Recheck) * n.Loops
	if n.Relation != "" { // not what is made of rows later, nor the bits of an index before they are rows
		c.Steps += int64(looked)
	}
	c.Plan += fmt.Sprintf("%s%s %s: %.0f rows, %d pages\n", indent, n.Type, strings.TrimSpace(n.Relation+" "+n.Index), looked, n.Hit+n.Read)
	if n.Type == "Seq Scan" && n.Loops > 0 {
		c.Scans = append(c.Scans, n.Relation)
	}
	for _, p := range n.Plans {
		c.add(p, indent+"  ")
	}
}
