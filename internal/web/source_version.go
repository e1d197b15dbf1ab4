package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

type sourceVersionsPage struct {
	Head *sourceHead
	comparison
}

// showSourceVersions lists the definitions that were applied, and shows one
// against the one before it.
func (s *Site) showSourceVersions(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showSourceTab(w, r, v, "versions", " · definition", func(h *sourceHead) (any, error) {
		var list client.Page[client.SourceVersion]
		if err := s.ask(r.Context(), v, apiSource(r, "/versions"), listQuery(r, versionsPerPage), &list); err != nil {
			return nil, err
		}
		out := &sourceVersionsPage{Head: h, comparison: comparison{Versions: list.Items, Pager: pagerOf(r, list.NextCursor)}}
		shown := h.VersionNumber
		if n, err := strconv.Atoi(r.URL.Query().Get("show")); err == nil {
			shown = n
		}
		return out, s.compareDefinitions(r.Context(), out, shown)
	})
}

func (s *Site) compareDefinitions(ctx context.Context, out *sourceVersionsPage, shown int) error {
	if shown < 1 {
		return nil
	}
	err := s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out.Shown, out.Against = nil, nil
		src, err := sourcestore.In(tx).SourceByName(ctx, out.Head.Name)
		if err != nil {
			return err
		}
		list, err := sourcestore.In(tx).ListSourceVersions(ctx, src.ID, int64(shown)+1, 2)
		if err != nil || len(list) == 0 || list[0].Number != shown {
			return err
		}
		out.Shown = definitionVersion(&list[0])
		if len(list) > 1 {
			out.Against = definitionVersion(&list[1])
		}
		return nil
	})
	out.compare()
	return err
}

func definitionVersion(v *sourcestore.SourceVersion) *shownVersion {
	return &shownVersion{Number: v.Number, Version: v.Version, Filename: "JSON, with all defaults", Script: pretty(v.Definition)}
}
