package workflow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// a schedule tells its type, its value and its instants.
func TestScheduleTellsItsInstants(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		schedule           Schedule
		kind, value, words string
		next               time.Time
	}{
		{Schedule{Interval: "90s"}, "interval", "90s", "Every 90 seconds", now.Add(90 * time.Second)},
		{Schedule{Cron: "0 9 * * *"}, "cron", "0 9 * * *", "Daily at 09:00 UTC", time.Date(2026, 3, 29, 9, 0, 0, 0, time.UTC)},
		{Schedule{Cron: "0 9 * * *", Timezone: "Europe/Berlin"}, "cron", "0 9 * * *", "Daily at 09:00 Berlin time", time.Date(2026, 3, 29, 7, 0, 0, 0, time.UTC)},
	} {
		spec, err := test.schedule.Spec()
		if err != nil {
			t.Fatal(err)
		}
		next, ok := spec.Next(now)
		if test.schedule.Type() != test.kind || test.schedule.Value() != test.value || spec.Describe() != test.words || !ok || !next.Equal(test.next) {
			t.Errorf("%+v: %s %s, %s, %s", test.schedule, test.schedule.Type(), test.schedule.Value(), spec.Describe(), next)
		}
	}
}

// what cannot work is an error, never a guess.
func TestScheduleThatCannotWorkIsAnError(t *testing.T) {
	for _, s := range []Schedule{
		{}, {Interval: "0m"}, {Interval: "5"}, {Interval: "5m", Cron: "* * * * *"}, {Interval: "5m", Timezone: "UTC"},
		{Cron: "* * *"}, {Cron: "* * * * *", Timezone: "Nowhere/At_all"}, {Timezone: "UTC"},
	} {
		if spec, err := s.Spec(); err == nil {
			t.Errorf("%+v is %s", s, spec)
		}
	}
}

func TestHandlersAreFoundByName(t *testing.T) {
	c := Config{
		Producers: []Producer{{Name: "p"}, {Name: "q", Publishes: []string{"a"}}},
		Consumers: []Consumer{{Name: "x", Subscribe: []string{"a", "b"}}, {Name: "y", Subscribe: []string{"b"}}, {Name: "p", Subscribe: []string{"c"}}},
	}
	if p, ok := c.Producer("q"); !ok || p.Publishes[0] != "a" {
		t.Errorf("producer q: %+v %v", p, ok)
	}
	if k, ok := c.Consumer("y"); !ok || k.Subscribe[0] != "b" {
		t.Errorf("consumer y: %+v %v", k, ok)
	}
	if _, ok := c.Producer("x"); ok {
		t.Error("x is no producer")
	}
	if _, ok := c.Consumer("q"); ok {
		t.Error("q is no consumer")
	}
	for topic, want := range map[string][]string{"a": {"x"}, "b": {"x", "y"}, "z": nil} {
		if diff := cmp.Diff(want, c.Subscribers(topic)); diff != "" {
			t.Errorf("subscribers of %s: %s", topic, diff)
		}
	}
}
