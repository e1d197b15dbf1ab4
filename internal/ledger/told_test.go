package ledger

import (
	"context"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Whoever watches hears of every phase of a path by its own name, in order, and a
// draft is created after the run before it.
func TestEveryPhaseOfAPathIsTold(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := consumer("l")
		phases := pawl.Phases(s.HandlerType)
		path := phases[1:3]
		before := runstore.Run{CreatedAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)}
		draft := k.l.Draft(k.owner, s, before)
		if !draft.CreatedAt.After(before.CreatedAt) {
			t.Errorf("created at %v, not after %v", draft.CreatedAt, before.CreatedAt)
		}
		draft = k.l.Draft(k.owner, s, runstore.Run{})
		must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Enter(ctx, tx, draft, checkpoint(path[0]), path...)
		})
		var told []pawl.Phase
		for _, e := range k.events {
			told = append(told, e.Run.Phase)
		}
		if want := append([]pawl.Phase{phases[0]}, path...); !slices.Equal(told, want) {
			t.Errorf("told are %v, want %v", told, want)
		}
	})
}
