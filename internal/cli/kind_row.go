package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

// rowKind are the rows that a source has written. Their columns are those of
// its table.
func rowKind() kind {
	return kind{plural: "rows", singular: "row", below: "rows", parent: sourceKind}
}

// definedFields are the fields that rows have by the definition of their
// source, in its order. Should it not be there, rows are shown nevertheless.
func (g *getter) definedFields(ctx context.Context) []string {
	raw, err := getOne(ctx, g.client, g.kind.parent(), g.owner)
	var s struct {
		Definition struct {
			Response struct {
				Fields []struct {
					Target string `json:"target"`
				} `json:"fields"`
			} `json:"response"`
		} `json:"definition"`
	}
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	var names []string
	for _, f := range s.Definition.Response.Fields {
		names = append(names, f.Target)
	}
	return names
}

// writeFields writes objects as a table of their fields: first those that are
// known, in their order, then others. Those that Pawl adds come last, and the
// less telling ones with -o wide only.
func writeFields(p *Process, items []json.RawMessage, known []string, format string, titles bool) error {
	rows := make([]map[string]json.RawMessage, len(items))
	seen := map[string]bool{}
	for i, raw := range items {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			return fmt.Errorf("read row: %w", err)
		}
		for name := range rows[i] {
			seen[name] = true
		}
	}
	var columns []column
	added := []string{"created_at", "updated_at", "source_name"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(name string) bool {
		return slices.Contains(added, name) || strings.HasPrefix(name, "_") && format != formatWide
	})
	slices.SortStableFunc(names, func(a, b string) int { return place(known, a) - place(known, b) })
	for _, name := range added {
		if seen[name] && (name == "created_at" || format == formatWide) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		columns = append(columns, column{title: name, flex: true, least: 10})
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, name := range names {
			cells[i] = append(cells[i], fieldText(row[name]))
		}
	}
	return newSheet(p, columns).write(p.Stdout, cells, titles)
}

// place is where a name is in a list, and behind its end if it is not there.
func place(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

// fieldText is a value as a cell shows it: texts without quotes.
func fieldText(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "-"
	case json.Unmarshal(raw, &text) == nil:
		return visible.Text(text)
	}
	return visible.Text(string(compactJSON(raw)))
}

// rejectKind are the rows of the outside that did not fit.
func rejectKind() kind {
	return kind{
		plural: "rejects", singular: "reject", below: "rejects", parent: sourceKind, everywhere: true,
		watch: watchRules{events: []string{"source"}},
		columns: []column{
			{title: "source", flex: true, least: 12}, {title: "when"}, {title: "page"}, {title: "row"}, {title: "reason", flex: true, least: 24},
			{title: "raw", wide: true, flex: true, least: 20}, {title: "times", wide: true}, {title: "run", wide: true}, {title: "id", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var r struct {
				client.Reject
				Source string `json:"source"` // its name, added by the commands
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, err
			}
			return []string{
				orDash(r.Source), relative(r.CreatedAt.Time, now), strconv.Itoa(r.Page), strconv.Itoa(r.Row), visible.Text(r.Reason),
				visible.Text(r.Raw), strconv.Itoa(r.Times), r.RunID, r.ID,
			}, nil
		},
	}
}
