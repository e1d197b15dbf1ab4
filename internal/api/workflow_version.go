package api

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

type listVersionsInput struct {
	WorkflowPath
	PageInput
	Source bool `query:"source" doc:"Show the scripts, too."`
}

const versionCursor = "version"

func (a *API) listVersions(ctx context.Context, in *listVersionsInput) (*pageOutput[client.WorkflowVersion], error) {
	before, err := in.placeInOrder(versionCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.WorkflowVersion]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		list, err := workflowstore.In(tx).ListWorkflowVersions(ctx, w.ID, before, in.Limit+1)
		if err != nil {
			return err
		}
		cursor := func(v workflowstore.WorkflowVersion) string { return strconv.Itoa(v.Number) }
		out.Body = cutPage(list, in.Limit, versionCursor, cursor, func(v workflowstore.WorkflowVersion) client.WorkflowVersion {
			told := client.WorkflowVersion{Version: v.Version, Number: v.Number, Filename: v.Filename, CreatedAt: client.At(v.CreatedAt), CreatedBy: client.NullString(userOf(v.CreatedBy)), Active: v.Version == w.Version, Script: nil}
			if in.Source {
				told.Script = &v.Source
			}
			return told
		})
		return nil
	})
	return out, err
}

// userOf is the user in how the audit log calls the holder of a token; see
// actor.
func userOf(actor string) string {
	if i := strings.LastIndex(actor, " (token "); i > 0 {
		return actor[:i]
	}
	return actor
}
