package workflow

import (
	"context"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// What a script says about keeping is noted with its lane, goes with it, and is
// nothing that auto-fix may change.
func TestWhatAWorkflowKeepsIsNoted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for revision, c := range []struct {
			keep map[string]string
			want string
		}{{map[string]string{"reads": "24h", "runs": "1w"}, "runs=7d,reads=1d"}, {nil, ""}} {
			d := orderDefinition()
			d.config.Keep = c.keep
			w := k.deploy("orders", strings.Repeat("x", revision), d)
			k.read(func(ctx context.Context, tx *store.Tx) error {
				l, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
				if l.Keep != c.want {
					t.Errorf("%v: %q", c.keep, l.Keep)
				}
				return err
			})
		}
	})
	before, after := Config{Name: "a", Keep: map[string]string{"runs": "7d"}}, Config{Name: "a"}
	if err := sameDeclaration(before, after); err == nil || !strings.Contains(err.Error(), "for how long its history is kept") {
		t.Errorf("%v", err)
	}
}
