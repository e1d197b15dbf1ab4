package api

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// HookPath is the input of requests about one hook.
type HookPath struct {
	Name string `path:"name" example:"github" doc:"The hook's name."`
}

// DeliveryPath is the input of requests about one delivery.
type DeliveryPath struct {
	HookPath
	ID string `path:"id" maxLength:"256" example:"355813294120960001" doc:"The delivery's id, or the one that its sender gave it."`
}

func (a *API) hookOf(h hookstore.Hook, last []hookstore.Delivery) client.Hook {
	var d spec.Definition
	_ = json.Unmarshal(h.Definition, &d) // what cannot be read is told as the issue
	out := client.Hook{
		Name: h.Name, Description: client.NullString(d.Description), Path: hook.Path + h.Name, Scheme: d.Verify.Scheme, Effect: d.Effect(),
		Issue: client.NullString(a.hooks.Issue(h)), Definition: h.Definition, Version: h.Version, OwnerUserID: h.Owner, UpdatedBy: userOf(h.UpdatedBy),
		CreatedAt: client.At(h.CreatedAt), UpdatedAt: client.At(h.UpdatedAt),
	}
	if len(last) > 0 {
		told := deliveryOf(last[0])
		out.LastDelivery = &told
	}
	return out
}

func deliveryOf(d hookstore.Delivery) client.Delivery {
	out := client.Delivery{
		ID: strconv.FormatInt(d.ID, 10), Hook: d.Hook, DeliveryID: client.NullString(d.DeliveryID), ReceivedAt: client.At(d.ReceivedAt),
		Outcome: d.Outcome, Reason: client.NullString(d.Reason), Effect: client.NullString(d.Effect), Attempts: d.Attempts, Effects: d.Effects,
		Headers: d.Headers, Bytes: d.Bytes, Body: d.Body, UpdatedAt: client.At(d.UpdatedAt),
	}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	return out
}

const hookCursor = "hook"

func (a *API) listHooks(ctx context.Context, in *PageInput) (*pageOutput[client.Hook], error) {
	after, err := in.place(hookCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	out := &pageOutput[client.Hook]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := hookstore.In(tx).ListHooks(ctx, after, in.Limit+1)
		if err != nil {
			return err
		}
		last := map[string][]hookstore.Delivery{}
		found := make([][]hookstore.Delivery, len(list))
		err = tx.Each(ctx, len(list), func(ctx context.Context, tx *store.Tx, i int) (err error) {
			found[i], err = hookstore.In(tx).ListDeliveries(ctx, list[i].Name, "", 0, 1)
			return err
		})
		for i, h := range list {
			last[h.Name] = found[i]
		}
		out.Body = cutPage(list, in.Limit, hookCursor, func(h hookstore.Hook) string { return h.Name }, func(h hookstore.Hook) client.Hook { return a.hookOf(h, last[h.Name]) })
		return err
	})
	return out, err
}

type hookOutput struct {
	ETag string `header:"ETag" doc:"Of the definition; send it in If-Match to change what you saw."`
	Body client.Hook
}

func (a *API) getHook(ctx context.Context, in *HookPath) (*hookOutput, error) {
	out := &hookOutput{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		h, err := hookstore.In(tx).HookByName(ctx, in.Name)
		if err != nil {
			return err
		}
		last, err := hookstore.In(tx).ListDeliveries(ctx, h.Name, "", 0, 1)
		out.ETag, out.Body = tagOf(h.Version), a.hookOf(h, last)
		return err
	})
	return out, err
}

type listDeliveriesInput struct {
	HookPath
	PageInput
	Outcome string `query:"outcome" enum:"delivered,pending,filtered,failed,refused" doc:"Only those with this outcome."`
}

const deliveryCursor = "delivery"

// listDeliveries has no bodies: who may read about deliveries need not read what is
// in them.
func (a *API) listDeliveries(ctx context.Context, in *listDeliveriesInput) (*pageOutput[client.Delivery], error) {
	before, err := in.placeInOrder(deliveryCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Delivery]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := hookstore.In(tx).ListDeliveries(ctx, in.Name, in.Outcome, before, in.Limit+1)
		if err == nil && len(list) == 0 { // that of a deleted one is no fault
			_, err = hookstore.In(tx).HookByName(ctx, in.Name)
		}
		out.Body = cutPage(list, in.Limit, deliveryCursor, func(d hookstore.Delivery) string { return strconv.FormatInt(d.ID, 10) }, deliveryOf)
		return err
	})
	return out, err
}

func (a *API) getDelivery(ctx context.Context, in *DeliveryPath) (*output[client.Delivery], error) {
	out := &output[client.Delivery]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		d, err := hookstore.In(tx).FindDelivery(ctx, in.Name, in.ID)
		out.Body = deliveryOf(d)
		return err
	})
	return out, err
}
