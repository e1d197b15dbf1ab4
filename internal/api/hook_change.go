package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

type applyHookInput struct {
	MatchHeader
	HookPath
	DefinitionBody
	DryRun bool `query:"dryRun" doc:"Check and compare only; change nothing."`
}

type applyHookOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Of the active definition."`
	Body     client.AppliedHook
}

// applyHook is safe to repeat, because the same definition changes nothing. Its
// secrets are references: what they stand for is looked up here and kept in memory.
func (a *API) applyHook(ctx context.Context, in *applyHookInput) (*applyHookOutput, error) {
	d, err := in.hook(in.Name)
	if err != nil {
		return nil, err
	}
	if d.Name != in.Name {
		return nil, invalid("Leave it out, or use the address of that hook.", client.Fault{Pointer: "/name", Message: fmt.Sprintf("is %q and must be %q, as in the address", d.Name, in.Name)})
	}
	secrets, faults := d.Resolve(os.Getenv)
	if len(faults) > 0 {
		return nil, definition.Invalid("apply hook", faults)
	}
	caller := callOf(ctx).token
	if err := access.Define(caller, effectsOfHook(d)); err != nil {
		return nil, err
	}
	out := &applyHookOutput{Status: http.StatusOK}
	err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		was, err := hookstore.In(tx).HoldHook(ctx, d.Name)
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
		if err := in.expectVersion("hook", d.Name)(was.Version); err != nil {
			return err
		}
		done, err := a.hooks.Apply(ctx, tx, d, secrets, caller.User.ID, actor(caller))
		if err != nil {
			return err
		}
		out.ETag = tagOf(d.Version())
		out.Body = client.AppliedHook{Name: d.Name, What: done.What, DryRun: in.DryRun, Version: d.Version(), Definition: d.JSON(), Previous: done.Previous}
		if in.DryRun {
			out.ETag = tagOf(was.Version)
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	if out.Body.What == hook.Created && !in.DryRun {
		out.Status, out.Location = http.StatusCreated, client.HookPath(d.Name)
	}
	return out, nil
}

// hook reads the definition of a hook. JSON may leave out the name, which is then
// this one.
func (b *DefinitionBody) hook(name string) (spec.Definition, error) {
	format := "application/json"
	if b.ContentType != "" {
		format, _, _ = mime.ParseMediaType(b.ContentType)
	}
	switch format {
	case "application/json":
		var whole any
		if err := decode(b.RawBody, &whole); err != nil {
			return spec.Definition{}, newProblem(http.StatusBadRequest, codeMalformed, "the body is not valid JSON: "+err.Error(), "", client.Fault{Message: err.Error()})
		}
		text := b.RawBody
		if fields, ok := whole.(map[string]any); ok && fields["name"] == nil {
			text = withName(text, name, len(fields) > 0)
		}
		return spec.FromJSON(text)
	case "application/yaml", "application/x-yaml", "text/yaml":
		list, err := spec.Parse(name+".yaml", b.RawBody)
		if err == nil && len(list) != 1 {
			err = invalid("Send one definition; pawl apply takes files of many.", client.Fault{Message: fmt.Sprintf("must be one definition, and has %d", len(list))})
		}
		if err != nil {
			return spec.Definition{}, err
		}
		return list[0], nil
	}
	return spec.Definition{}, newProblem(http.StatusUnsupportedMediaType, codeUnsupportedMedia, fmt.Sprintf("the body is said to be %q", b.ContentType),
		"Send the header Content-Type: application/json or Content-Type: application/yaml.")
}

// effectsOfHook is what deliveries do beyond being kept.
func effectsOfHook(d spec.Definition) (out access.Definition) {
	switch {
	case d.Publish != nil:
		out.Publishes = d.Publish.Workflow
	case d.Job != nil:
		out.Job = d.Job.Task
	case d.Run != nil:
		out.Runs = d.Run.Schedule
	}
	return out
}

func (a *API) deleteHook(ctx context.Context, in *HookPath) (*struct{}, error) {
	who := actor(callOf(ctx).token)
	return nil, a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return a.hooks.Delete(ctx, tx, in.Name, who) })
}

type redeliverInput struct {
	DeliveryPath
	OnceHeader
}

type redeliverOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Delivery
}

// redeliver needs the right for what the delivery becomes: it does that now.
func (a *API) redeliver(ctx context.Context, in *redeliverInput) (*redeliverOutput, error) {
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusAccepted, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Delivery, error) {
		h, err := hookstore.In(tx).HookByName(ctx, in.Name)
		if err != nil {
			return client.Delivery{}, err
		}
		var d spec.Definition
		if err := json.Unmarshal(h.Definition, &d); err != nil {
			return client.Delivery{}, fmt.Errorf("read hook: %w", err)
		}
		if err := access.Define(caller, effectsOfHook(d)); err != nil {
			return client.Delivery{}, err
		}
		done, err := a.hooks.Redeliver(ctx, tx, in.Name, in.ID, actor(caller))
		done.Body = nil
		return deliveryOf(done), err
	})
	if err != nil {
		return nil, err
	}
	return &redeliverOutput{was, body}, nil
}
