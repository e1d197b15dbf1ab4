package web

import (
	"context"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// stateCounts is how many lanes stand how, by kind.
type stateCounts map[string]map[run.State]int

// countLanes counts what somebody sees, in the light of who there is to run it.
func (s *Site) countLanes(ctx context.Context, v *visit, there run.Workforce) (stateCounts, error) {
	out := stateCounts{}
	err := s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range s.cfg.Kinds {
			counted, err := runstore.In(tx).CountLanes(ctx, k.Kind(), ownerOf(v, k.Kind()))
			if err != nil {
				return err
			}
			byState := map[run.State]int{}
			for state, n := range counted {
				told, _ := there.Over(run.State(state), run.IssueNone)
				byState[told] += n
			}
			if there.Halt != nil { // what waits for another attempt does not run
				n, err := runstore.In(tx).CountWaiting(ctx, k.Kind(), ownerOf(v, k.Kind()))
				if err != nil {
					return err
				}
				byState[run.Running] -= n
				byState[run.Stopped] += n
			}
			out[string(k.Kind())] = byState
		}
		return nil
	})
	return out, err
}

// workforce tells who there is to run things.
func (s *Site) workforce(ctx context.Context) (there run.Workforce, err error) {
	if s.cfg.Workforce == nil {
		return there, nil
	}
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		there, err = s.cfg.Workforce(ctx, tx)
		return err
	})
	return there, err
}
