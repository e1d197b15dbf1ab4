package workflow

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// Subject tells what a workflow did, for whoever judges that. Its days are in the
// zone of the first producer that has one.
func (s *Service) Subject(ctx context.Context, tx *store.Tx, l runstore.Lane) (lane.Subject, error) {
	w, err := workflowstore.In(tx).GetWorkflow(ctx, l.ID)
	if err != nil {
		return lane.Subject{}, err
	}
	out := lane.Subject{Ref: refOf(w.Name), Rests: w.Desired != desiredActive}
	if out.Repeats, err = s.Repeats(ctx, tx, &lane.Lane{Ref: out.Ref, ID: w.ID}); err != nil {
		return out, err
	}
	for _, due := range out.Repeats {
		out.Bring = append(out.Bring, due.HandlerName())
	}
	out.Zone = lane.ZoneOf(out.Repeats)
	out.Success, err = runstore.In(tx).LatestSuccess(ctx, pawl.KindWorkflow, w.Lane)
	return out, err
}

// StoodWell reports whether a producer's run for a time in [from, to) succeeded.
func (s *Service) StoodWell(ctx context.Context, tx *store.Tx, of lane.Subject, l runstore.Lane, from, to time.Time) (bool, error) {
	return of.StoodWell(ctx, tx, l.Lane, from, to)
}

// CountStarts counts the last starts of producers, and the late ones.
func (s *Service) CountStarts(ctx context.Context, tx *store.Tx, of lane.Subject, l runstore.Lane, since time.Time, limit int) (starts, late int, err error) {
	return of.CountStarts(ctx, tx, l.Lane, since, limit)
}

// Fetches reads how many events the last runs of a producer published that ended well
// and began before an instant.
func (s *Service) Fetches(ctx context.Context, tx *store.Tx, l runstore.Lane, handler string, before time.Time, limit int) ([]lane.Fetch, error) {
	list, err := runstore.In(tx).LatestBrought(ctx, pawl.KindWorkflow, l.Lane, handler, before, limit)
	out := make([]lane.Fetch, len(list))
	for i, b := range list {
		out[i] = lane.Fetch{EndedAt: b.EndedAt, Rows: b.Rows}
	}
	return out, err
}
