package api

import (
	"context"
	"net/http"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

type changeRunInput struct {
	RunPath
	OnceHeader
}

type changeRunOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     Run
}

// cancelRun ends a run for good, as long as nothing was sent.
func (a *API) cancelRun(ctx context.Context, in *changeRunInput) (*changeRunOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (Run, error) {
		r, err := tx.GetRun(ctx, in.ID)
		if err != nil {
			return Run{}, err
		}
		if r.Kind != pawl.KindWorkflow {
			return Run{}, &pawl.Error{Code: pawl.CodeConflict, Op: "cancel run", Msg: "runs of this kind cannot be cancelled"}
		}
		if r, err = a.flows.CancelRun(ctx, tx, r, who); err != nil {
			return Run{}, err
		}
		calls, err := tx.RunMutations(ctx, r.ID)
		return runOf(&r, calls), err
	})
	if err != nil {
		return nil, err
	}
	return &changeRunOutput{was, body}, nil
}
