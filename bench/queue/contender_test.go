package main

import "testing"

func TestContendersHaveOneNameAndOneWayToRun(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range contenders() {
		if seen[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		seen[c.name] = true
		if (c.inGo == nil) == (c.prepare == nil) {
			t.Errorf("%s must run either in Go or as a program", c.name)
		}
		if c.title == "" || c.about == "" || c.store == "" {
			t.Errorf("%s is not described", c.name)
		}
	}
}

func TestScenariosNameTheirMetrics(t *testing.T) {
	for _, s := range scenarios() {
		if s.lead >= len(s.metrics) || s.run == nil || s.about == "" {
			t.Errorf("%s is not complete", s.name)
		}
	}
}

func TestOthersAreTheJobsOutsideTheHotLane(t *testing.T) {
	d := drained{began: 1_000_000, started: []int64{9_000_000, 1_500_000, 8_000_000, 3_000_000}}
	if got := d.others(); got != 2 {
		t.Errorf("others took %v s, want 2", got)
	}
}
