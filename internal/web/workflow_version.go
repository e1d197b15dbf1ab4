package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

type versionsPage struct {
	Head *workflowHead
	comparison
}

const versionsPerPage = 20

// showWorkflowVersions lists what was deployed, and shows one version against
// the one before it, or against ?against=.
func (s *Site) showWorkflowVersions(w http.ResponseWriter, r *http.Request, v *visit) {
	s.showTab(w, r, v, "versions", " · versions", func(h *workflowHead) (any, error) {
		var list client.Page[client.WorkflowVersion]
		if err := s.ask(r.Context(), v, apiWorkflow(r, "/versions"), listQuery(r, versionsPerPage), &list); err != nil {
			return nil, err
		}
		out := &versionsPage{Head: h, comparison: comparison{Versions: list.Items, Pager: pagerOf(r, list.NextCursor)}}
		shown := h.VersionNumber
		if n, err := strconv.Atoi(r.URL.Query().Get("show")); err == nil {
			shown = n
		}
		against := shown - 1
		if n, err := strconv.Atoi(r.URL.Query().Get("against")); err == nil {
			against = n
		}
		return out, s.compareVersions(r.Context(), out, shown, against)
	})
}

func (s *Site) compareVersions(ctx context.Context, out *versionsPage, shown, against int) (err error) {
	if out.Shown, err = s.versionOf(ctx, out.Head.Name, shown); err != nil || out.Shown == nil {
		return err
	}
	if out.Against, err = s.versionOf(ctx, out.Head.Name, against); err != nil {
		return err
	}
	out.compare()
	return nil
}

// versionOf reads the script with a number. It is nil if there is none: numbers
// are what somebody can write into an address.
func (s *Site) versionOf(ctx context.Context, name string, number int) (found *shownVersion, err error) {
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found = nil
		flow, err := workflowstore.In(tx).WorkflowByName(ctx, name)
		if err != nil || number < 1 {
			return err
		}
		list, err := workflowstore.In(tx).ListWorkflowVersions(ctx, flow.ID, int64(number)+1, 1)
		if err != nil || len(list) == 0 || list[0].Number != number {
			return err
		}
		found = &shownVersion{Number: number, Version: list[0].Version, Filename: list[0].Filename, Script: list[0].Source}
		return nil
	})
	return found, err
}
