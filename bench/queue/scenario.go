package main

import "context"

// scenario is one question, asked of every contender in the same way.
type scenario struct {
	name    string
	title   string
	about   string
	metrics []metric
	lanes   bool // needs lanes
	few     bool // needs few of them
	perLane int  // how many jobs of a lane may run at once; 0 is one
	only    store
	lead    int  // which metric is compared with the best peer
	repeat  bool // several rounds, if they are quick; the median counts
	run     func(ctx context.Context, t *trial) (values, error)
	// derive adds numbers that follow from the medians of the others; nil for
	// none.
	derive func(v values)
}

// metric is one number of a scenario.
type metric struct {
	key    string
	title  string
	lower  bool // less is better
	digits int  // after the point
}

// values are the numbers of one trial, by the keys of the metrics. Keys that
// no metric has are kept for the raw output.
type values map[string]float64

// scenarios lists all of them in the order of the report.
func scenarios() []scenario {
	return []scenario{
		enqueueScenario(), drainScenario(), futureScenario(), latencyScenario(),
		timersScenario(), idleScenario(), lanesScenario(), skewScenario(),
	}
}
