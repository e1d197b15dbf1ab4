package main

import (
	"math"
	"strings"
	"testing"
)

// sample is a run with a Pawl that is 4 times as fast as its best peer.
func sample() *report {
	return &report{suite: queueSuite(), Results: []result{
		{Scenario: "drain", Subject: pawlPostgres, Values: values{"rate": 200_000}},
		{Scenario: "drain", Subject: "river-tuned", Values: values{"rate": 20_000}},
		{Scenario: "drain", Subject: "graphile-local", Values: values{"rate": 50_000}},
		{Scenario: "drain", Subject: "river-sqlite", Values: values{"rate": 4000}, Note: "a further round did not finish"},
		{Scenario: "latency", Subject: pawlPostgres, Values: values{"p50": 1.5, "p99": 9.9}},
		{Scenario: "latency", Subject: "river-tuned", Values: values{"p50": 2, "p99": 6}},
		{Scenario: "latency", Subject: "graphile-local", LeftOut: "node or npm is not installed"},
		{Scenario: "idle", Subject: pawlPostgres, Values: values{"statements": 1}},
	}}
}

func TestTargetsAreJudged(t *testing.T) {
	want := map[string]string{
		"drain 100,000 on PostgreSQL, against the best peer":     "met",
		"drain 100,000 on PostgreSQL, against River tuned":       "met",
		"drain 100,000 on SQLite, against River's SQLite driver": "not measured",
		"commit to start at 200 jobs/s, p50":                     "not met", // below is strict
		"commit to start at 200 jobs/s, p99":                     "met",
		"lateness of 2,000 timers, p99":                          "not measured",
		"statements per second at idle with 100,000 future jobs": "met", // at most is not
	}
	for _, v := range judge(sample()) {
		if status, ok := want[v.What]; ok && v.Status != status {
			t.Errorf("%s: %s (%s against %s), want %s", v.What, v.Status, v.Measured, v.Wanted, status)
		}
		delete(want, v.What)
	}
	for what := range want {
		t.Errorf("no target %q", what)
	}
}

func TestBestPeerIsOnTheSameStore(t *testing.T) {
	run := sample()
	for _, c := range []struct {
		scenario string
		m        metric
		on       store
		want     float64
	}{
		{"drain", metric{key: "rate"}, onPostgres, 50_000},
		{"drain", metric{key: "rate"}, onSQLite, 4000},
		{"latency", metric{key: "p99", lower: true}, onPostgres, 6},
	} {
		if got := run.bestPeer(c.scenario, c.m, c.on); got != c.want {
			t.Errorf("best peer in %s on %s = %v, want %v", c.scenario, c.on, got, c.want)
		}
	}
	if got := run.bestPeer("idle", metric{key: "statements", lower: true}, onPostgres); !math.IsNaN(got) {
		t.Errorf("best of no peers = %v", got)
	}
}

func TestRatioIsAboveOneForTheBetter(t *testing.T) {
	if got := (metric{}).ratio(300, 100); got != "3.00" {
		t.Errorf("three times the rate = %s", got)
	}
	if got := (metric{lower: true}).ratio(2, 10); got != "5.00" {
		t.Errorf("a fifth of the time = %s", got)
	}
	if got := (metric{}).ratio(1, math.NaN()); got != "-" {
		t.Errorf("without a peer = %s", got)
	}
}

func TestReportSaysWhoIsMissing(t *testing.T) {
	text := sample().markdown()
	for _, want := range []string{
		"| Graphile Worker, local queue | PostgreSQL | 50,000 | 1.00 |",
		"Graphile Worker, local queue has no number: node or npm is not installed.",
		"River on SQLite: a further round did not finish.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestFilterNamesScenarioAndSubject(t *testing.T) {
	f, err := parseFilter("^drain$/river")
	if err != nil {
		t.Fatal(err)
	}
	if !f.wantsScenario("drain") || f.wantsScenario("future") || !f.wantsSubject("river-tuned") || f.wantsSubject("graphile-local") {
		t.Error("^drain$/river chose wrongly")
	}
	all, err := parseFilter("")
	if err != nil || !all.wantsScenario("drain") || !all.wantsSubject("river-tuned") {
		t.Errorf("an empty filter left something out: %v", err)
	}
}
