package main

import "slices"

// suite is what one run measures, and where the report goes.
type suite struct {
	title      string
	target     string // of make
	file       string
	scenarios  []scenario
	contenders []contender
	targets    []target
}

// queueSuite is Pawl's own queue.
func queueSuite() suite {
	return suite{
		title: "Pawl's queue beside its peers", target: "bench-queue", file: "RESULTS.md",
		scenarios: scenarios(), targets: targets(),
		contenders: slices.Concat(pawlContenders(), riverContenders(), graphileContenders(), pgbossContenders(), riverSQLiteContenders()),
	}
}

// workersSuite is tasks that programs of users serve, over HTTP.
func workersSuite() suite {
	return suite{
		title: "Workers over HTTP beside peers", target: "bench-worker", file: "WORKERS.md",
		scenarios:  []scenario{workersDrainScenario(), workersLatencyScenario(), workersLanesScenario(), crowdScenario()},
		contenders: slices.Concat(workersContenders(), riverContenders(), graphileContenders()),
		targets:    workersTargets(),
	}
}

func workersTargets() []target {
	lanesOverBest := func(run *report) float64 {
		return own("lanes", pawlWorkers, "rate")(run) / run.bestPeer("lanes", metric{key: "rate"}, onPostgres)
	}
	return []target{
		{what: "drain through workers, against River tuned", unit: "x", digits: 2, atLeast: 3, measure: over("drain", pawlWorkers, "river-tuned")},
		{what: "call of the enqueue to start at 200 jobs/s, p99", unit: " ms", digits: 2, below: 10, measure: own("latency", pawlWorkers, "call99")},
		{what: "20,000 jobs over 2,000 lanes, four of a lane at once, against the best peer", unit: "x", digits: 2, atLeast: 3, measure: lanesOverBest},
		{what: "a lane with a million jobs makes p99 of the others grow by", unit: " %", below: 20, measure: own("crowd", pawlWorkers, "slower")},
	}
}
