package source

import (
	"context"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// ShareNeeded implements need.Source. One that is being deleted is as good as gone.
func (s *Service) ShareNeeded(ctx context.Context, tx *store.Tx, name string) error {
	src, err := sourcestore.In(tx).ShareNamed(ctx, name)
	if err == nil && !src.DeletingAt.IsZero() {
		err = &pawl.Error{Code: pawl.CodeNotFound, Op: "read source", Msg: fmt.Sprintf("the source %q is being deleted", name)}
	}
	return err
}

// LastFetched implements need.Source.
func (s *Service) LastFetched(ctx context.Context, tx *store.Tx, name string) (last time.Time, paused bool, err error) {
	return sourcestore.In(tx).LastFetched(ctx, name)
}

// HoldFetched implements need.Source. The definition comes first, as in a fetch.
func (s *Service) HoldFetched(ctx context.Context, tx *store.Tx, name string) (time.Time, error) {
	src, err := sourcestore.In(tx).ShareNamed(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	return sourcestore.In(tx).HoldFetched(ctx, src.ID)
}

// AskToFetch implements need.Source. It asks as a person does who runs a source, and
// never twice: one that fetches, that is asked already, or that will try again by
// itself goes on.
func (s *Service) AskToFetch(ctx context.Context, tx *store.Tx, name, by string) (hindrance string, err error) {
	src, err := sourcestore.In(tx).SourceByName(ctx, name)
	if err != nil {
		return "", err
	}
	v, err := s.loadFrom(ctx, tx, src)
	if err != nil {
		return "", err
	}
	wanted, retry := v.gateWanted(), v.gateRetry()
	switch {
	case v.row.Status == pawl.StatusActive:
		return "", nil
	case !wanted.Open:
		return hinders(name, wanted), nil
	case !retry.Open:
		return hinders(name, retry), nil
	case !v.state.RequestedAt.IsZero():
		return "", nil
	}
	if err := sourcestore.In(tx).RequestSource(ctx, src.ID); err != nil {
		return "", err
	}
	if err := tx.Audit(ctx, by, "source.run", "source:"+name, map[string]string{"why": "it is needed"}); err != nil {
		return "", err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "requested"})
	return "", s.arm(ctx, tx, &src, tx.Now)
}

// hinders says by a gate why a source is not fetched now.
func hinders(name string, g lane.Gate) string {
	if rest, ok := strings.CutPrefix(g.Text, "It "); ok {
		return "Source " + name + " " + rest
	}
	return "Source " + name + ": " + g.Text
}
