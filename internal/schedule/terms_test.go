package schedule

import (
	"context"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// What a definition says about keeping is noted with its lane, changes without
// closing the slot that waits, and goes when the definition says it no longer.
func TestWhatAScheduleKeepsIsNoted(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Keep = map[string]string{"runs": "1w", "slots": "30d"}
		sch := k.create(in)
		keep := func() string { return strings.Join(k.column(`select keep from lanes where lane = $1`, sch.ID), " ") }
		if keep() != "runs=7d,slots=30d" || RulesOf(sch).Keep["runs"] != "1w" {
			t.Errorf("%s, %s", keep(), sch.Rules)
		}
		apply := func(want string) {
			t.Helper()
			k.write(func(ctx context.Context, tx *store.Tx) error {
				what, _, now, err := k.s.Apply(ctx, tx, k.owner, in, "t")
				if what != want || now.Revision != sch.Revision {
					t.Errorf("it was %s, revision %d", what, now.Revision)
				}
				return err
			})
		}
		apply(Unchanged)
		in.Keep = map[string]string{"runs": "2d"}
		apply(Updated)
		if keep() != "runs=2d" {
			t.Error(keep())
		}
		k.wantStory(sch, "00:01 pending")
		in.Keep = nil
		apply(Updated)
		if keep() != "" || k.schedule(sch.ID).Rules != nil {
			t.Errorf("%q, %s", keep(), k.schedule(sch.ID).Rules)
		}
		k.update(sch, client.SchedulePatch{Keep: &map[string]string{"logs": "2d"}})
		if keep() != "logs=2d" {
			t.Error(keep())
		}
		bad := map[string]string{"slots": "1h"}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Update(ctx, tx, k.owner, sch.ID, client.SchedulePatch{Keep: &bad}, "t")
			return err
		})
		if e == nil || len(e.Fields) != 1 || e.Fields[0].Pointer != "/keep/slots" || !strings.Contains(e.Fields[0].Message, "Keep them for 2d or longer") {
			t.Errorf("%+v", e)
		}
	})
}
