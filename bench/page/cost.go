package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/internal/bulk"
)

// asked are the statements of a request.
type asked struct {
	mu   sync.Mutex
	on   bool        // guarded by mu
	list []statement // guarded by mu
}

type statement struct {
	sql  string
	args []any
	cost bulk.Cost
}

func (a *asked) note(sql string, args []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.list = append(a.list, statement{sql: sql, args: slices.Clone(args)})
	}
}

func (a *asked) during(do func() error) ([]statement, error) {
	a.mu.Lock()
	a.on, a.list = true, nil
	a.mu.Unlock()
	err := do()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = false
	return a.list, err
}

// dear is how many pages a statement may look at without being told of.
const dear = 300

// cost asks for an address once, then explains each of its statements while it runs
// again, and tells how many there were and how many pages of the database they look
// at. This does not depend on who else uses the machine. The dear ones are written
// to plans with how they are run.
func (h *house) cost(ctx context.Context, meter bulk.Meter, path string, plans io.Writer) (statements int, pages int64, err error) {
	list, err := h.asked.during(func() error {
		_, err := h.do(ctx, http.MethodGet, path, "", "", takes(path))
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	for i, s := range list {
		if !reads(s.sql) {
			continue
		}
		if list[i].cost, err = meter.Cost(ctx, s.sql, s.args); err != nil {
			return 0, 0, fmt.Errorf("explain %.200s: %w", s.sql, err)
		}
		pages += list[i].cost.Pages
	}
	slices.SortStableFunc(list, func(a, b statement) int { return cmp.Compare(b.cost.Pages, a.cost.Pages) })
	for _, s := range list {
		if s.cost.Pages <= dear {
			break
		}
		if _, err := fmt.Fprintf(plans, "%s: %d pages, %d steps\n%s\n%.200q\n%s\n", path, s.cost.Pages, s.cost.Steps, s.sql, fmt.Sprint(s.args...), s.cost.Plan); err != nil {
			return 0, 0, err
		}
	}
	return len(list), pages, nil
}

// reads reports whether a statement can be explained without doing anything.
func reads(sql string) bool {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(sql)), " ")
	return word == "select" || word == "with"
}
