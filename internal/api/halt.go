package api

import (
	"context"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
)

func haltOf(h store.Halt) client.Halt {
	if !h.Active() {
		return client.Halt{}
	}
	return client.Halt{Halted: true, Since: client.At(h.Since), By: client.NullString(h.By), Note: client.NullString(h.Note)}
}

func (a *API) getHalt(ctx context.Context, _ *struct{}) (*output[client.Halt], error) {
	h, err := a.latestHalt(ctx)
	return &output[client.Halt]{haltOf(h)}, err
}

func (a *API) latestHalt(ctx context.Context) (h store.Halt, err error) {
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		h, err = tx.LatestHalt(ctx)
		return err
	})
	return h, err
}

type haltInput struct {
	Body *client.HaltRequest
}

// halt stops all starts on all nodes. This one knows it when it has answered, the
// others a moment later.
func (a *API) halt(ctx context.Context, in *haltInput) (*output[client.Halt], error) {
	note := ""
	if in.Body != nil {
		note = strings.TrimSpace(in.Body.Note)
	}
	if msg := lane.NoteFault(note); msg != "" {
		return nil, invalid("Say in one line why.", client.Fault{Pointer: "/note", Message: msg})
	}
	token := callOf(ctx).token
	var h store.Halt
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		var changed bool
		if h, changed, err = tx.BeginHalt(ctx, token.User.Name, note); err != nil || !changed {
			return err
		}
		mark := h.HaltMark
		tx.AfterCommit(func() { a.queue.SetHalt(mark) })
		return tx.Audit(ctx, actor(token), "server.halt", "server", map[string]string{"note": h.Note})
	})
	return &output[client.Halt]{haltOf(h)}, err
}

// unhalt lets things start again.
func (a *API) unhalt(ctx context.Context, _ *struct{}) (*struct{}, error) {
	token := callOf(ctx).token
	return nil, a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		h, changed, err := tx.LiftHalt(ctx, token.User.Name)
		if err != nil || !changed {
			return err
		}
		tx.AfterCommit(func() { a.queue.SetHalt(h.HaltMark) })
		return tx.Audit(ctx, actor(token), "server.unhalt", "server", map[string]string{"since": pawl.FormatTime(h.Since), "by": h.By})
	})
}
