package main

import (
	"cmp"
	"math"
)

// verdict is one target beside what was measured.
type verdict struct {
	What     string `json:"what"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Status   string `json:"status"` // met, not met, or not measured
}

// target is one number that Pawl must reach.
type target struct {
	what    string
	unit    string // follows the number
	digits  int
	atLeast float64 // one of the three is set
	below   float64
	atMost  float64
	measure func(run *report) float64 // NaN when it was not measured
}

// Names of Pawl's own contenders.
const (
	pawlPostgres = "pawl"
	pawlSQLite   = "pawl-sqlite"
)

func targets() []target {
	return []target{
		{what: "drain 100,000 on PostgreSQL, against the best peer", unit: "x", digits: 2, atLeast: 3, measure: overBest("drain")},
		{what: "drain 100,000 on PostgreSQL, against River tuned", unit: "x", digits: 2, atLeast: 7,
			measure: over("drain", pawlPostgres, "river-tuned")},
		{what: "drain beside a million future jobs, of the empty table's rate", digits: 2, atLeast: 0.85,
			measure: own("future", pawlPostgres, "kept")},
		{what: "20,000 jobs over 2,000 lanes, against the best peer", unit: "x", digits: 2, atLeast: 3, measure: overBest("lanes")},
		{what: "half of all jobs in one lane slows the others by", unit: " %", below: 20, measure: own("skew", pawlPostgres, "slower")},
		{what: "the same on SQLite", unit: " %", below: 20, measure: own("skew", pawlSQLite, "slower")},
		{what: "drain 100,000 on SQLite, against River's SQLite driver", unit: "x", digits: 2, atLeast: 20,
			measure: over("drain", pawlSQLite, "river-sqlite")},
		{what: "commit to start at 200 jobs/s, p50", unit: " ms", digits: 2, below: 1.5, measure: own("latency", pawlPostgres, "p50")},
		{what: "commit to start at 200 jobs/s, p99", unit: " ms", digits: 2, below: 10, measure: own("latency", pawlPostgres, "p99")},
		{what: "lateness of 2,000 timers, p99", unit: " ms", digits: 2, below: 10, measure: own("timers", pawlPostgres, "p99")},
		{what: "statements per second at idle with 100,000 future jobs", digits: 1, atMost: 1, measure: own("idle", pawlPostgres, "statements")},
	}
}

// own is a number of Pawl itself.
func own(scenarioName, subjectName, key string) func(*report) float64 {
	return func(run *report) float64 {
		if v, ok := run.value(scenarioName, subjectName, key); ok {
			return v
		}
		return math.NaN()
	}
}

// over is Pawl's rate divided by a peer's.
func over(scenarioName, subjectName, peer string) func(*report) float64 {
	return func(run *report) float64 {
		return own(scenarioName, subjectName, "rate")(run) / own(scenarioName, peer, "rate")(run)
	}
}

// overBest is Pawl's rate on PostgreSQL divided by that of its best peer.
func overBest(scenarioName string) func(*report) float64 {
	return func(run *report) float64 {
		return own(scenarioName, pawlPostgres, "rate")(run) / run.bestPeer(scenarioName, metric{key: "rate"}, onPostgres)
	}
}

// judge holds the measured numbers against the targets.
func judge(run *report) []verdict {
	var verdicts []verdict
	for _, t := range run.suite.targets {
		verdicts = append(verdicts, t.judge(t.measure(run)))
	}
	return verdicts
}

func (t target) judge(measured float64) verdict {
	v := verdict{What: t.what, Measured: "-", Status: "not measured"}
	var met bool
	switch {
	case t.below > 0:
		v.Wanted, met = "< ", measured < t.below
	case t.atMost > 0:
		v.Wanted, met = "≤ ", measured <= t.atMost
	default:
		v.Wanted, met = "≥ ", measured >= t.atLeast
	}
	v.Wanted += number(cmp.Or(t.atLeast, t.below, t.atMost), t.digits) + t.unit
	if math.IsNaN(measured) {
		return v
	}
	v.Measured, v.Status = number(measured, t.digits)+t.unit, "not met"
	if met {
		v.Status = "met"
	}
	return v
}
