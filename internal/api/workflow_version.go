package api

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/store"
)

// WorkflowVersion is a script as it was deployed.
type WorkflowVersion struct {
	Version   string  `json:"version" doc:"A hash of the script's content."`
	Number    int     `json:"number" example:"3" doc:"Counts the scripts of a workflow."`
	Filename  string  `json:"filename" example:"mail-to-sheet.workflow.ts"`
	CreatedAt Instant `json:"createdAt" doc:"When it was deployed for the first time."`
	CreatedBy *string `json:"createdBy" doc:"The user who deployed it."`
	Active    bool    `json:"active" doc:"It is the one in force."`
	Script    *string `json:"script,omitempty" doc:"The source, if it was asked for."`
}

type listVersionsInput struct {
	WorkflowPath
	PageInput
	Source bool `query:"source" doc:"Show the scripts, too."`
}

type listVersionsOutput struct{ Body Page[WorkflowVersion] }

const versionCursor = "version"

func (a *API) listVersions(ctx context.Context, in *listVersionsInput) (*listVersionsOutput, error) {
	before, err := in.placeInOrder(versionCursor)
	if err != nil {
		return nil, err
	}
	out := &listVersionsOutput{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w store.Workflow) error {
		list, err := tx.ListWorkflowVersions(ctx, w.ID, before, in.Limit+1)
		if err != nil {
			return err
		}
		cursor := func(v store.WorkflowVersion) string { return strconv.Itoa(v.Number) }
		out.Body = cutPage(list, in.Limit, versionCursor, cursor, func(v store.WorkflowVersion) WorkflowVersion {
			told := WorkflowVersion{v.Version, v.Number, v.Filename, Instant{v.CreatedAt}, orNull(userOf(v.CreatedBy)), v.Version == w.Version, nil}
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
