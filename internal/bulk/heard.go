package bulk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Heard are the statements that a database was asked while somebody listened.
// Note is for store.Options.Trace.
type Heard struct {
	mu   sync.Mutex
	on   bool             // guarded by mu, as are the others
	args map[string][]any // by statement: the last values
	n    int
}

func (h *Heard) Note(sql string, args []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on {
		h.args[sql] = slices.Clone(args)
		h.n++
	}
}

// During listens while a function runs, and returns how many statements it asked.
func (h *Heard) During(do func()) int {
	h.mu.Lock()
	h.on, h.args, h.n = true, map[string][]any{}, 0
	h.mu.Unlock()
	do()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = false
	return h.n
}

// MostOfAStep is what one statement of a step that a lane takes may do:
// instructions of SQLite's machine, or rows of PostgreSQL. One that reads a lane's
// past does a hundred times as much.
func MostOfAStep(database string) int64 {
	if database == "sqlite" {
		return 3000
	}
	return 150
}

// Dear measures what was heard last, and tells which statements read what grows or
// do more than they may. measured is how many there were.
func (h *Heard) Dear(ctx context.Context, url string, most int64) (faults []string, measured int, err error) {
	meter, err := NewMeter(ctx, url)
	if err != nil {
		return nil, 0, err
	}
	defer meter.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for sql, args := range h.args {
		cost, err := meter.Cost(ctx, sql, args)
		if err != nil && strings.HasPrefix(sql, "insert into") {
			continue // it meets the rows that it made
		}
		if err != nil && strings.Contains(err.Error(), "42P01") {
			continue // its table is gone with the transaction
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w\n%s\n%v", err, sql, args)
		}
		measured++
		for _, table := range cost.Scans {
			if grows, _ := Grows(table); grows && cost.Steps > 10 { // it may be that small
				faults = append(faults, fmt.Sprintf("reads all of %s:\n%s\n%s", table, sql, cost.Plan))
			}
		}
		if cost.Steps > most {
			faults = append(faults, fmt.Sprintf("takes %d steps:\n%s\n%v\n%s", cost.Steps, sql, args, cost.Plan))
		}
	}
	return faults, measured, nil
}
