package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/workflow"
)

// maxScriptBody is the most bytes of a body that carries a script. In JSON a
// script grows: newlines, tabs and quotes take two bytes, and what careful
// writers escape takes six.
const maxScriptBody = 3*script.MaxSource + bodyRoom

// scriptRequest asks to deploy a script.
type scriptRequest struct {
	Script   string `json:"script" minLength:"1" doc:"The source, up to 512 KiB. Its name must be that of the address."`
	Filename string `json:"filename,omitempty" maxLength:"256" example:"mail-to-sheet.workflow.ts" doc:"As messages call it; it is TypeScript unless it ends as JavaScript does. Absent is the workflow's name with .workflow.ts."`
	DryRun   bool   `json:"dryRun,omitempty" doc:"Check and compare only; change nothing."`
}

// Deployment is what a deploy did.
type Deployment struct {
	Name           string          `json:"name" example:"mail-to-sheet"`
	What           string          `json:"what" enum:"created,updated,unchanged"`
	DryRun         bool            `json:"dryRun" doc:"Nothing was changed; what tells what would be."`
	Version        string          `json:"version" doc:"A hash of the script's content."`
	PreviousScript *string         `json:"previousScript" doc:"The source that was in force before; null for a new workflow."`
	Warnings       []ScriptWarning `json:"warnings" nullable:"false"`
}

// ScriptWarning is something in a script that is probably not meant.
type ScriptWarning struct {
	Message string  `json:"message" example:"mail.workflow.ts:12:5: this code is never reached"`
	Line    int     `json:"line,omitempty"`
	Column  int     `json:"column,omitempty"`
	Hint    *string `json:"hint"`
}

type deployInput struct {
	MatchHeader
	WorkflowPath
	Body scriptRequest
}

type deployOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Of the script that is in force now."`
	Body     Deployment
}

// deployWorkflow compiles outside of a transaction and is safe to repeat,
// because the same content changes nothing; it needs no idempotency key.
func (a *API) deployWorkflow(ctx context.Context, in *deployInput) (*deployOutput, error) {
	d := workflow.Deploy{Name: in.Name, Filename: in.Body.Filename, Script: in.Body.Script, By: actor(callOf(ctx).token), DryRun: in.Body.DryRun,
		Expect: in.expectVersion("workflow", in.Name)}
	if err := checkScript(&d); err != nil {
		return nil, err
	}
	done, err := a.workflows.Apply(ctx, d)
	if err != nil {
		return nil, err
	}
	tag := tagOf(done.Version)
	if d.DryRun {
		tag = tagOf(done.Before)
	}
	out := &deployOutput{Status: http.StatusOK, ETag: tag, Body: Deployment{
		Name: done.Name, What: done.What, DryRun: d.DryRun, Version: done.Version, Warnings: warningsOf(done.Warnings),
	}}
	if done.What == workflow.Created {
		if !d.DryRun {
			out.Status, out.Location = http.StatusCreated, "/api/v1/workflows/"+done.Name
		}
	} else {
		out.Body.PreviousScript = &done.Previous
	}
	return out, nil
}

// checkScript finds what the compiler cannot, and names a file that has no
// name.
func checkScript(d *workflow.Deploy) error {
	if len(d.Script) > script.MaxSource {
		return newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the script has %d bytes, more than the %d that are allowed", len(d.Script), script.MaxSource),
			"Split it into several workflows.", Fault{Pointer: "/script", Message: "is too large"})
	}
	var f faults
	if strings.ContainsRune(d.Script, 0) {
		f.add("/script", "has a NUL character", "Send text.")
	}
	if d.Filename == "" {
		d.Filename = d.Name + ".workflow.ts"
	} else {
		f.add("/filename", textFault(d.Filename, maxName), "")
	}
	return f.problem()
}

func warningsOf(list []script.Diagnostic) []ScriptWarning {
	out := make([]ScriptWarning, len(list))
	for i, d := range list {
		out[i] = ScriptWarning{d.String(), d.Line, d.Column, orNull(d.Hint)}
	}
	return out
}
