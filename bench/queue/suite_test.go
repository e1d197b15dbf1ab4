package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/bench/subject"
)

// workersSample is a run with numbers on both sides of the limits.
func workersSample() *report {
	crowd := values{"alone99": 4, "beside99": 5}
	crowdScenario().derive(crowd)
	return &report{suite: workersSuite(), Results: []result{
		{Scenario: "drain", Subject: pawlWorkers, Values: values{"rate": 30_000}},
		{Scenario: "drain", Subject: "river-tuned", Values: values{"rate": 10_000}},
		{Scenario: "drain", Subject: "graphile-local", Values: values{"rate": 20_000}},
		{Scenario: "latency", Subject: pawlWorkers, Values: values{"p99": 1, "call99": 10}},
		{Scenario: "lanes", Subject: pawlWorkers, Values: values{"rate": 9000}},
		{Scenario: "lanes", Subject: "river-tuned", Values: values{"rate": 1000}},
		{Scenario: "lanes", Subject: "graphile-local", Values: values{"rate": 4500}},
		{Scenario: "crowd", Subject: pawlWorkers, Values: crowd},
	}}
}

func TestTargetsOfWorkersAreJudged(t *testing.T) {
	want := []verdict{
		{"drain through workers, against River tuned", "≥ 3.00x", "3.00x", "met"},
		{"call of the enqueue to start at 200 jobs/s, p99", "< 10.00 ms", "10.00 ms", "not met"},
		{"20,000 jobs over 2,000 lanes, four of a lane at once, against the best peer", "≥ 3.00x", "2.00x", "not met"},
		{"a lane with a million jobs makes p99 of the others grow by", "< 20 %", "25 %", "not met"},
	}
	if got := judge(workersSample()); !slices.Equal(got, want) {
		t.Errorf("verdicts:\n%v\nwant:\n%v", got, want)
	}
	for _, v := range judge(&report{suite: workersSuite()}) {
		if v.Status != "not measured" {
			t.Errorf("%s of nothing: %s", v.What, v.Status)
		}
	}
}

func TestReportOfWorkersHasItsOwnScenarios(t *testing.T) {
	run := workersSample()
	run.Waiting = 5000
	text := run.markdown()
	for _, want := range []string{
		"# Workers over HTTP beside peers", "`make bench-worker`", "**5,000 jobs wait in the crowded lane, not a million.**",
		"| **Pawl's workers** | PostgreSQL | 30,000 | 1.50 |", "## Start of others beside a lane with a million jobs",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "pg-boss") {
		t.Error("a contender of another suite is listed")
	}
}

func TestSuitesAreComplete(t *testing.T) {
	files := map[string]bool{}
	for _, s := range []suite{queueSuite(), workersSuite()} {
		if s.title == "" || s.target == "" || s.file == "" || files[s.file] {
			t.Errorf("%q is not complete, or writes the file of another", s.title)
		}
		files[s.file] = true
		for _, sc := range s.scenarios {
			if sc.lead >= len(sc.metrics) || sc.run == nil || sc.about == "" {
				t.Errorf("%s is not complete", sc.name)
			}
		}
		for _, c := range s.contenders {
			if _, err := contenderNamed(c.name); err != nil {
				t.Errorf("the program cannot be %s: %v", c.name, err)
			}
		}
	}
}

func TestResultsAreWrittenOnlyByAFullRun(t *testing.T) {
	if !(options{}).full() || !(options{workers: true, json: "raw.json"}).full() {
		t.Error("a full run is not one")
	}
	for _, o := range []options{{quick: true}, {only: "drain"}, {workers: true, waiting: 5}, {rounds: 1}} {
		if o.full() {
			t.Errorf("%+v is a full run", o)
		}
	}
}

func TestLatenessCountsFromTheCall(t *testing.T) {
	got := fromCalls(&subject.Samples{Called: []int64{1000, 2000}, Committed: []int64{1500, 9000}, Started: []int64{3000, 2500}})
	if !slices.Equal(got, []float64{2, 0.5}) {
		t.Errorf("late by %v ms, want 2 and 0.5", got)
	}
}

func TestGrowthIsOfTheP99(t *testing.T) {
	v := values{"alone50": 1, "alone99": 4, "beside50": 9, "beside99": 5}
	crowdScenario().derive(v)
	if got := v["slower"]; math.Abs(got-25) > 1e-9 {
		t.Errorf("grows by %v %%, want 25", got)
	}
}
