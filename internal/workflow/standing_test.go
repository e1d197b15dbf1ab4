package workflow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
)

func TestInstantsOfProducers(t *testing.T) {
	hold(t,
		behaviour{"why tells of every instant which run stood for it", whyTellsTheRunOfAnInstant},
		behaviour{"why tells that a failed run stands in the way of an instant", whyTellsTheFailureOfAnInstant},
	)
}

// around asks what became of an instant.
func (k *kit) around(name string, at time.Time) *lane.Around {
	k.t.Helper()
	y, err := k.s.Why(k.t.Context(), lane.Viewer{}, name, at)
	if err != nil {
		k.t.Fatal(err)
	}
	return y.Around
}

func whyTellsTheRunOfAnInstant(t *testing.T, k *kit) {
	hour := time.Now().Truncate(time.Hour)
	pass(time.Until(hour.Add(30 * time.Minute)))
	w := k.deploy("hours", "1", producing(nil).producer("p", Schedule{Cron: "0 * * * *"}, idle).producer("q", Schedule{Cron: "0 12 * * *"}, idle))
	k.follow(w, 2*time.Hour)        // 02:30
	pass(3*time.Hour + time.Minute) // 05:31: nobody worked at 3, 4 and 5
	k.follow(w, time.Minute)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Pause(ctx, tx, "hours", "ada", lane.PauseTerms{})
		return err
	})
	pass(2 * time.Hour)
	stands := map[time.Duration]time.Duration{time.Hour: time.Hour, 2 * time.Hour: 2 * time.Hour, 3 * time.Hour: 3 * time.Hour, 4 * time.Hour: 3 * time.Hour, 5 * time.Hour: 3 * time.Hour}
	for at, want := range stands {
		a := k.around("hours", hour.Add(at))
		if a.Stood == nil || a.Stood.Handler != "p" || !a.Stood.ScheduledFor.Equal(hour.Add(want)) || !strings.Contains(a.Text, a.Stood.ID+" of p stood for ") || !strings.Contains(a.Text, ", and succeeded at ") {
			t.Errorf("%s: %+v, %q", at, a.Stood, a.Text)
		}
		if late := strings.Contains(a.Text, pawl.FormatTime(hour.Add(3*time.Hour))+" and what came due until it ran"); late != (at > want) {
			t.Errorf("%s: %q", at, a.Text)
		}
	}
	for at, want := range map[time.Duration]string{
		-12 * time.Hour:              "the workflow was made at ",
		90 * time.Minute:             "Nothing was due at that time by its schedule of now. Nothing ran; ",
		6 * time.Hour:                "No run of p stood for it: it was paused by ada at ",
		24 * time.Hour:               "That time is in the future.",
		-time.Hour + 7*time.Minute/2: "It did not exist then: it was made at ",
	} {
		if a := k.around("hours", hour.Add(at)); a.Stood != nil || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %+v, %q, want %q", at, a.Stood, a.Text, want)
		}
	}
}

func whyTellsTheFailureOfAnInstant(t *testing.T, k *kit) {
	hour := time.Now().Truncate(time.Hour)
	pass(time.Until(hour.Add(30 * time.Minute)))
	fails := false
	w := k.deploy("broken", "1", producing(nil).producer("p", Schedule{Cron: "0 * * * *"}, func(*goCtx, []json.RawMessage) any {
		if fails {
			throw("it is broken")
		}
		return nothing{}
	}))
	k.follow(w, time.Minute)
	fails = true
	k.follow(w, 3*time.Hour)
	for _, h := range []time.Duration{2, 3} {
		if a := k.around("broken", hour.Add(h*time.Hour)); a.Stood != nil || !strings.Contains(a.Text, "No run of p stood for it: run ") || !strings.Contains(a.Text, "is failed:logic since") {
			t.Errorf("%+v, %q", a.Stood, a.Text)
		}
	}
	if a := k.around("broken", hour.Add(time.Hour)); a.Stood == nil || a.Stood.Status != pawl.StatusFailedLogic || !strings.Contains(a.Text, "and is failed:logic: ") {
		t.Errorf("%+v, %q", a.Stood, a.Text)
	}
}
