package source

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// CopyTables makes the tables of the sources in PostgreSQL and tells how their
// rows are copied there; it is for store.Promote.
func CopyTables(ctx context.Context, from, to *store.Tx) ([]store.CopyTable, error) {
	var now, then []spec.Definition
	for after := ""; ; {
		const atOnce = 200
		page, err := sourcestore.In(from).ListSources(ctx, after, atOnce)
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			versions, err := sourcestore.In(from).ListSourceVersions(ctx, s.ID, 0, maxVersions)
			if err != nil {
				return nil, err
			}
			d, err := definitionOf(s.Name, s.Definition)
			if err != nil {
				return nil, err
			}
			now, after = append(now, d), s.Name
			for _, v := range versions {
				if d, err = definitionOf(s.Name, v.Definition); err != nil {
					return nil, err
				}
				then = append(then, d)
			}
		}
		if len(page) < atOnce {
			return table.Copies(ctx, from, to, now, then)
		}
	}
}

// maxVersions bounds how many definitions of a source are asked for the types
// of columns that are not written any more.
const maxVersions = 10_000

func definitionOf(name string, raw json.RawMessage) (d spec.Definition, err error) {
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("read definition of source %s: %w", name, err)
	}
	return d, nil
}
