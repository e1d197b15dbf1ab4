package source

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// Subject tells what a source did, for whoever judges that.
func (s *Service) Subject(ctx context.Context, tx *store.Tx, l runstore.Lane) (lane.Subject, error) {
	src, err := sourcestore.In(tx).GetSource(ctx, l.ID)
	if err != nil {
		return lane.Subject{}, err
	}
	state, err := sourcestore.In(tx).GetSourceState(ctx, src.ID)
	if err != nil {
		return lane.Subject{}, err
	}
	v := &view{source: src}
	out := lane.Subject{Ref: refOf(src.Name), Rests: !v.wanted(), Success: state.LastSuccessAt}
	if out.Repeats, err = s.Repeats(ctx, tx, &lane.Lane{Ref: out.Ref}); err != nil {
		return out, err
	}
	out.Zone = lane.ZoneOf(out.Repeats)
	return out, nil
}

// StoodWell reports whether a fetch for a time in [from, to) succeeded.
func (s *Service) StoodWell(ctx context.Context, tx *store.Tx, of lane.Subject, l runstore.Lane, from, to time.Time) (bool, error) {
	return of.StoodWell(ctx, tx, l.Lane, from, to)
}

// CountStarts counts the last fetches that began by the schedule, and the late ones.
func (s *Service) CountStarts(ctx context.Context, tx *store.Tx, of lane.Subject, l runstore.Lane, since time.Time, limit int) (starts, late int, err error) {
	return of.CountStarts(ctx, tx, l.Lane, since, limit)
}

// attemptsLooked is how many attempts are looked at for each fetch that ended well.
const attemptsLooked = 10

// Fetches reads the last fetches that ended well and began before an instant, the
// newest first. One that took several attempts has the rows of all of them: it may
// have gone on where an earlier one stopped.
func (s *Service) Fetches(ctx context.Context, tx *store.Tx, l runstore.Lane, _ string, before time.Time, limit int) ([]lane.Fetch, error) {
	list, err := sourcestore.In(tx).LatestFetched(ctx, l.ID, before, limit*attemptsLooked)
	if err != nil {
		return nil, err
	}
	rows := map[string]int64{} // of an attempt and those before it
	var out []lane.Fetch
	for _, f := range slices.Backward(list) {
		n := f.Rows + rows[f.RetryOf]
		rows[f.RunID] = n
		if f.Whole {
			out = append(out, lane.Fetch{EndedAt: f.EndedAt, Rows: n})
		}
	}
	slices.Reverse(out)
	return out[:min(len(out), limit)], nil
}
