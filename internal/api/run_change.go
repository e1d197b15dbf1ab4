package api

import (
	"context"
	"net/http"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

type changeRunInput struct {
	RunPath
	OnceHeader
}

type changeRunOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Run
}

// cancelRun ends a run for good, as long as nothing was sent.
func (a *API) cancelRun(ctx context.Context, in *changeRunInput) (*changeRunOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Run, error) {
		r, err := a.visibleRun(ctx, tx, in.ID)
		if err != nil {
			return client.Run{}, err
		}
		if r, err = a.cancel(ctx, tx, r, who); err != nil {
			return client.Run{}, err
		}
		told, err := a.runsWithCalls(ctx, tx, []runstore.Run{r})
		if err != nil {
			return client.Run{}, err
		}
		return told[0], nil
	})
	if err != nil {
		return nil, err
	}
	return &changeRunOutput{was, body}, nil
}

// cancel leaves it to the kind of a run to end it.
func (a *API) cancel(ctx context.Context, tx *store.Tx, r runstore.Run, by string) (runstore.Run, error) {
	if k, ok := a.kinds.Get(r.Kind); ok {
		return k.CancelRun(ctx, tx, r, by)
	}
	return runstore.Run{}, &pawl.Error{Code: pawl.CodeConflict, Op: "cancel run", Msg: "runs of this kind cannot be cancelled"}
}
