package web

import (
	"context"
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// haltBanner is that everything is halted. Whoever is signed in sees it.
type haltBanner struct {
	*run.Halt
	MayLift bool
}

// haltFor is the banner of a page; its Halt is nil while nothing is halted. Without
// an answer the page is still the page.
func (s *Site) haltFor(ctx context.Context, v *visit) haltBanner {
	b := haltBanner{MayLift: v.may("halt", "admin")}
	_ = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		b.Halt, err = lane.HaltOf(ctx, tx)
		return err
	})
	return b
}

// unhalt lifts the halt.
func (s *Site) unhalt(w http.ResponseWriter, r *http.Request, v *visit) {
	s.changeBy(w, r, v, http.MethodDelete, client.HaltPath, nil, "The halt is lifted. What is due starts now.")
}
