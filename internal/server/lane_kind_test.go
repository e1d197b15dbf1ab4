package server

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/expect"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/lane/lanetest"
	"github.com/pawlrun/pawl/internal/notify"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// A kind that nothing here knows brings its tasks and its standing jobs, once it
// is among the kinds.
func TestAnotherKindBringsItsWork(t *testing.T) {
	hourly, err := when.Every(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{log: slog.New(slog.DiscardHandler), notices: &notify.Notifier{}, heartbeat: &notify.Heartbeat{}}
	s.kinds = lane.Kinds{&lanetest.Timers{Every: map[string]when.Schedule{"egg": hourly}}}
	if _, ok := s.tasks()["timer.tick"]; !ok {
		t.Error("its task is missing")
	}
	if !slices.ContainsFunc(s.standing(), func(j store.JobSpec) bool { return j.Task == "timer.tick" }) {
		t.Error("its standing job is missing")
	}
}

// Lanes are judged by what is expected of them, whoever made them.
func TestLanesAreJudged(t *testing.T) {
	s := &server{log: slog.New(slog.DiscardHandler), notices: &notify.Notifier{}, heartbeat: &notify.Heartbeat{}}
	if _, ok := s.tasks()[expect.Name]; !ok || !slices.ContainsFunc(s.standing(), func(j store.JobSpec) bool { return j.Task == expect.Name }) {
		t.Error("nobody judges them")
	}
}
