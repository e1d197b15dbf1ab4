package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// maxScriptBody is the most bytes of a body that carries a script. In JSON a
// script grows: newlines, tabs and quotes take two bytes, and what careful
// writers escape takes six.
const maxScriptBody = 3*script.MaxSource + bodyRoom

type deployInput struct {
	MatchHeader
	WorkflowPath
	Assumed
	Body client.ScriptRequest
}

type deployOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Of the active script."`
	Body     client.Deployment
}

// deployWorkflow compiles outside of a transaction and is safe to repeat,
// because the same content changes nothing; it needs no idempotency key.
func (a *API) deployWorkflow(ctx context.Context, in *deployInput) (*deployOutput, error) {
	d := workflow.Deploy{Name: in.Name, Filename: in.Body.Filename, Script: in.Body.Script, By: actor(callOf(ctx).token), DryRun: in.Body.DryRun,
		Expect: in.expectVersion("workflow", in.Name), Permit: mayNeed(callOf(ctx).token)}
	if err := checkScript(&d); err != nil {
		return nil, err
	}
	ctx, err := in.in(ctx, d.DryRun)
	if err != nil {
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
	out := &deployOutput{Status: http.StatusOK, ETag: tag, Body: client.Deployment{
		Name: done.Name, What: done.What, DryRun: d.DryRun, Version: done.Version, Warnings: warningsOf(done.Warnings),
	}}
	if done.What == workflow.Created {
		if !d.DryRun {
			out.Status, out.Location = http.StatusCreated, "/api/v1/workflows/"+done.Name
		}
	} else {
		out.Body.PreviousScript = client.NullString(done.Previous)
	}
	return out, nil
}

// mayNeed refuses a script that makes sources fetch which the caller may not run.
func mayNeed(caller *userstore.Token) func(workflow.Config) error {
	return func(c workflow.Config) error {
		var d access.Definition
		for _, n := range c.Needs {
			d.Fetches = append(d.Fetches, n.Source)
		}
		return access.Define(caller, d)
	}
}

// checkScript finds what the compiler cannot, and names a file that has no
// name.
func checkScript(d *workflow.Deploy) error {
	if len(d.Script) > script.MaxSource {
		return newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the script has %d bytes, more than the %d that are allowed", len(d.Script), script.MaxSource),
			"Split it into several workflows.", client.Fault{Pointer: "/script", Message: "is too large"})
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

func warningsOf(list []script.Diagnostic) []client.ScriptWarning {
	out := make([]client.ScriptWarning, len(list))
	for i, d := range list {
		out[i] = client.ScriptWarning{Message: d.String(), Line: d.Line, Column: d.Column, Hint: client.NullString(d.Hint)}
	}
	return out
}
