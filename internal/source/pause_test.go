package source

import (
	"context"
	"errors"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// A source that is paused until an instant is let go by a job of that instant, once,
// whatever side of it the process ends on; and not before.
func TestAPausedSourceContinuesByItself(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", ""))
		until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "s", "ada (token x)", lane.PauseTerms{Until: until, Note: "they repair it."})
			return err
		})
		armed := k.armed.jobs[len(k.armed.jobs)-1]
		if armed.Task != ContinueName || !armed.RunAt.Equal(until) {
			t.Errorf("armed: %+v", armed)
		}
		v := k.look("s")
		want := "It is paused until " + pawl.FormatTime(until) + ", by ada since " + pawl.FormatTime(v.known.Pause.At) + ": they repair it. It then continues by itself."
		if l := v.lane(firstOf(nil)); l.State != run.Stopped || l.Sentence != want || l.Pause.Note != "they repair it." {
			t.Errorf("it is %s: %s", l.State, l.Sentence)
		}
		why, err := k.s.Why(t.Context(), lane.Viewer{}, "s", time.Time{})
		if err != nil || !why.Gates[0].Until.Equal(until) || why.Next != "It does nothing until its pause is over, at "+pawl.FormatTime(until)+"." {
			t.Errorf("why: %s %+v (%v)", why.Next, why.Gates[0], err)
		}
		again, err := k.s.proceed(t.Context(), "s")
		if err != nil || !again.Equal(until) || k.look("s").wanted() {
			t.Fatalf("before its time: %v (%v)", again, err)
		}
		if at := k.work(src); k.api.asked() != 0 || !at.IsZero() {
			t.Error("a paused source ran, or looks again by itself")
		}
		k.change(`update lanes set paused_until = 1 where lane = 's'`)
		for _, place := range []string{"continuing", "continued", ""} {
			k.fault = func(at string) error {
				if at == place {
					return errFault
				}
				return nil
			}
			if again, err = k.s.proceed(t.Context(), "s"); !again.IsZero() || (err != nil) != (place != "") || err != nil && !errors.Is(err, errFault) {
				t.Errorf("%s: %v (%v)", place, again, err)
			}
			k.start("after " + place)
		}
		k.fault = nil
		if n := k.column(`select action from audit_log where action = 'source.resume'`); len(n) != 1 {
			t.Errorf("%d lines", len(n))
		}
		if k.work(src); k.api.asked() == 0 {
			t.Error("it did not run")
		}
		if l := k.look("s"); !l.wanted() || !l.known.Pause.At.IsZero() {
			t.Errorf("%+v", l.known.Pause)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "s", "ada", lane.PauseTerms{Until: time.Now().Add(-time.Hour)})
			if pawl.ErrorCode(err) != pawl.CodeInvalid {
				t.Errorf("the past: %v", err)
			}
			return nil
		})
	})
}
