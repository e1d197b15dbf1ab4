package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

type applySourceInput struct {
	MatchHeader
	SourcePath
	DefinitionBody
	Assumed
	DryRun bool `query:"dryRun" doc:"Check and compare only; change nothing."`
}

type applySourceOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Of the active definition."`
	Body     client.AppliedSource
}

// applySource is safe to repeat, because the same definition changes nothing;
// it needs no idempotency key.
func (a *API) applySource(ctx context.Context, in *applySourceInput) (*applySourceOutput, error) {
	d, err := in.source(in.Name)
	if err != nil {
		return nil, err
	}
	if d.Name != in.Name {
		return nil, invalid("Leave it out, or use the address of that source.", client.Fault{Pointer: "/name", Message: fmt.Sprintf("is %q and must be %q, as in the address", d.Name, in.Name)})
	}
	if ctx, err = in.in(ctx, in.DryRun); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	if err := access.Define(caller, effectsOfSource(d)); err != nil {
		return nil, err
	}
	var done source.Applied
	var before string // the version that was in force
	if in.DryRun {
		err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			before, err = in.before(ctx, sourcestore.In(tx).SourceByName)
			return err
		})
		if err == nil {
			done, err = a.sources.DryRun(ctx, d)
		}
	} else {
		err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			if before, err = in.before(ctx, sourcestore.In(tx).HoldSource); err != nil {
				return err
			}
			done, err = a.sources.Apply(ctx, tx, d, actor(caller))
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	tag := tagOf(done.Source.Version)
	if in.DryRun {
		tag = tagOf(before)
	}
	out := &applySourceOutput{Status: http.StatusOK, ETag: tag, Body: client.AppliedSource{
		Name: done.Source.Name, What: done.What, DryRun: in.DryRun, Version: done.Source.Version, VersionNumber: done.Source.Number,
		Definition: done.Source.Definition, Previous: done.Previous,
	}}
	if done.What == source.Created && !in.DryRun {
		out.Status, out.Location = http.StatusCreated, "/api/v1/sources/"+done.Source.Name
	}
	return out, nil
}

// effectsOfSource is what a source does beyond filling a table of Pawl's own.
func effectsOfSource(d spec.Definition) access.Definition {
	out := access.Definition{Connection: d.Write.Connection}
	if d.Publish != nil {
		out.Publishes = d.Publish.Workflow
	}
	return out
}

// before is the version that is in force, empty if there is none, unless it is
// another one than the caller saw.
func (in *applySourceInput) before(ctx context.Context, find func(context.Context, string) (sourcestore.Source, error)) (string, error) {
	was, err := find(ctx, in.Name)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return "", err
	}
	return was.Version, in.expectVersion("source", in.Name)(was.Version)
}

type deleteSourceInput struct {
	SourcePath
	KeepRows bool `query:"keepRows" doc:"Leave its rows in the table."`
}

// deleteSource takes as long as there are rows. Whoever gives up waiting can
// ask again: it goes on where it was.
func (a *API) deleteSource(ctx context.Context, in *deleteSourceInput) (*output[client.DeletedSource], error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noSource(ctx, in.Name)
	}
	if !in.KeepRows {
		if err := a.mayDeleteRows(ctx, in.Name); err != nil {
			return nil, a.aboutSource(ctx, in.Name, err)
		}
	}
	caller := callOf(ctx).token
	rows, err := a.sources.Delete(ctx, in.Name, in.KeepRows, access.Reach(caller, schedulesResource), actor(caller))
	if err != nil {
		return nil, a.aboutSource(ctx, in.Name, err)
	}
	return &output[client.DeletedSource]{client.DeletedSource{Name: in.Name, Rows: rows}}, nil
}

// mayDeleteRows fails unless the caller may write where the rows of a source are.
func (a *API) mayDeleteRows(ctx context.Context, name string) error {
	var d spec.Definition
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := sourcestore.In(tx).SourceByName(ctx, name)
		if err != nil {
			return err
		}
		return json.Unmarshal(s.Definition, &d)
	})
	if err != nil {
		return err
	}
	return access.Define(callOf(ctx).token, access.Definition{Connection: d.Write.Connection})
}

type changeSourceInput struct {
	SourcePath
	OnceHeader
}

type runSourceOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.RunRequested
}

// runSource asks for a run. The check and the request are one transaction, so
// a refusal changed nothing.
func (a *API) runSource(ctx context.Context, in *changeSourceInput) (*runSourceOutput, error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noSource(ctx, in.Name)
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusAccepted, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.RunRequested, error) {
		return client.RunRequested{Name: in.Name, Requested: true}, a.sources.RunNow(ctx, tx, in.Name, who)
	})
	if err != nil {
		return nil, a.aboutSource(ctx, in.Name, err)
	}
	return &runSourceOutput{was, body}, nil
}

type changeSourceOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Source
}

func (a *API) resumeSource(ctx context.Context, in *changeSourceInput) (*changeSourceOutput, error) {
	return a.changeSource(ctx, in.Name, struct{}{}, func(ctx context.Context, tx *store.Tx, by string) error {
		_, err := a.sources.Resume(ctx, tx, in.Name, by)
		return err
	})
}

type resetSourceInput struct {
	SourcePath
	OnceHeader
	Body *client.ResetRequest
}

func (a *API) resetSource(ctx context.Context, in *resetSourceInput) (*changeSourceOutput, error) {
	body := client.ResetRequest{}
	if in.Body != nil {
		body = *in.Body
	}
	return a.changeSource(ctx, in.Name, body, func(ctx context.Context, tx *store.Tx, by string) error {
		return a.sources.Reset(ctx, tx, in.Name, body.All, by)
	})
}

// changeSource makes a change that may have been made before, and answers with
// the source as it is then.
func (a *API) changeSource(ctx context.Context, name string, request any, change func(ctx context.Context, tx *store.Tx, by string) error) (*changeSourceOutput, error) {
	if textFault(name, maxName) != "" {
		return nil, a.noSource(ctx, name)
	}
	who := actor(callOf(ctx).token)
	_, was, err := once(ctx, a, http.StatusOK, request, whole, func(ctx context.Context, tx *store.Tx) (struct{}, error) {
		return struct{}{}, change(ctx, tx, who)
	})
	if err != nil {
		return nil, a.aboutSource(ctx, name, err)
	}
	s, err := a.describeSource(ctx, name)
	if err != nil {
		return nil, err
	}
	return &changeSourceOutput{was, s}, nil
}
